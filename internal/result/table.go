package result

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/stats"
	"replayd/internal/terminal"
)

// tablePercentiles are the percentile columns of every table.
var tablePercentiles = []float64{25, 50, 75, 90, 99}

// WriteTable prints the run that the ledger is of: the latencies in milliseconds, counts, and rates. Extra percentiles, 0 to 100, are
// columns among the others. A width above 0 is the terminal's: columns that do not fit are left out, the extra ones never, and longer
// lines are wrapped.
func (s *Summary) WriteTable(w io.Writer, l measure.Ledger, width int, extra ...float64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := &terminal.Table{Columns: width}
	s.writeLatencies(out, extra)

	fmt.Fprintln(out)
	out.Line("expected", "%d", l.Expected)
	out.Line("sent", "%d", l.Finished()+l.InFlight)
	for _, o := range measure.Outcomes() {
		if n := l.Outcomes[o]; n > 0 {
			out.Line(string(o), "%d", n)
		}
	}
	for _, r := range measure.DropReasons() {
		if n := l.Dropped[r]; n > 0 {
			out.Line("dropped "+string(r), "%d", n)
		}
	}
	if s.retried > 0 {
		out.Line("sent twice", "%d (%s of those sent): a kept connection was closed when they went out", s.retried,
			number.Percent(s.retried, l.Finished()+l.InFlight))
	}
	if l.Filtered > 0 {
		out.Line("filtered", "%d, not expected", l.Filtered)
	}
	s.writeBlurred(out)
	for _, line := range s.reading.Lines() {
		out.Line(line[0], "%s", line[1])
	}

	fmt.Fprintln(out)
	span := s.span().Seconds()
	rate := func(n int64) string {
		if span <= 0 {
			return "-"
		}
		return number.Cell(float64(n) / span)
	}
	out.Line("span", "%s s, first due to last answer", number.Cell(span))
	out.Line("requests", "%s ok/s", rate(l.Outcomes[measure.OK]))
	out.Line("input", "%s tokens/s (%d)", rate(l.PromptTokens), l.PromptTokens)
	out.Line("output", "%s tokens/s (%d)", rate(l.OutputTokens), l.OutputTokens)
	user := "-"
	if v := s.perUser(); v > 0 {
		user = number.Cell(v)
	}
	out.Line("output per user", "%s tokens/s", user)
	bound := "no SLO: every ok request"
	if slo := s.slo.String(); slo != "" {
		bound = "ok and " + strings.ReplaceAll(slo, ",", ", ")
	}
	out.Line("goodput", "%s requests/s (%s)", rate(l.Good), bound)
	of := "expected"
	if l.Unjudged > 0 {
		of = "expected and judged"
	}
	out.Line("attainment", "%s: %d of %d %s", shareText(l.Attainment()), l.Good, l.Judged(), of)
	out.Line("service attainment", "%s: %d of %d eligible", shareText(l.ServiceAttainment()), l.Good, l.Eligible)
	if l.Unjudged > 0 {
		out.Line("not judged", "%d of %d ok (%s), not in the attainments: the time between tokens may be on either side of its bound", l.Unjudged,
			l.Outcomes[measure.OK], number.Percent(l.Unjudged, l.Outcomes[measure.OK]))
	}
	for _, m := range s.misses(l) {
		head := fmt.Sprintf("%s %v", beyond(m.bound), m.bound)
		out.Line(head, "%d of %d expected (%s)", m.requests, l.Expected, number.Percent(m.requests, l.Expected))
	}
	s.writeSessions(out, l.Sessions)
	_, err := io.WriteString(w, out.String())
	return err
}

