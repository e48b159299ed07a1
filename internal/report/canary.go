package report

import (
	"fmt"
	"math"
	"strings"
	"time"

	"replayd/internal/canary"
	"replayd/internal/chart"
	"replayd/internal/number"
	"replayd/internal/terminal"
)

// A Canary is a comparison of two servers by pairs, as its page shows it. Its words and figures are those of package terminal.
type Canary struct {
	canary.Judgment
	canary.Options
	History   *canary.History
	Workloads [2]string // of both sides: request ids begin with them
	Settings  Facts
}

var titles = map[canary.Verdict]string{
	canary.Pass:      "The candidate is not worse than the baseline",
	canary.Fail:      "The candidate is worse than the baseline",
	canary.Undecided: "It is not proven that the candidate is worse, nor that it is not",
}

var names = [...]string{"TTFT", "TPOT", "e2e", "tail", "queued", "bad"}

// Page returns the page. The caller sets the footer.
func (c Canary) Page() Page {
	p := Page{Title: titles[c.Verdict], Lead: upper(c.Text(c.Options)) + ".", Tiles: c.tiles()}
	if answers := c.Answers.Text(); answers != "" {
		p.Lead += " " + upper(answers) + "."
	}
	p.Add(c.figures(), c.answers(), c.ratios(), c.shares(), c.evidence(), c.slowest(), c.bad(), c.settings())
	return p
}

func (c Canary) tiles() []Tile {
	verdict := Tile{Name: "Verdict", Text: string(c.Verdict)}
	switch c.Verdict {
	case canary.Pass:
		verdict.Level, verdict.Note = Good, "for each latency"
	case canary.Fail:
		verdict.Level, verdict.Note = Bad, "because of "+names[c.Metric]
	default:
		verdict.Text, verdict.Level, verdict.Note = "none", Poor, "undecided: "+string(c.Reason)
	}
	tiles := []Tile{verdict}
	if c.Verdict == canary.Undecided {
		left := Tile{Name: "Time left", Text: "not known"}
		if c.BlockTime > 0 && c.More > 0 {
			left.Text = (time.Duration(c.More) * c.BlockTime).Round(time.Second).String()
			left.Note = "about, if blocks go on like these"
		}
		tiles = append(tiles, left)
	} else {
		note := fmt.Sprintf("if equal servers wander by %.4g %% at most", 100*c.Wander)
		if c.Require == canary.ScopePods {
			note = "if pods are drawn by chance from one kind of machine"
		}
		tiles = append(tiles, Tile{Name: "Wrong in at most", Text: fmt.Sprintf("%.4g %%", 100*c.Alpha), Note: note})
	}
	for _, m := range c.Metrics {
		if m.Blocks == 0 || !m.Metric.IsLatency() && !m.Failed {
			continue
		}
		t := Tile{Name: names[m.Metric] + " ratio", Text: terminal.RatioOrExcess(&m), Note: intervalOf(&m)}
		if !m.Metric.IsLatency() {
			t.Name, t.Note = "Excess of "+names[m.Metric]+" requests", "candidate less baseline"
		}
		switch {
		case m.Failed:
			t.Level = Bad
		case m.Passed:
			t.Level = Good
		}
		tiles = append(tiles, t)
	}
	pairs := Tile{Name: "Pairs", Text: number.Whole(c.Pairs.Judged), Note: "void: " + number.Whole(c.Pairs.Void)}
	if c.Useful > 0 {
		pairs.Note = fmt.Sprintf("%s of %s; %s", number.Count(int(c.Useful), "block"), number.Value(c.BlockTime.Seconds(), "s"), pairs.Note)
	}
	return append(tiles, pairs)
}

func intervalOf(m *canary.MetricState) string {
	if !m.Changed.IsZero() {
		return terminal.Interval(m)
	}
	if m.Lower == 0 && math.IsInf(m.Upper, 1) {
		return "no interval yet"
	}
	return "interval " + terminal.Interval(m)
}

// skips says why a block gives no bits for latencies.
var skips = map[canary.Skip]string{
	canary.SkipVoid:     "over 10 % of the pairs were void, by a fault of replayd's own",
	canary.SkipFewCalm:  "too few pairs met no queue",
	canary.SkipNoValues: "no pair had latencies on both sides",
}

