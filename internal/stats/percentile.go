// Package stats has the statistics of all other packages: percentiles, distributions, samples in bounded memory,
// intervals and tests. This file has the only definition of a percentile.
package stats

import (
	"math"
	"slices"
)

// Percentile interpolates linearly at rank p/100·(n−1) of n values in ascending order, as numpy.percentile does by default,
// rounding included. at gives the value of a rank, 0 to n−1; p is 0 to 100. It is NaN without values.
func Percentile(p float64, n int64, at func(rank int64) float64) float64 {
	if n <= 0 {
		return math.NaN()
	}
	rank := p / 100 * float64(n-1)
	below := min(max(int64(rank), 0), n-1)
	low, high := at(below), at(min(below+1, n-1))
	part := rank - float64(below)
	// float64() keeps compilers from fusing the product into the sum: that would give other bits on some processors.
	if part >= 0.5 {
		return high - float64((high-low)*(1-part))
	}
	return low + float64((high-low)*part)
}

// PercentileOf is percentile p of values in any order; NaN without values.
func PercentileOf[T ~int64 | ~float64](p float64, values []T) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return Percentile(p, int64(len(sorted)), func(rank int64) float64 { return float64(sorted[rank]) })
}
