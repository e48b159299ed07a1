package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"replayd/internal/chart"
	"replayd/internal/number"
	"replayd/internal/result"
	"replayd/internal/stats"
)

// lengthBins is the most groups of equal size in a plot of medians over length.
const lengthBins = 24

func (l runData) lengths() Section {
	s := Section{Short: "Lengths"}
	var words []string
	add := func(q shownQuantity, axis, unit string, length func(result.Row) int, per float64, perText string) {
		var x, y []float64
		for _, r := range l.ok {
			if v := r.Value(q.Quantity); !math.IsNaN(v) && length(r) > 0 {
				x, y = append(x, float64(length(r))), append(y, v)
			}
		}
		if len(x) < 2 || slices.Min(x) == slices.Max(x) {
			return
		}
		s.Plots = append(s.Plots, against(q, chart.Axis{Label: axis, Unit: unit}, x, y, per, perText))
		if _, r2 := leastSquares(x, y); r2 > 0 {
			words = append(words, fmt.Sprintf("%s length explains %s %% of the variance of %s", axis, number.Digits(100*r2, 2), q.short))
		}
	}
	add(shownQuantities[0], "input", "tokens", func(r result.Row) int { return r.Input }, 1000, "1,000 input tokens")
	add(shownQuantities[2], "output", "tokens", func(r result.Row) int { return r.Output }, 1, "output token")
	if len(s.Plots) > 0 {
		s.Title = "Latencies against lengths"
		if len(words) > 0 {
			s.Title = upper(strings.Join(words, ", "))
		}
	}
	return s
}

// against plots a latency over a length: a cloud of all requests, and the median of groups of equal size.
func against(q shownQuantity, x chart.Axis, xs, ys []float64, per float64, perText string) chart.Plot {
	all := stats.NewDistribution(slices.Clone(ys))
	lengths := stats.NewDistribution(slices.Clone(xs))
	x.Log = chart.Wide(lengths)
	p := chart.Plot{X: x, Y: chart.Axis{Label: q.long, Unit: "ms", Log: chart.Wide(all)}, Note: fmt.Sprintf("%s; the line is the median of groups of equal size.", number.Count(len(xs), "ok request"))}
	slope, r2 := leastSquares(xs, ys)
	switch {
	case r2 < 0.05:
		p.Title = fmt.Sprintf("%s does not follow the %s length (r² = %s)", upper(q.short), x.Label, number.Digits(r2, 2))
	default:
		p.Title = fmt.Sprintf("%s: %s%s for each %s (r² = %s)", upper(q.short), map[bool]string{true: "+", false: "−"}[slope >= 0], number.Value(math.Abs(slope)*per, "ms"), perText, number.Digits(r2, 2))
	}
	groups := groupsOf(xs, ys)
	line := chart.Series{Name: "median", Kind: chart.Line}
	p.Table = &chart.Table{Columns: chart.Columns(x.Label+", "+x.Unit, "requests", "p50", "p90", "p99")}
	for _, g := range groups {
		mean, values := 0.0, make([]float64, len(g))
		for i, p := range g {
			mean += p.x / float64(len(g))
			values[i] = p.y
		}
		d := stats.NewDistribution(values)
		line.Add(mean, d.Percentile(50))
		p.Table.Rows = append(p.Table.Rows, []string{
			fmt.Sprintf("%s to %s", number.Whole(g[0].x), number.Whole(g[len(g)-1].x)), number.Whole(d.N()),
			number.Value(d.Percentile(50), "ms"), number.Value(d.Percentile(90), "ms"), number.Value(d.Percentile(99), "ms"),
		})
	}
	p.Series = []chart.Series{{Kind: chart.Cloud, X: xs, Y: ys}}
	if len(groups) > 1 {
		p.Series = append(p.Series, line)
	}
	return p
}

type point struct{ x, y float64 }

// groupsOf cuts points, sorted by x, into groups of about equal size. Points with the same x stay together.
func groupsOf(xs, ys []float64) (groups [][]point) {
	points := make([]point, len(xs))
	for i := range points {
		points[i] = point{xs[i], ys[i]}
	}
	slices.SortFunc(points, func(a, b point) int { return cmp.Compare(a.x, b.x) })
	size := (len(points) + lengthBins - 1) / lengthBins
	for len(points) > 0 {
		n := min(size, len(points))
		for n < len(points) && points[n].x == points[n-1].x {
			n++
		}
		groups, points = append(groups, points[:n]), points[n:]
	}
	return groups
}

// leastSquares returns the slope of the least squares line and r², the share of the variance that the line explains.
// Both are 0 if x or y does not vary.
func leastSquares(xs, ys []float64) (slope, r2 float64) {
	n := float64(len(xs))
	var mx, my float64
	for i := range xs {
		mx, my = mx+xs[i]/n, my+ys[i]/n
	}
	var xx, xy, yy float64
	for i := range xs {
		dx, dy := xs[i]-mx, ys[i]-my
		xx, xy, yy = xx+dx*dx, xy+dx*dy, yy+dy*dy
	}
	if xx == 0 || yy == 0 {
		return 0, 0
	}
	return xy / xx, xy * xy / (xx * yy)
}
