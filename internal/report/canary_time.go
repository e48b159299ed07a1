package report

import (
	"fmt"
	"math"
	"slices"

	"replayd/internal/canary"
	"replayd/internal/chart"
	"replayd/internal/number"
	"replayd/internal/stats"
	"replayd/internal/terminal"
)

// A timeline is the kept blocks with their times: seconds from the first pair to the end of each.
type timeline struct {
	blocks []canary.Block
	at     []float64
	end    float64 // a little after the last block, so that the last state is seen
	note   string
}

func (c Canary) timeline() timeline {
	blocks, every := c.History.Blocks()
	l := timeline{blocks: blocks, note: "Each dot is a block."}
	if every > 1 {
		l.note = fmt.Sprintf("Each dot is a block; of %s blocks, one in %d is drawn.", number.Whole(blocks[len(blocks)-1].Number), every)
	}
	for _, b := range blocks {
		l.at = append(l.at, b.End.Sub(blocks[0].Begin).Seconds())
		l.end = 1.05 * l.at[len(l.at)-1]
	}
	return l
}

func (l timeline) axis() chart.Axis {
	return chart.Axis{Label: "time of the comparison", Unit: "s", Ends: [2]float64{0, l.end}}
}

// steps returns a line that keeps each value until the next block.
func (l timeline) steps(name string, ramp int, values []float64) chart.Series {
	return chart.Series{Name: name, Kind: chart.Step, Ramp: ramp, X: append(slices.Clone(l.at), l.end), Y: append(values, values[len(values)-1])}
}

func (l timeline) dots(values []float64) chart.Series {
	return chart.Series{Name: "a block", Kind: chart.Points, Soft: true, X: l.at, Y: values}
}

// each returns a value of each block. NaN is a gap.
func (l timeline) each(value func(b *canary.Block) float64) (values []float64) {
	for i := range l.blocks {
		values = append(values, value(&l.blocks[i]))
	}
	return values
}

func (c Canary) ratios() Section {
	s := Section{Short: "Over time"}
	l := c.timeline()
	for _, m := range canary.Metrics {
		if state := &c.Metrics[m]; m.IsLatency() && state.Blocks > 0 && len(l.blocks) > 0 {
			s.Plots = append(s.Plots, c.ratio(l, state))
		}
	}
	if len(s.Plots) > 0 {
		s.Title = "Ratio and interval over time"
		s.Plots[0].Note = l.note + " The line is their median so far, and the area its interval. It reaches over the edge where a bound is not known yet."
	}
	return s
}

func (c Canary) ratio(l timeline, m *canary.MetricState) chart.Plot {
	after := func(b *canary.Block) *canary.MetricState { return &b.Metrics[m.Metric].After }
	ratios := l.each(func(b *canary.Block) float64 { return b.Value(m.Metric) })
	lo, hi := ratioEnds(ratios, 1, 1+c.Tolerance, m.Ratio)
	inside := func(v float64) float64 { return min(hi, max(lo, v)) } // NaN stays
	known := func(v float64) float64 {
		if v < lo || v > hi {
			return math.NaN()
		}
		return v
	}
	state := func(value func(s *canary.MetricState) float64) []float64 {
		return l.each(func(b *canary.Block) float64 {
			if after(b).Blocks == 0 {
				return math.NaN()
			}
			return value(after(b))
		})
	}
	lower := state(func(s *canary.MetricState) float64 { return s.Lower })
	upper := state(func(s *canary.MetricState) float64 { return s.Upper })
	area := chart.Series{Kind: chart.Area} // as steps: a bound holds until the next block
	for i := range l.at {
		for _, x := range []float64{l.at[i], append(l.at, l.end)[i+1]} {
			area.Add(x, inside(upper[i]))
			area.Low = append(area.Low, inside(lower[i]))
		}
	}
	return chart.Plot{
		Title: fmt.Sprintf("%s: %s, %s", names[m.Metric], terminal.RatioOrExcess(m), intervalOf(m)),
		X:     l.axis(), Y: chart.Axis{Label: "candidate ÷ baseline", Ends: [2]float64{lo, hi}},
		Series: []chart.Series{
			area,
			l.dots(each(inside, ratios)),
			l.steps("ratio so far", 1, each(inside, state(func(s *canary.MetricState) float64 { return s.Ratio }))),
			l.steps("lower", 3, each(known, lower)),
			l.steps("upper", 3, each(known, upper)),
		},
		Marks: []chart.Mark{{Name: "tolerated to", At: 1 + c.Tolerance}, {Name: "equal:", At: 1}},
		Table: l.table(m.Metric),
	}
}