func (s *Summary) writeLatencies(out *terminal.Table, extra []float64) {
	percentiles := Percentiles(tablePercentiles, extra)
	head := []string{"ms", "count", "mean", "std", "min"}
	for _, p := range percentiles {
		head = append(head, PercentileName(p))
	}
	rows := [][]string{append(head, "max")}
	approximate := false
	add := func(name string, sample *stats.Sample) {
		d := sample.Durations()
		if d.Approximate {
			approximate = true
			name += " *"
		}
		values := []time.Duration{d.Mean, d.Std, d.Min}
		for _, p := range percentiles {
			values = append(values, sample.Percentile(p))
		}
		cells := []string{name, strconv.FormatInt(d.N, 10)}
		for _, v := range append(values, d.Max) {
			cell := "-"
			if d.N > 0 {
				cell = number.Cell(float64(v) / float64(time.Millisecond))
			}
			cells = append(cells, cell)
		}
		rows = append(rows, cells)
	}
	for _, q := range ownTable {
		if q.Quantity == measure.E2E {
			add("ITL", &s.itl)
		}
		add(q.name, &s.samples[q.Quantity])
	}
	add("connect time", &s.connect)
	out.Rows(rows, slices.DeleteFunc([]string{"p25", "p75", "std", "min"}, func(name string) bool {
		return slices.ContainsFunc(extra, func(p float64) bool { return name == PercentileName(p) })
	}))
	if approximate {
		out.Wrapped("* percentiles within 0.1 %: ", fmt.Sprintf("of more than %d values a log histogram is kept; the other columns are exact", stats.ExactValues), 2)
	}
}

// writeBlurred prints the coalesced reads if there were many.
func (s *Summary) writeBlurred(out *terminal.Table) {
	if !s.blurred() {
		return
	}
	reads, delay := "", s.readDelay.Durations()
	if delay.N > 0 {
		reads = fmt.Sprintf(" of %d (%s)", delay.N, number.Percent(s.merged, delay.N))
	}
	fmt.Fprintln(out)
	out.Line("coalesced reads", "%d%s held several chunks: the times of all but the last chunk are too late", s.merged, reads)
	if delay.N > 0 {
		out.Line("read delay", "mean %s, p99 %s, from the arrival of bytes to their read", number.Latency(delay.Mean), number.Latency(s.readDelay.Percentile(99)))
	}
	if s.inside > 0 {
		out.Line("ITL without", "%d gaps between chunks (%s) that are inside a read", s.inside, number.Percent(s.inside, s.inside+s.itl.Durations().N))
	}
	out.Line("its causes", "%s", CoalescedCauses)
}

// Missed returns one line: the bounds that a run broke, in how many of the expected requests and by how much, and the
// wanted attainment least, 0 to 1.
func (s *Summary) Missed(l measure.Ledger, least float64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var parts []string
	for _, m := range s.misses(l) {
		p99 := ""
		if m.p99 > 0 {
			p99 = fmt.Sprintf(", p99 %v", number.Precise(m.p99))
		}
		bound := beyond(m.bound) + " " + m.bound.Text(m.bound.Limit)
		parts = append(parts, fmt.Sprintf("%v: %d of %d requests (%s) %s%s, worst %s", m.bound.Quantity, m.requests,
			l.Expected, number.Percent(m.requests, l.Expected), bound, p99, short(m.bound, m.worst)))
	}
	if n := l.Expected - l.Outcomes[measure.OK]; n > 0 {
		parts = append(parts, fmt.Sprintf("%s: %d of %d (%s) did not end ok: %s",
			measure.SLOName(measure.SLOError), n, l.Expected, number.Percent(n, l.Expected), NotOK(l)))
	}
	return strings.Join(append(parts, fmt.Sprintf("attainment %s, want at least %v", shareText(l.Attainment()), least)), "; ")
}

// beyond returns the side of a bound on which a request breaks it: over or under.
func beyond(b measure.Bound) string {
	if b.Quantity.LargerIsBetter() {
		return "under"
	}
	return "over"
}

// short formats a value of the bounded quantity with four or more digits.
func short(b measure.Bound, value float64) string {
	if b.Quantity.Unit() == measure.Milliseconds {
		return number.Precise(measure.FromMilliseconds(value))
	}
	return strconv.FormatFloat(value, 'g', 6, 64)
}

