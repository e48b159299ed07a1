package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"replayd/internal/chart"
	"replayd/internal/number"
	"replayd/internal/stats"
)

// tradeOff returns the section of the Pareto curve. The section has no title if there are fewer than two points.
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
	s.Title = "Throughput against speed for each user"
	if text != "" {
		s.Title = upper(text)
	}
	y := chart.Axis{Label: "output", Unit: "tokens/s"}
	if gpus {
		y = chart.Axis{Label: "output per GPU", Unit: "tokens/s per GPU"}
		for i, p := range points {
			per := 1 / float64(p.GPUs)
			points[i].output = stats.Interval{Value: per * p.output.Value, Low: per * p.output.Low, High: per * p.output.High}
		}
	} else {
		s.Text = append(s.Text, "The number of GPUs is not known for every run, so the plot shows the total output instead of the output per GPU.")
	}
	s.Text = append(s.Text, fmt.Sprintf("The knee is the lowest concurrency that reaches %g %% of the highest output. "+
		"A run is dominated if another run is better in both directions and their 95 %% intervals do not overlap. A run that is too short for intervals is not dominated.", 100*kneeShare))
	if text := Capacity(points); text != "" {
		s.Text = append(s.Text, upper(text)+".")
	}
	s.Tables = []chart.Table{ParetoTable(points)}
	if plot, ok := paretoPlot(points, knee, y); ok {
		s.Plots = append(s.Plots, plot)
	}
	s.Plots = append(s.Plots, loadPlots(points)...)
	return s
}

// upper begins a text with a capital.
func upper(text string) string {
	if text == "" || text[0] < 'a' || text[0] > 'z' {
		return text
	}
	return string(text[0]-'a'+'A') + text[1:]
}

// ParetoTable returns a row for each point. The page and the terminal show it.
func ParetoTable(points []ParetoPoint) chart.Table {
	knee, _ := Knee(points)
	t := chart.Table{Columns: []chart.Column{{Name: "run", Text: true}, {Name: "concurrency"}, {Name: "output tokens/s"}, {Name: "per GPU"}, {Name: "per user"}, {Name: "TTFT mean"}, {Name: "TTFT p99"}, {Name: "attainment"}, {Text: true}}}
	for i, p := range points {
		concurrency, note := "–", ""
		if p.Concurrency > 0 {
			concurrency = number.Whole(p.Concurrency)
		}
		if i == knee {
			note = "knee"
		}
		perGPU := "–"
		if p.GPUs > 0 {
			perGPU = number.Cell(p.PerGPU())
		}
		t.Rows = append(t.Rows, []string{p.Name, concurrency, number.Cell(p.Total), perGPU, number.Cell(p.PerUser), number.Value(p.TTFT, "ms"), number.Value(p.TTFT99, "ms"), p.Attainment, note})
	}
	return t
}

// paretoPlot returns false if no point has both coordinates.
func paretoPlot(points []ParetoPoint, knee int, y chart.Axis) (chart.Plot, bool) {
	front := frontier(points)
	on, off, line := chart.Series{Name: "not dominated", Kind: chart.Points}, chart.Series{Name: "dominated", Kind: chart.Points}, chart.Series{Kind: chart.Line, Soft: true}
	var best []ParetoPoint
	for i, p := range points {
		if math.IsNaN(p.user.Value) {
			continue
		}
		name := p.label()
		if i == knee {
			name += " (knee)"
		}
		into := &off
		if front[i] {
			into, best = &on, append(best, p)
		}
		into.Add(p.user.Value, p.output.Value)
		into.Text = append(into.Text, name)
	}
	slices.SortStableFunc(best, func(a, b ParetoPoint) int { return cmp.Compare(a.user.Value, b.user.Value) })
	for _, p := range best {
		line.Add(p.user.Value, p.output.Value)
	}
	if len(on.X) == 0 {
		return chart.Plot{}, false
	}
	p := chart.Plot{
		Title: "Throughput against speed for each user: up and right is better", X: chart.Axis{Label: "output per user", Unit: "tokens/s per user", Zero: true}, Y: y,
		Series: []chart.Series{line, on}, Wide: true,
	}
	if len(off.X) > 0 {
		p.Series = append(p.Series, off)
	}
	t := ParetoTable(points)
	p.Table = &t
	return p, true
}

// loadPlots plots output and TTFT over concurrency.
func loadPlots(points []ParetoPoint) []chart.Plot {
	points = slices.DeleteFunc(slices.Clone(points), func(p ParetoPoint) bool { return p.Concurrency < 1 })
	slices.SortStableFunc(points, func(a, b ParetoPoint) int { return cmp.Compare(a.Concurrency, b.Concurrency) })
	output, ttft := chart.Series{Kind: chart.Line}, chart.Series{Kind: chart.Line}
	for _, p := range points {
		output.Add(float64(p.Concurrency), p.Total)
		if !math.IsNaN(p.TTFT) {
			ttft.Add(float64(p.Concurrency), p.TTFT)
		}
	}
	if len(points) < 2 {
		return nil
	}
	x := chart.Axis{Label: "concurrency", Unit: "requests in flight", Log: slices.Max(output.X) > 10*slices.Min(output.X), Ticks: slices.Compact(slices.Clone(output.X))}
	best := slices.Index(output.Y, slices.Max(output.Y))
	plots := []chart.Plot{{
		Title: fmt.Sprintf("Output is highest at concurrency %g: %s tokens/s", output.X[best], number.Short(output.Y[best])), X: x,
		Y: chart.Axis{Label: "output", Unit: "tokens/s"}, Series: []chart.Series{output, dots(output)},
	}}
	if n := len(ttft.X); n > 1 {
		plots = append(plots, chart.Plot{
			Title: fmt.Sprintf("TTFT goes from %s at concurrency %g to %s at %g", number.Value(ttft.Y[0], "ms"), ttft.X[0], number.Value(ttft.Y[n-1], "ms"), ttft.X[n-1]), X: x,
			Y: chart.Axis{Label: "TTFT, mean", Unit: "ms"}, Series: []chart.Series{ttft, dots(ttft)},
		})
	}
	return plots
}

// dots returns the points of a line, in the color of the line.
func dots(s chart.Series) chart.Series {
	s.Kind, s.Ramp = chart.Points, 1
	return s
}
