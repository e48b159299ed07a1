package result

import (
	"fmt"
	"io"
	"math"
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

// tabled are the quantities of the table, with their names in it. ITL is not a quantity of a request and is shown
// before e2e.
var tabled = []struct {
	measure.Quantity
	name string
}{{measure.TTFT, "TTFT"}, {measure.TTFAT, "TTFAT"}, {measure.TTFTFromDue, "TTFT from due"}, {measure.TPOT, "TPOT"}, {measure.E2E, "e2e"}, {measure.E2EFromDue, "e2e from due"}, {measure.Lateness, "lateness"}}

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
	if l.Filtered > 0 {
		out.Line("filtered", "%d, not expected", l.Filtered)
	}
	s.writeBlurred(out)

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
	out.Line("attainment", "%s: %d of %d expected", shareText(l.Attainment()), l.Good, l.Expected)
	out.Line("service attainment", "%s: %d of %d eligible", shareText(l.ServiceAttainment()), l.Good, l.Eligible)
	for _, m := range s.misses(l) {
		if m.bound.Limit > 0 { // what did not end ok stands above
			out.Line(fmt.Sprintf("%s %v", beyond(m.bound), m.bound), "%d of %d expected (%s)", m.requests, l.Expected, number.Percent(m.requests, l.Expected))
		}
	}
	s.writeSessions(out, l.Sessions)
	_, err := io.WriteString(w, out.String())
	return err
}

// writeLatencies writes a line for each quantity.
func (s *Summary) writeLatencies(out *terminal.Table, extra []float64) {
	percentiles := slices.Concat(tablePercentiles, extra)
	slices.Sort(percentiles)
	percentiles = slices.Compact(percentiles)
	head := []string{"ms", "count", "mean", "std", "min"}
	for _, p := range percentiles {
		head = append(head, "p"+strconv.FormatFloat(p, 'f', -1, 64))
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
	for _, q := range tabled {
		if q.Quantity == measure.E2E {
			add("ITL", &s.itl)
		}
		add(q.name, &s.samples[q.Quantity])
	}
	out.Rows(rows, slices.DeleteFunc([]string{"p25", "p75", "std", "min"}, func(name string) bool {
		return slices.ContainsFunc(extra, func(p float64) bool { return name == "p"+strconv.FormatFloat(p, 'f', -1, 64) })
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
}

// shareText formats a share with four digits. It truncates: a share just below a bound must not look as if it reached
// the bound.
func shareText(share float64, known bool) string {
	if !known {
		return "no data"
	}
	return fmt.Sprintf("%.4f", math.Floor(share*1e4+1e-9)/1e4)
}

// Missed returns one line: the bounds that a run broke, in how many of the expected requests and by how much, and the
// wanted attainment least, 0 to 1.
func (s *Summary) Missed(l measure.Ledger, least float64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var parts []string
	for _, m := range s.misses(l) {
		if m.bound.Limit > 0 {
			p99 := ""
			if m.p99 > 0 {
				p99 = fmt.Sprintf(", p99 %v", number.Precise(m.p99))
			}
			parts = append(parts, fmt.Sprintf("%s: %d of %d requests (%s) %s %s%s, worst %s", m.slo, m.requests, l.Expected, number.Percent(m.requests, l.Expected),
				beyond(m.bound), m.bound.Text(m.bound.Limit), p99, short(m.bound, m.worst)))
			continue
		}
		parts = append(parts, fmt.Sprintf("%s: %d of %d (%s) did not end ok: %s", m.slo, m.requests, l.Expected, number.Percent(m.requests, l.Expected), NotOK(l)))
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
