package lab

import (
	"math"
	"slices"

	"replayd/internal/stats"
)

// A Sample is a set of figures, such as errors in µs.
type Sample []float64

// Mean is NaN for an empty sample.
func (s Sample) Mean() float64 {
	sum := 0.0
	for _, v := range s {
		sum += v
	}
	return sum / float64(len(s))
}

// Quantile returns percentile 100·q, or NaN for an empty sample. It sorts the sample.
func (s Sample) Quantile(q float64) float64 {
	if !slices.IsSorted(s) {
		slices.Sort(s)
	}
	return stats.Percentile(100*q, int64(len(s)), func(rank int64) float64 { return s[rank] })
}

// Max is NaN for an empty sample.
func (s Sample) Max() float64 { return s.Quantile(1) }

// Median returns the median of the values that are not NaN.
func Median(values ...float64) float64 {
	return stats.PercentileOf(50, slices.DeleteFunc(slices.Clone(values), math.IsNaN))
}

// Around returns the two values that quantile q lies between. It sorts the sample, which must not be empty.
func (s Sample) Around(q float64) (low, high float64) {
	if !slices.IsSorted(s) {
		slices.Sort(s)
	}
	at := int(q * float64(len(s)-1))
	return s[at], s[min(at+1, len(s)-1)]
}
