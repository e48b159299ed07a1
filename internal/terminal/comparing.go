package terminal

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"replayd/internal/canary"
	"replayd/internal/number"
)

// Comparing shows a comparison while it runs: as a table on a terminal, otherwise in a log.
type Comparing struct {
	screen  *Screen
	log     *slog.Logger
	options canary.Options
	longest time.Duration
	begin   time.Time
	said    time.Time // time of the latest log line
}

// NewComparing starts to show a comparison that takes at most longest. Without a screen it writes to the log.
func NewComparing(s *Screen, log *slog.Logger, o canary.Options, longest time.Duration) *Comparing {
	now := time.Now()
	return &Comparing{screen: s, log: log, options: o, longest: longest, begin: now, said: now}
}

// Judged shows the state. The log gets a line every 30 seconds.
func (c *Comparing) Judged(j *canary.Judgement) {
	now := time.Now()
	switch {
	case c.screen != nil:
		c.screen.Draw(c.lines(j, now.Sub(c.begin), c.screen.Width()-1)...)
	case now.Sub(c.said) >= 30*time.Second:
		c.said = now
		c.log.Info("comparing", "pairs", j.Pairs.Judged, "void", j.Pairs.Void, "undecided", j.Why(c.options))
	}
}

// End removes the table.
func (c *Comparing) End() {
	if c.screen != nil {
		c.screen.Draw()
	}
}

func (c *Comparing) lines(j *canary.Judgement, elapsed time.Duration, columns int) []string {
	t := &Table{Columns: columns}
	o := &c.options
	blocks := j.Metrics[canary.Bad].Blocks // it has a value of each block with a pair that is not void
	t.Wrapped("", fmt.Sprintf("%s of at most %s  %s, %d void  %s", seconds(elapsed), seconds(c.longest),
		number.Count(int(j.Pairs.Judged), "pair"), j.Pairs.Void, number.Count(int(blocks), "block")), 2)
	rows := [][]string{{"metric", "ratio or excess", "interval", "to a fail", "to a pass"}}
	for _, m := range j.Metrics {
		if m.Blocks == 0 {
			continue
		}
		row := []string{m.Metric.String(), RatioOrExcess(&m), "", way(m.WorseLog10, o.FailLog10()), ""}
		if m.Metric.IsLatency() {
			row[2], row[4] = Interval(&m), way(m.NotWorseLog10, o.PassLog10())
		} else if m.Excess <= o.ToleranceOf(m.Metric) {
			row[3] = "tolerated"
		}
		rows = append(rows, row)
	}
	if len(rows) > 1 {
		t.Rows(rows, []string{"to a pass", "to a fail"})
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
