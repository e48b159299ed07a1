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
	canary.Judgement
	canary.Options
	History   *canary.History
	Workloads [2]string // of both sides: request ids begin with them
	Settings  []Fact
}

// titles are the verdicts in words.
var titles = map[canary.Verdict]string{
	canary.Pass:      "The candidate is not worse than the baseline",
	canary.Fail:      "The candidate is worse than the baseline",
	canary.Undecided: "It is not proven that the candidate is worse, nor that it is not",
}

// names are the metrics as headings.
var names = [...]string{"TTFT", "TPOT", "e2e", "tail", "queued", "bad"}

// Page returns the page. The caller sets the footer.
func (c Canary) Page() Page {
	p := Page{Title: titles[c.Verdict], Lead: upper(c.Text(c.Options)) + ".", Tiles: c.tiles()}
	for _, s := range []Section{c.figures(), c.ratios(), c.shares(), c.evidence(), c.slowest(), c.bad(), c.settings()} {
		if s.Title != "" {
			p.Sections = append(p.Sections, s)
		}
	}
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
		if c.Reason == canary.FewBlocks && c.BlockTime > 0 && c.More > 0 {
			left.Text = (time.Duration(c.More) * c.BlockTime).Round(time.Second).String()
			left.Note = "about, if blocks go on like these"
		}
		tiles = append(tiles, left)
	} else {
		tiles = append(tiles, Tile{Name: "Chance of being wrong", Text: fmt.Sprintf("≤ %.4g %%", 100*c.Alpha), Note: "however long and often one looks"})
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
	if n := c.Metrics[canary.Bad].Blocks; n > 0 {
		pairs.Note = fmt.Sprintf("%s of %s; %s", number.Count(int(n), "block"), number.Value(c.BlockTime.Seconds(), "s"), pairs.Note)
	}
	return append(tiles, pairs)
}

// intervalOf returns the interval of a latency's ratio in words.
func intervalOf(m *canary.MetricState) string {
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
			latencies = append(latencies, names[m.Metric]+" × "+terminal.RatioOrExcess(&m))
		}
	}
	s := Section{Title: "The candidate against the baseline: " + strings.Join(latencies, ", "), Short: "Figures"}
	if len(latencies) == 0 {
		s.Title = "There is no block with latencies"
	}
	rows := terminal.ComparisonRows(&c.Judgement, c.Options)
	if len(rows) > 1 {
		t := chart.Table{Rows: rows[1:]}
		for i, name := range rows[0] {
			t.Columns = append(t.Columns, chart.Column{Name: name, Text: i == 0})
		}
		s.Tables = []chart.Table{t}
		s.Text = append(s.Text, fmt.Sprintf("A ratio is a median over blocks. Its interval holds the ratio with a chance of %.4g %% or more, however often one looks. "+
			"The evidence that the candidate is worse by more than the tolerance must reach %.0f for a fail; the evidence that a latency is not must reach %.0f for a pass.",
			100*(1-c.Alpha-c.Alpha/float64(len(canary.Metrics))), math.Pow(10, c.FailLog10()), math.Pow(10, c.PassLog10())))
	}
	for _, why := range canary.Skips {
		if n := c.Skipped[why]; n > 0 {
			s.Text = append(s.Text, fmt.Sprintf("%s gave no value for latencies: %s.", number.Count(int(n), "block"), skips[why]))
		}
	}
	if n := c.Pairs.Judged; c.Verdict == canary.Pass && n > 0 {
		s.Text = append(s.Text, fmt.Sprintf("A pass says nothing about rare errors: one that hits %.2g %% of the requests stays unseen in %s with a chance of 5 %%.",
			-100*math.Expm1(math.Log(0.05)/float64(n)), number.Count(int(n), "pair")))
	}
	return s
}

func (c Canary) settings() Section {
	t := chart.Table{Columns: []chart.Column{{Name: "setting", Text: true}, {Name: "value", Text: true}}}
	for _, f := range c.Settings {
		t.Rows = append(t.Rows, []string{f.Name, f.Text})
	}
	share := func(name string, v float64) {
		t.Rows = append(t.Rows, []string{name, fmt.Sprintf("%.4g %%", 100*v)})
	}
	share("tolerance", c.Tolerance)
	share("alpha", c.Alpha)
	for _, m := range []canary.Metric{canary.Tail, canary.Queued, canary.Bad} {
		share("tolerance of "+m.String(), c.ToleranceOf(m))
	}
	t.Rows = append(t.Rows, []string{"least pairs of a block", number.Whole(c.MinPairs)}, []string{"least time of a block", c.MinTime.String()})
	return Section{Title: "Settings", Tables: []chart.Table{t}}
}
