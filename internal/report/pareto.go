package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// A ParetoPoint is what one run trades: what a user sees against what the server makes.
type ParetoPoint struct {
	Name        string
	Concurrency int     // 0: it was no closed loop
	PerUser     float64 // mean of output tokens/s per user, 1/ITL; NaN where nothing was streamed
	Total       float64 // output tokens/s
	GPUs        int     // 0: not known
	TTFT        float64 // mean, ms; NaN where nothing was streamed
}

// ParetoOf is the point of a run.
func ParetoOf(run Run) ParetoPoint { return look(run).pareto() }

func (l lookedAt) pareto() ParetoPoint {
	return ParetoPoint{
		Name: l.name(), Concurrency: l.Settings.Concurrency, GPUs: l.Settings.GPUs,
		PerUser: l.single("output_token_throughput_per_user"), Total: l.single("output_token_throughput"), TTFT: l.single("time_to_first_token"),
	}
}

// PerGPU is Total / GPUs; NaN where those are not known.
func (p ParetoPoint) PerGPU() float64 {
	if p.GPUs < 1 {
		return math.NaN()
	}
	return p.Total / float64(p.GPUs)
}

// label names a point in a picture.
func (p ParetoPoint) label() string {
	if p.Concurrency > 0 {
		return fmt.Sprintf("c=%d", p.Concurrency)
	}
	return p.Name
}

// kneeShare is the part of the highest throughput that the knee reaches.
const kneeShare = 0.95

// Knee is the place of the run beyond which more load brings no more throughput: the one of the least concurrency that reaches 95 %
// of the highest output tokens/s. Text says so in words. It is −1 where there are fewer than three closed loops of different
// concurrency, or none made tokens. The points may be in any order.
func Knee(points []ParetoPoint) (at int, text string) {
	var order []int
	for i, p := range points {
		if p.Concurrency > 0 && p.Total > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(points[a].Concurrency, points[b].Concurrency) })
	different := slices.CompactFunc(slices.Clone(order), func(a, b int) bool { return points[a].Concurrency == points[b].Concurrency })
	if len(different) < 3 {
		return -1, ""
	}
	most := 0.0
	for _, i := range order {
		most = max(most, points[i].Total)
	}
	k := slices.IndexFunc(order, func(i int) bool { return points[i].Total >= kneeShare*most })
	at = order[k]
	p, last := points[at], points[order[len(order)-1]]
	switch {
	case k == len(order)-1:
		return at, fmt.Sprintf("no knee up to concurrency %d: output still rises there, to %s tokens/s", p.Concurrency, short(p.Total))
	case last.Total < kneeShare*p.Total:
		return at, fmt.Sprintf("the knee is at concurrency %d, %s output tokens/s; at %d they fall to %s", p.Concurrency, short(p.Total), last.Concurrency, short(last.Total))
	}
	return at, fmt.Sprintf("the knee is at concurrency %d, %s output tokens/s; beyond it up to %d they do not rise by more than %s", p.Concurrency, short(p.Total), last.Concurrency, percentOver(most, p.Total))
}

func percentOver(a, b float64) string { return digits(100*(a/b-1), 2) + " %" }

// frontier says of each point whether no other is at least as good in both and better in one.
func frontier(xs, ys []float64) []bool {
	front := make([]bool, len(xs))
	for i := range xs {
		front[i] = !math.IsNaN(xs[i]) && !math.IsNaN(ys[i])
		for k := range xs {
			if xs[k] >= xs[i] && ys[k] >= ys[i] && (xs[k] > xs[i] || ys[k] > ys[i]) {
				front[i] = false
			}
		}
	}
	return front
}

// tradeOff is the section of the Pareto curve; without a title where it has no points.
func tradeOff(runs []lookedAt) Section {
	s := Section{Short: "Trade-off"}
	var points []ParetoPoint
	gpus := true
	for _, l := range runs {
		p := l.pareto()
		if !math.IsNaN(p.Total) {
			points = append(points, p)
			gpus = gpus && p.GPUs > 0
		}
	}
	if len(points) < 2 {
		return s
	}
	knee, text := Knee(points)
	s.Title = "What a user sees against what the server makes"
	if knee >= 0 {
		s.Title = upper(text)
	}
	y, made := Axis{Label: "output", Unit: "tokens/s"}, ParetoPoint.total
	if gpus {
		y, made = Axis{Label: "output per GPU", Unit: "tokens/s per GPU"}, ParetoPoint.PerGPU
	} else {
		s.Text = append(s.Text, "How many GPUs served the runs is not known of all of them, so the total output stands for output per GPU.")
	}
	s.Text = append(s.Text, fmt.Sprintf("The knee is the least concurrency that reaches %g %% of the highest output. A run on the line is beaten by no other in both directions.", 100*kneeShare))
	s.Tables = []PageTable{paretoTable(points, knee)}
	if plot, ok := paretoPlot(points, knee, y, made); ok {
		s.Plots = append(s.Plots, plot)
	}
	s.Plots = append(s.Plots, loadPlots(points)...)
	return s
}