// NotOK counts the requests that did not end ok, by outcome and drop reason: "3 connect, 1 dropped overload".
func NotOK(l measure.Ledger) string {
	var parts []string
	for _, o := range measure.Outcomes() {
		if n := l.Outcomes[o]; n > 0 && o != measure.OK {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	for _, r := range measure.DropReasons() {
		if n := l.Dropped[r]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d dropped %s", n, r))
		}
	}
	return strings.Join(parts, ", ")
}

// writeSessions prints how the sessions ended, how long the ok ones took and in which parts, if there were any.
func (s *Summary) writeSessions(out *terminal.Table, of measure.Sessions) {
	if of.IsZero() {
		return
	}
	fmt.Fprintln(out)
	out.Line("sessions", "%s", SessionsText(of))
	if d := s.makespans.Durations(); d.N > 0 {
		out.Line("makespan", "mean %s, p50 %s, p90 %s, max %s; %s requests a session", long(d.Mean), long(s.makespans.Percentile(50)),
			long(s.makespans.Percentile(90)), long(d.Max), number.Cell(float64(of.Requests)/float64(d.N)))
		out.Line("session time", "%s", SessionTimeText(of.Time))
	}
	if of.Prompt > 0 {
		out.Line("cached", "%s of the prompt tokens of ok sessions", number.Percent(of.Cached, of.Prompt))
	}
	bound := "ok"
	if s.sessions.Makespan > 0 {
		bound = "ok within " + s.sessions.Makespan.String()
	}
	out.Line("session attainment", "%s: %d of %d eligible (%s)", shareText(of.Attainment()), of.Good, of.Eligible(), bound)
}

// long formats a makespan: 18m40s, and below a minute as latencies are: 7.21 s.
func long(d time.Duration) string {
	if d < time.Minute {
		return number.Latency(d)
	}
	return d.Round(time.Second).String()
}

// SessionsText counts sessions by how they ended: "12: 10 ok, 2 failed".
func SessionsText(of measure.Sessions) string {
	var parts []string
	for _, o := range measure.SessionOutcomes() {
		if n := of.Outcomes[o]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, o))
		}
	}
	if of.InProgress > 0 {
		parts = append(parts, fmt.Sprintf("%d in progress", of.InProgress))
	}
	return fmt.Sprintf("%d: %s", of.Begun, strings.Join(parts, ", "))
}

// SessionTimeText says how much of the time of ok sessions each part took: "61 % tools, 0.1 % lateness, …".
func SessionTimeText(t measure.SessionTime) string {
	parts := make([]string, len(t))
	for p, d := range t {
		parts[p] = fmt.Sprintf("%s %s", number.Percent(d, max(t.Sum(), time.Nanosecond)), measure.SessionPart(p))
	}
	return strings.Join(parts, ", ") + " along the critical path"
}

// failed returns the outcomes other than ok that occurred, the most frequent first. The lock is held.
func (s *Summary) failed(l measure.Ledger) []measure.Outcome {
	return slices.SortedFunc(maps.Keys(s.failures), func(a, b measure.Outcome) int {
		return cmp.Or(cmp.Compare(l.Outcomes[b], l.Outcomes[a]), cmp.Compare(a, b))
	})
}

// Failure returns the text of the first request of the most frequent failure, and the model that its row names. They are
// empty if no request failed.
func (s *Summary) Failure(l measure.Ledger) (text, model string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.failed(l) {
		return s.failures[o].text, s.failures[o].model
	}
	return "", ""
}

// WriteFailures prints a line for each outcome other than ok that occurred, the most frequent first, wrapped at width; 0:
// not wrapped. It prints nothing when no request failed.
func (s *Summary) WriteFailures(w io.Writer, l measure.Ledger, width int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.failures) == 0 {
		return nil
	}
	out := &terminal.Table{Columns: width}
	fmt.Fprintln(out, "\nthe first request of each failure")
	for _, o := range s.failed(l) {
		out.Line(string(o), "%s: %s", s.failures[o].id, s.failures[o].text)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