const maxRows = 100

// table returns the figures of blocks at equal distances, and of the latest one.
func (l timeline) table(m canary.Metric) *chart.Table {
	t := &chart.Table{Columns: chart.Columns("block", "ends at", "pairs", "calm", "ratio", "ratio so far", "interval")}
	step := (len(l.blocks) + maxRows - 1) / maxRows
	for i, b := range l.blocks {
		if i%step != 0 && i != len(l.blocks)-1 {
			continue
		}
		after, ratio := &b.Metrics[m].After, "–"
		if v := b.Value(m); !math.IsNaN(v) {
			ratio = fmt.Sprintf("%.3f", v)
		}
		t.Rows = append(t.Rows, []string{
			number.Whole(b.Number), number.Value(l.at[i], "s"), number.Whole(b.Pairs), number.Whole(b.Calm), ratio, terminal.RatioOrExcess(after), terminal.Interval(after),
		})
	}
	return t
}

func each(f func(float64) float64, values []float64) (all []float64) {
	for _, v := range values {
		all = append(all, f(v))
	}
	return all
}

// ratioEnds returns the ends of an axis that has all values but, of many, the farthest 2 % on either side, and some more values.
func ratioEnds(values []float64, more ...float64) (lo, hi float64) {
	values = slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(values) >= 50 {
		values = []float64{stats.PercentileOf(2, values), stats.PercentileOf(98, values)}
	}
	more = append(more, values...)
	lo, hi = slices.Min(more), slices.Max(more)
	step := chart.NiceStep(max(hi-lo, 0.01)/5, "")
	return step * math.Floor(lo/step-0.25), step * math.Ceil(hi/step+0.25)
}

func (c Canary) shares() Section {
	s := Section{Short: "Shares"}
	l := c.timeline()
	for _, m := range []canary.Metric{canary.Tail, canary.Queued, canary.Bad} {
		state := &c.Metrics[m]
		if state.Worse+state.Better == 0 || len(l.blocks) == 0 {
			continue
		}
		excess := func(b *canary.Block) float64 {
			if b.Metrics[m].After.Blocks == 0 {
				return math.NaN()
			}
			return 100 * b.Metrics[m].After.Excess
		}
		s.Plots = append(s.Plots, chart.Plot{
			Title: fmt.Sprintf("%s: excess of %s", upper(names[m]), terminal.RatioOrExcess(state)),
			X:     l.axis(), Y: chart.Axis{Label: "candidate − baseline, of requests", Unit: "%"},
			Series: []chart.Series{
				l.dots(l.each(func(b *canary.Block) float64 { return 100 * b.Value(m) })), l.steps("excess so far", 1, l.each(excess)),
			},
			Marks: []chart.Mark{{Name: "tolerated to", At: 100 * c.ToleranceOf(m)}},
		})
	}
	if len(s.Plots) > 0 {
		s.Title = "Shares of requests over time"
		s.Plots[0].Note = "Tail: much slower than the block's median pair. Queued: sent while an earlier request had no first token. Bad: failed or beyond the SLO."
	}
	return s
}

func (c Canary) evidence() Section {
	s := Section{Short: "Evidence", Title: "Evidence against its threshold"}
	l := c.timeline()
	if len(l.blocks) == 0 {
		return Section{}
	}
	plot := func(title, mark string, bound float64, all bool, log10 func(s *canary.MetricState) float64) {
		p := chart.Plot{Title: title, X: l.axis(), Marks: []chart.Mark{{Name: mark, At: math.Pow(10, bound)}}}
		lowest := 0.0
		for _, m := range canary.Metrics {
			if c.Metrics[m].Blocks == 0 || !all && !m.IsLatency() {
				continue
			}
			p.Series = append(p.Series, l.steps(names[m], 0, l.each(func(b *canary.Block) float64 {
				v := log10(&b.Metrics[m].After)
				lowest = min(lowest, v)
				return math.Pow(10, v)
			})))
		}
		p.Y = chart.Axis{Label: "evidence", Log: true, Ends: [2]float64{math.Pow(10, math.Floor(lowest)), math.Pow(10, bound+1)}}
		s.Plots = append(s.Plots, p)
	}
	plot("That the candidate is worse", "fail at", c.FailLog10(), true, func(m *canary.MetricState) float64 { return m.WorseLog10 })
	plot("That a latency is not worse", "pass at", c.PassLog10(), false, func(m *canary.MetricState) float64 { return m.NotWorseLog10 })
	s.Plots[0].Note = "A share fails only if its excess is above its tolerance too. For a pass every latency must reach the threshold."
	return s
}