func (p ParetoPoint) total() float64 { return p.Total }

// upper begins a text with a capital.
func upper(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return string(text[0]-'a'+'A') + text[1:]
}

func paretoTable(points []ParetoPoint, knee int) PageTable {
	t := PageTable{Columns: []Column{{Name: "run", Text: true}, {Name: "concurrency"}, {Name: "tokens/s"}, {Name: "tokens/s per GPU"}, {Name: "tokens/s per user"}, {Name: "TTFT mean"}, {Text: true}}}
	for i, p := range points {
		concurrency, note := "–", ""
		if p.Concurrency > 0 {
			concurrency = thousands(float64(p.Concurrency), 0)
		}
		if i == knee {
			note = "knee"
		}
		perGPU := "n/a"
		if p.GPUs > 0 {
			perGPU = thousands(p.PerGPU(), 1)
		}
		t.Rows = append(t.Rows, []string{p.Name, concurrency, thousands(p.Total, 1), perGPU, thousands(p.PerUser, 2), Value(p.TTFT, "ms"), note})
	}
	return t
}

// paretoPlot is false where no point has both coordinates.
func paretoPlot(points []ParetoPoint, knee int, y Axis, made func(ParetoPoint) float64) (Plot, bool) {
	var xs, ys []float64
	var names []string
	for i, p := range points {
		xs, ys = append(xs, p.PerUser), append(ys, made(p))
		name := p.label()
		if i == knee {
			name += " (knee)"
		}
		names = append(names, name)
	}
	front := frontier(xs, ys)
	on, off, line := Series{Name: "on the frontier", Kind: Points}, Series{Name: "beaten", Kind: Points}, Series{Kind: Line, Soft: true}
	for i := range xs {
		if math.IsNaN(xs[i]) {
			continue
		}
		into := &off
		if front[i] {
			into = &on
			line.X, line.Y = append(line.X, xs[i]), append(line.Y, ys[i])
		}
		into.X, into.Y, into.Text = append(into.X, xs[i]), append(into.Y, ys[i]), append(into.Text, names[i])
	}
	sortByX(&line)
	if len(on.X) == 0 {
		return Plot{}, false
	}
	p := Plot{
		Title: "Right is better for a user, up is better for who pays", X: Axis{Label: "output per user", Unit: "tokens/s per user"}, Y: y,
		Series: []Series{line, on}, Wide: true,
	}
	if len(off.X) > 0 {
		p.Series = append(p.Series, off)
	}
	t := paretoTable(points, knee)
	p.Table = &t
	return p, true
}

func sortByX(s *Series) {
	at := make([]int, len(s.X))
	for i := range at {
		at[i] = i
	}
	slices.SortFunc(at, func(a, b int) int { return cmp.Compare(s.X[a], s.X[b]) })
	x, y := make([]float64, 0, len(at)), make([]float64, 0, len(at))
	for _, i := range at {
		x, y = append(x, s.X[i]), append(y, s.Y[i])
	}
	s.X, s.Y = x, y
}

// loadPlots are output and TTFT over concurrency.
func loadPlots(points []ParetoPoint) []Plot {
	output, ttft := Series{Kind: Line}, Series{Kind: Line}
	for _, p := range points {
		if p.Concurrency < 1 {
			continue
		}
		output.X, output.Y = append(output.X, float64(p.Concurrency)), append(output.Y, p.Total)
		if !math.IsNaN(p.TTFT) {
			ttft.X, ttft.Y = append(ttft.X, float64(p.Concurrency)), append(ttft.Y, p.TTFT)
		}
	}
	if len(output.X) < 2 {
		return nil
	}
	sortByX(&output)
	sortByX(&ttft)
	dots := func(s Series) Series { s.Kind = Points; return s }
	x := Axis{Label: "concurrency", Unit: "requests in flight", Log: slices.Max(output.X) > 10*slices.Min(output.X)}
	best := slices.Index(output.Y, slices.Max(output.Y))
	plots := []Plot{{
		Title: fmt.Sprintf("Output is highest at concurrency %g: %s tokens/s", output.X[best], short(output.Y[best])), X: x,
		Y: Axis{Label: "output", Unit: "tokens/s"}, Series: []Series{output, ramped(dots(output))},
	}}
	if n := len(ttft.X); n > 1 {
		plots = append(plots, Plot{
			Title: fmt.Sprintf("TTFT goes from %s at concurrency %g to %s at %g", Value(ttft.Y[0], "ms"), ttft.X[0], Value(ttft.Y[n-1], "ms"), ttft.X[n-1]), X: x,
			Y: Axis{Label: "TTFT, mean", Unit: "ms"}, Series: []Series{ttft, ramped(dots(ttft))},
		})
	}
	return plots
}

// ramped gives a series the colour of the one before.
func ramped(s Series) Series {
	s.Ramp = 1
	return s
}