// figures is the table of the terminal, and what is needed to read it.
func (c Canary) figures() Section {
	var latencies []string
	for _, m := range c.Metrics {
		if m.Metric.IsLatency() && m.Blocks > 0 {
			latencies = append(latencies, names[m.Metric]+" × "+m.RatioText())
		}
	}
	s := Section{Title: "The candidate against the baseline: " + strings.Join(latencies, ", "), Short: "Figures"}
	if len(latencies) == 0 {
		s.Title = "There is no block with latencies"
	}
	rows := terminal.ComparisonRows(&c.Judgment, c.Options)
	if len(rows) > 1 {
		s.Tables = []chart.Table{{Columns: chart.Columns(rows[0]...), Rows: rows[1:]}}
		s.Text = append(s.Text, fmt.Sprintf("A ratio is a median over blocks. Its interval holds the ratio with a chance of %.4g %% or more, however often one looks, if equal servers wander by %.4g %% at most. "+
			"The evidence that the candidate is worse by more than the tolerance must reach %.0f for a fail; the evidence that a latency is not must reach %.0f for a pass.",
			100*(1-c.Alpha-c.Alpha/float64(len(canary.Metrics))), 100*c.Wander, math.Pow(10, c.FailLog10()), math.Pow(10, c.PassLog10())))
	}
	for _, line := range terminal.Account(&c.Account) {
		s.Text = append(s.Text, upper(line)+".")
	}
	for _, why := range canary.Skips {
		if n := c.Skipped[why]; n > 0 {
			s.Text = append(s.Text, fmt.Sprintf("%s gave no value for latencies: %s.", number.Count(int(n), "block"), skips[why]))
		}
	}
	for _, m := range []canary.Metric{canary.Tail, canary.Queued, canary.Bad} {
		if state := &c.Metrics[m]; state.Blocks > 0 && !math.IsInf(state.ExcessUpper, 0) {
			s.Text = append(s.Text, fmt.Sprintf("%s: the candidate has at most %.2g %% of its requests more than the baseline, with a chance of %.4g %%; a pass needs at most %.4g %%.",
				upper(names[m]), 100*state.ExcessUpper, 100*(1-c.Alpha), 100*c.ToleranceOf(m)))
		}
	}
	if text := c.Findable(c.Options); text != "" {
		s.Text = append(s.Text, upper(text)+".")
	}
	if text := c.UnknownLoads(); text != "" {
		s.Text = append(s.Text, upper(text)+".")
	}
	if !math.IsNaN(c.Calm) {
		s.Text = append(s.Text, fmt.Sprintf("Latencies are those of the requests that met no queue, %.0f %% of those with latencies.", 100*c.Calm))
	}
	return s
}

func (c Canary) settings() Section {
	t := chart.Table{Columns: chart.Columns("setting", "<value")}
	for _, f := range c.Settings {
		t.Rows = append(t.Rows, []string{f.Name, f.Text})
	}
	share := func(name string, v float64) {
		t.Rows = append(t.Rows, []string{name, fmt.Sprintf("%.4g %%", 100*v)})
	}
	share("tolerance", c.Tolerance)
	share("wander", c.Wander)
	share("alpha", c.Alpha)
	for _, m := range []canary.Metric{canary.Tail, canary.Queued, canary.Bad} {
		share("tolerance of "+m.String(), c.ToleranceOf(m))
	}
	t.Rows = append(t.Rows, []string{"least pairs of a block", number.Whole(c.MinPairs)}, []string{"least time of a block", c.MinTime.String()},
		[]string{"warm-up", c.WarmUp.String()}, []string{"a verdict is about", map[canary.Scope]string{canary.ScopePair: "the pair of servers", canary.ScopePods: "the version"}[c.Require]})
	return Section{Title: "Settings", Tables: []chart.Table{t}}
}

// answers is the table of lengths and finish reasons by side. It has no title where the servers tell neither.
func (c Canary) answers() Section {
	a := &c.Answers
	reported := a.Known > 0
	t := chart.Table{Columns: chart.Columns("", "baseline", "candidate")}
	add := func(name string, of func(side canary.Side) string) {
		t.Rows = append(t.Rows, []string{name, of(canary.Baseline), of(canary.Candidate)})
	}
	if reported {
		add("output tokens, median", func(side canary.Side) string { return number.Whole(a.Median[side]) })
		add("output tokens, all", func(side canary.Side) string { return number.Whole(a.Tokens[side]) })
	}
	for f, of := range canary.Finishes {
		if n := a.Finishes[canary.Baseline][f] + a.Finishes[canary.Candidate][f]; n > 0 {
			reported = reported || of != canary.NoFinish
			add("finish reason "+of.String(), func(side canary.Side) string {
				return fmt.Sprintf("%.3g %%", 100*float64(a.Finishes[side][f])/float64(a.Pairs))
			})
		}
	}
	if !reported {
		return Section{}
	}
	text := a.Text()
	if text == "" {
		text = "no reliable difference"
	}
	s := Section{Title: "Answers, which are not judged", Short: "Answers", Tables: []chart.Table{t}}
	s.Text = append(s.Text, fmt.Sprintf("%s. They are those of the %s with an answer of each side.", upper(text),
		number.Count(int(a.Pairs), "judged pair")))
	if a.Known > 0 {
		s.Text = append(s.Text, fmt.Sprintf("The candidate's answer is longer in %s and shorter in %s; the median of candidate ÷ baseline is %.2f.",
			number.Count(int(a.Longer), "pair"), number.Count(int(a.Shorter), "pair"), a.Ratio))
	}
	return s
}
