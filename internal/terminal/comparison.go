package terminal

import (
	"fmt"
	"log/slog"
	"math"
	"strings"
	"time"

	"replayd/internal/canary"
	"replayd/internal/number"
)

// Comparison returns the state of a comparison as a table and a sentence, in lines of at most so many columns; 0: of any length.
func Comparison(j *canary.Judgment, o canary.Options, columns int) string {
	t := &Table{Columns: columns}
	if rows := ComparisonRows(j, o); len(rows) > 1 {
		t.Rows(rows, []string{"candidate worse", "blocks", "interval"})
	}
	fmt.Fprintf(t, "pairs: %d, void: %d\n", j.Pairs.Judged, j.Pairs.Void)
	for _, line := range Account(&j.Account) {
		t.Wrapped("", line, 2)
	}
	if answers := j.Answers.Text(); answers != "" {
		t.Wrapped("", answers, 2)
	}
	if text := j.Findable(o); text != "" {
		t.Wrapped("", "pods: "+text, 2)
	}
	if text := j.UnknownLoads(); text != "" {
		t.Wrapped("", "loads: "+text, 2)
	}
	t.Wrapped("", "verdict: "+j.Text(o), 2)
	return t.String()
}

// Account says what has become of all rows of a comparison: of the pairs, and of the requests of each side. It has no line before a row came due.
func Account(a *canary.Account) (lines []string) {
	if a.Due == 0 {
		return nil
	}
	void := ""
	if a.Pairs.Void > 0 {
		void = " (" + a.Pairs.Voids.Text() + ")"
	}
	lines = append(lines, fmt.Sprintf("rows that came due: %d; judged: %d, void: %d%s, open: %d", a.Due, a.Pairs.Judged, a.Pairs.Void, void, a.Open()))
	for side, r := range a.Requests {
		lines = append(lines, fmt.Sprintf("%s: %d sent, %d never sent; %d bad in judged pairs", canary.Side(side), r.Sent, r.Unsent, a.Pairs.Bad[side]))
	}
	return lines
}

// ComparisonRows returns the headings of a comparison's table and a row for each metric with values.
func ComparisonRows(j *canary.Judgment, o canary.Options) [][]string {
	rows := [][]string{{"metric", "blocks", "candidate worse", "ratio or excess", "interval", "evidence worse", "evidence not worse"}}
	evidence := func(log10, bound float64) string {
		return fmt.Sprintf("%.3g of %.0f", math.Pow(10, log10), math.Pow(10, bound))
	}
	for _, m := range j.Metrics {
		if m.Blocks == 0 {
			continue
		}
		row := []string{m.Metric.String(), fmt.Sprint(m.Blocks), fmt.Sprint(m.Worse), RatioOrExcess(&m), Interval(&m), evidence(m.WorseLog10, o.FailLog10()), ""}
		if m.Metric.IsLatency() {
			row[6] = evidence(m.NotWorseLog10, o.PassLog10())
		}
		rows = append(rows, row)
	}
	return rows
}

// RatioOrExcess formats the ratio of a latency and the excess of a share.
func RatioOrExcess(m *canary.MetricState) string {
	switch {
	case m.Blocks == 0:
		return "–"
	case m.Metric.IsLatency():
		return m.RatioText()
	}
	return fmt.Sprintf("%+.2f %%", 100*m.Excess)
}

// Interval formats the interval of a latency's ratio, and the bound of a share's excess; "": there is none.
func Interval(m *canary.MetricState) string {
	switch {
	case !m.Metric.IsLatency() && math.IsInf(m.ExcessUpper, 0):
		return ""
	case !m.Metric.IsLatency():
		return fmt.Sprintf("at most %+.2f %%", 100*m.ExcessUpper)
	case !m.Changed.IsZero():
		return "changed at " + m.Changed.UTC().Format("15:04") + " UTC"
	}
	bound := func(v float64) string {
		if v == 0 || math.IsInf(v, 0) {
			return "?"
		}
		return fmt.Sprintf("%.3f", v)
	}
	return bound(m.Lower) + " to " + bound(m.Upper)
}

// Comparing shows a comparison while it runs: as a table on a terminal, otherwise in a log.
type Comparing struct {
	screen  *Screen
	log     *slog.Logger
	options canary.Options
	longest time.Duration
	begin   time.Time
	logged  time.Time // time of the latest log line
}

// NewComparing starts to show a comparison that takes at most longest. Without a screen it writes to the log.
func NewComparing(s *Screen, log *slog.Logger, o canary.Options, longest time.Duration) *Comparing {
	now := time.Now()
	return &Comparing{screen: s, log: log, options: o, longest: longest, begin: now, logged: now}
}

// Judged shows the state. The log gets a line every 30 seconds.
func (c *Comparing) Judged(j *canary.Judgment) {
	now := time.Now()
	switch {
	case c.screen != nil:
		c.screen.Draw(c.lines(j, now.Sub(c.begin), c.screen.Width()-1)...)
	case now.Sub(c.logged) >= 30*time.Second:
		c.logged = now
		c.log.Info("comparing", "pairs", j.Pairs.Judged, "void", j.Pairs.Void, "undecided", j.Why(c.options))
	}
}

// End removes the table.
func (c *Comparing) End() {
	if c.screen != nil {
		c.screen.Draw()
	}
}

func (c *Comparing) lines(j *canary.Judgment, elapsed time.Duration, columns int) []string {
	t := &Table{Columns: columns}
	o := &c.options
	t.Wrapped("", fmt.Sprintf("%s of at most %s  %s, %d void  %s", seconds(elapsed), seconds(c.longest),
		number.Count(int(j.Pairs.Judged), "pair"), j.Pairs.Void, number.Count(int(j.Blocks), "block")), 2)
	rows := [][]string{{"metric", "ratio or excess", "interval", "to a fail", "to a pass"}}
	for _, m := range j.Metrics {
		if m.Blocks == 0 {
			continue
		}
		row := []string{m.Metric.String(), RatioOrExcess(&m), Interval(&m), way(m.WorseLog10, o.FailLog10()), ""}
		if m.Metric.IsLatency() {
			row[4] = way(m.NotWorseLog10, o.PassLog10())
		} else if m.Excess <= o.ToleranceOf(m.Metric) {
			row[3] = "tolerated"
		}
		if m.Passed {
			row[4] = "passed"
		}
		rows = append(rows, row)
	}
	if len(rows) > 1 {
		t.Rows(rows, []string{"to a pass", "to a fail"})
	}
	if answers := j.Answers.Text(); answers != "" {
		t.Wrapped("", answers, 2)
	}
	t.Wrapped("", j.Text(*o), 2)
	lines := strings.Split(strings.TrimSuffix(t.String(), "\n"), "\n")
	for i := range lines {
		lines[i] = cut(lines[i], columns)
	}
	return lines
}

// way is how much of its bound the evidence has, both as logarithms: blocks of one kind move it evenly.
func way(log10, bound float64) string {
	return fmt.Sprintf("%d %%", int(100*max(0, min(1, log10/bound)))) // 100 only when it has all
}
