package stats

import (
	"cmp"
	"math"
	"slices"
)

// A Summary describes values. Percentile defines its percentiles.
type Summary struct {
	Count                   int64
	Sum                     int64   // only of Counts
	Mean, StdDev            float64 // StdDev is the population's
	Min, Max                float64
	P25, P50, P75, P90, P99 float64
}

// Weighted is a list of distinct values in ascending order, each with its count.
type Weighted []Weight

// A Weight is a value and its count.
type Weight struct {
	value float64
	n     int64
}

// Weigh lists values with their counts in ascending order.
func Weigh(values map[float64]int64) Weighted {
	w := make(Weighted, 0, len(values))
	for v, n := range values {
		w = append(w, Weight{v, n})
	}
	slices.SortFunc(w, func(a, b Weight) int { return cmp.Compare(a.value, b.value) })
	return w
}

func (w Weighted) count() (n int64) {
	for _, v := range w {
		n += v.n
	}
	return n
}

// Summary describes the values.
func (w Weighted) Summary() Summary {
	s := Summary{Count: w.count()}
	if s.Count == 0 {
		return Summary{}
	}
	for _, v := range w {
		s.Mean += v.value * float64(v.n) / float64(s.Count)
	}
	for _, v := range w {
		s.StdDev += (v.value - s.Mean) * (v.value - s.Mean) * float64(v.n) / float64(s.Count)
	}
	s.StdDev = math.Sqrt(s.StdDev)
	s.Min, s.Max = w[0].value, w[len(w)-1].value
	percentile := func(p float64) float64 { return Percentile(p, s.Count, w.at) }
	s.P25, s.P50, s.P75, s.P90, s.P99 = percentile(25), percentile(50), percentile(75), percentile(90), percentile(99)
	return s
}

// at returns the value of the given rank, from 0.
func (w Weighted) at(rank int64) float64 {
	for _, v := range w {
		if rank -= v.n; rank < 0 {
			return v.value
		}
	}
	return w[len(w)-1].value
}

// A Shape is the data of a plot of values. Its size does not depend on the number of values.
type Shape struct {
	Log    bool      // the values need a logarithmic axis
	Edges  []float64 // of the bars of a histogram; none if all values are 0
	Counts []int64   // values from an edge, inclusive, to the next; one fewer than edges

	// Steps of the share of values at or below each X, in percent: at most one for every half percent of the values.
	X, Below []float64
}

const (
	shapeBars  = 50
	shapeSteps = 200
)

// Shape returns a histogram and an ECDF of whole numbers. The edges of bars lie between the numbers.
func (w Weighted) Shape() Shape {
	if len(w) == 0 {
		return Shape{}
	}
	var s Shape
	n := w.count()
	low, high := w[0].value, w[len(w)-1].value
	s.Log = low > 0 && w.at((n-1)*99/100) > 12*w.at((n-1)/100)
	for i := range shapeBars + 1 {
		at := low + (high+1-low)*float64(i)/shapeBars
		if s.Log {
			at = low * math.Pow((high+1)/low, float64(i)/shapeBars)
		}
		at = math.Floor(at+1e-9) - 0.5
		if i == 0 || at > s.Edges[len(s.Edges)-1] {
			s.Edges = append(s.Edges, at)
		}
	}
	s.Counts = make([]int64, len(s.Edges)-1)
	bar := 0
	for _, v := range w {
		for bar < len(s.Counts)-1 && v.value >= s.Edges[bar+1] {
			bar++
		}
		s.Counts[bar] += v.n
	}
	s.X, s.Below = w.Steps(n)
	return s
}

// Steps returns the ECDF in percent. It leaves out a value if less than half a percent of all values lie between it and
// the last value shown.
func (w Weighted) Steps(n int64) (x, below []float64) {
	var sum, shown int64
	for i, v := range w {
		sum += v.n
		if sum-shown >= (n+shapeSteps-1)/shapeSteps || i == 0 || i == len(w)-1 {
			x, below, shown = append(x, v.value), append(below, 100*float64(sum)/float64(n)), sum
		}
	}
	return x, below
}
