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

// Summary describes the values.
func (w Weighted) Summary() Summary {
	s := Summary{}
	for _, v := range w {
		s.Count += v.n
	}
	if s.Count == 0 {
		return s
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
