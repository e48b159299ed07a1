package chart

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"replayd/internal/number"
	"replayd/internal/stats"
)

// bins is the most bars of a histogram, and steps the most corners of the line of an ECDF.
const (
	bins  = 50
	steps = 240
)

// farBelow caps the ratio of the median to the start of a logarithmic histogram.
const farBelow = 1000

// Histogram plots the distribution of values in percent, with marks at p50, p90 and p99. The axis is logarithmic if the
// values need it.
func Histogram(title string, x Axis, values []float64) Plot {
	d := Distribution(values)
	x.Log = x.Log || Wide(d)
	p := Plot{
		Title: title, X: x, Y: Axis{Label: "share of values", Unit: "%"},
		Note: fmt.Sprintf("%s values in bars of %s width.", number.Whole(d.N()), map[bool]string{true: "equal relative", false: "equal"}[x.Log]),
	}
	if d.N() == 0 {
		return p
	}
	edges, counts := histogram(d, x, bins)
	for i := range counts {
		counts[i] *= 100 / float64(d.N())
	}
	p.Series = []Series{{Kind: Bars, X: edges, Y: counts}}
	for _, q := range []float64{50, 90, 99} {
		p.Marks = append(p.Marks, Mark{Name: fmt.Sprintf("p%g", q), At: d.Percentile(q), X: true})
	}
	return p
}

// histogram counts values in at most n bars of equal width on the axis. Whole numbers get bars of whole width.
func histogram(d stats.Distribution, x Axis, n int) (edges, counts []float64) {
	lo, hi := d.Min(), d.Max()
	if x.Log { // values far below the others, or not above 0, count in the first bar
		lo = max(lo, d.Percentile(50)/farBelow, hi/(farBelow*farBelow))
	}
	switch {
	case lo == hi:
		margin := max(math.Abs(lo)*0.05, 1e-9)
		lo, hi, n = lo-margin, hi+margin, 1
	case !x.Log && !slices.ContainsFunc(d.Values, func(v float64) bool { return v != math.Trunc(v) }):
		width := math.Ceil((hi - lo + 1) / float64(n))
		n = int(math.Ceil((hi - lo + 1) / width))
		lo, hi = lo-0.5, lo-0.5+width*float64(n)
	}
	edges, counts = make([]float64, n+1), make([]float64, n)
	for i := range edges {
		at := float64(i) / float64(n)
		if x.Log {
			edges[i] = lo * math.Pow(hi/lo, at)
		} else {
			edges[i] = lo + (hi-lo)*at
		}
	}
	edges[n] = hi
	bar := 0
	for _, v := range d.Values {
		for bar < n-1 && v >= edges[bar+1] {
			bar++
		}
		counts[bar]++
	}
	return edges, counts
}

// ECDF plots the share of values that are at most x, for one or several sets. Y holds the values of a set in any order.
func ECDF(title string, x Axis, sets ...Series) Plot {
	p := Plot{Title: title, Y: Axis{Label: "share of values at or below", Unit: "%", Ends: [2]float64{0, 100}}, Table: percentileTable(x.Unit, sets)}
	for _, set := range sets {
		d := Distribution(set.Y)
		x.Log = x.Log || Wide(d)
		set.Kind, set.X, set.Y = Step, nil, nil
		last := -1
		for k := range steps + 1 { // by rank, so that the line has corners where the values are
			i := k * (d.N() - 1) / steps
			if d.N() == 0 || i == last {
				continue
			}
			last = i
			set.Add(d.Values[i], 100*d.UpTo(d.Values[i]))
		}
		p.Series = append(p.Series, set)
	}
	p.X = x
	return p
}

// Distribution returns the distribution of the finite values. It does not change values.
func Distribution(values []float64) stats.Distribution {
	return stats.NewDistribution(slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsInf(v, 0) }))
}

// Wide reports whether values need a logarithmic axis: the ends are far apart, or the maximum is far from the median.
func Wide(d stats.Distribution) bool {
	return d.N() > 0 && d.Min() > 0 && (d.Percentile(99.9) > 12*d.Percentile(1) || d.Max() > 6*d.Percentile(50))
}

func percentileTable(unit string, sets []Series) *Table {
	t := &Table{Columns: []Column{{Name: "percentile", Text: true}}}
	var all []stats.Distribution
	for _, set := range sets {
		all = append(all, Distribution(set.Y))
		t.Columns = append(t.Columns, Column{Name: cmp.Or(set.Name, "value")})
	}
	for _, p := range []float64{0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100} {
		row := []string{cmp.Or(map[float64]string{0: "least", 100: "most"}[p], fmt.Sprintf("p%g", p))}
		for _, d := range all {
			row = append(row, number.Value(d.Percentile(p), unit))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
