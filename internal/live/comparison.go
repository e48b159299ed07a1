package live

import (
	"fmt"
	"math"
	"strconv"

	"replayd/internal/canary"
	"replayd/internal/comparison"
)

type compared struct {
	Name  string      `json:"name"`
	Level level       `json:"level"`
	Text  string      `json:"text"` // the verdict, or what has changed; then sides, pairs and begin
	Rows  [][4]string `json:"rows"` // metric; ratio or excess; interval; evidence, as a share of what a fail or an alarm needs
}

// readComparisons asks for the state of all comparisons. It is called without the lock.
func (b *Board) readComparisons() []compared {
	all := []compared{}
	if b.options.Comparisons == nil {
		return all
	}
	for _, c := range b.options.Comparisons() {
		all = append(all, comparedOf(&c))
	}
	return all
}

func comparedOf(c *comparison.Status) compared {
	j := &c.Judgment
	said := j.Text(c.Options)
	if answers := j.Answers.Text(); answers != "" {
		said += "; " + answers
	}
	if spent := c.Spent(); spent != "" {
		said += "; " + spent
	}
	of := ""
	if c.Version != "" {
		of = ", version " + strconv.Quote(c.Version)
	}
	out := compared{
		Name: c.Name, Rows: [][4]string{},
		Text: fmt.Sprintf("%s. %s goes to %s (baseline) and %s (candidate): %d pairs, %d void, since %s%s", said,
			c.Workload, c.Baseline, c.Candidate+of, j.Pairs.Judged, j.Pairs.Void,
			c.Epoch.UTC().Format("2006-01-02 15:04:05Z"), accountOf(&j.Account)),
	}
	if c.Options.Mode == canary.ModeWatch {
		out.watch(j)
		return out
	}
	switch {
	case j.Verdict == canary.Fail:
		out.Level = bad
	case j.Verdict == canary.Pass:
		out.Level = well
	case j.Reason != canary.FewBlocks && j.Reason != canary.FewPairs && j.Reason != canary.NoData:
		out.Level = strained
	}
	for _, s := range j.Metrics {
		interval := "–"
		if s.Metric.IsLatency() && s.Lower > 0 && !math.IsInf(s.Upper, 0) {
			interval = fmt.Sprintf("%.3f to %.3f", s.Lower, s.Upper)
		}
		if s.Blocks > 0 {
			out.row(s.Metric, s.RatioText(), s.Excess, interval, s.WorseLog10/c.Options.FailLog10())
		}
	}
	return out
}

func accountOf(a *canary.Account) string {
	if a.Due == 0 {
		return ""
	}
	text := fmt.Sprintf("; since the start of replayd %d came due, %d are open", a.Due, a.Open())
	if a.Pairs.Void > 0 {
		text += ", void: " + a.Pairs.Voids.Text()
	}
	for side, r := range a.Requests {
		text += fmt.Sprintf("; %s: %d sent, %d never sent, %d bad", canary.Side(side), r.Sent, r.Unsent, a.Pairs.Bad[side])
	}
	return text
}

// watch fills in a comparison that never ends.
func (c *compared) watch(j *canary.Judgment) {
	c.Level = well
	if j.Reason != "" {
		c.Level = strained
	}
	for _, s := range j.Watch {
		if s.Direction == canary.Slower || s.Direction == canary.More {
			c.Level = bad
		}
		evidence := 0.0
		for _, p := range s.Progress {
			evidence = max(evidence, p.Log10/s.BoundLog10)
		}
		if s.Blocks > 0 {
			c.row(s.Metric, fmt.Sprintf("%.3f", s.Ratio), s.Excess, "–", evidence)
		}
	}
}

// row adds the figures of a metric. evidence is how far it has come on the way to its bound, by their logarithms.
func (c *compared) row(m canary.Metric, ratio string, excess float64, interval string, evidence float64) {
	figure := fmt.Sprintf("%+.2f %%", 100*excess)
	if m.IsLatency() {
		figure = "× " + ratio
	}
	c.Rows = append(c.Rows, [4]string{m.String(), figure, interval, fmt.Sprintf("%.0f %%", 100*max(0, min(1, evidence)))})
}
