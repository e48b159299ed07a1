package stats

import (
	"math"
	"math/big"
	"slices"
	"sort"
)

// A Distribution is the sorted values of one quantity. Its figures do not depend on the order of the input, so shards
// merged in any order give the same result, to the last bit.
type Distribution struct {
	Values    []float64
	Mean, Std float64 // Std is the population's; both 0 without values
}

// NewDistribution returns the distribution of the values that are not NaN. It reuses and sorts the slice.
func NewDistribution(values []float64) Distribution {
	values = slices.DeleteFunc(values, math.IsNaN)
	slices.Sort(values)
	d := Distribution{Values: values}
	if len(values) == 0 {
		return d
	}
	n := float64(len(values))
	d.Mean = exactSum(len(values), func(i int) float64 { return values[i] }) / n
	d.Std = math.Sqrt(exactSum(len(values), func(i int) float64 {
		off := values[i] - d.Mean
		return float64(off * off) // rounded, not fused with the sum
	}) / n)
	return d
}

// N is the number of values.
func (d Distribution) N() int { return len(d.Values) }

// Min is the smallest value; NaN without values.
func (d Distribution) Min() float64 { return d.Percentile(0) }

// Max is the largest value; NaN without values.
func (d Distribution) Max() float64 { return d.Percentile(100) }

// Percentile returns percentile p, 0 to 100; NaN without values.
func (d Distribution) Percentile(p float64) float64 {
	return Percentile(p, int64(len(d.Values)), func(rank int64) float64 { return d.Values[rank] })
}

// UpTo is the share of the values that are at most v, 0 to 1.
func (d Distribution) UpTo(v float64) float64 {
	n := sort.Search(d.N(), func(i int) bool { return d.Values[i] > v })
	return float64(n) / float64(d.N())
}

// exactSum returns the sum of n values, rounded once: Shewchuk, Adaptive Precision Floating-Point Arithmetic (1997), as
// in Python's math.fsum. The partial sums do not overlap, so together they are the exact sum.
func exactSum(n int, value func(int) float64) float64 {
	var parts []float64 // smallest first
	for i := range n {
		x, kept := value(i), 0
		for _, y := range parts {
			if math.Abs(x) < math.Abs(y) {
				x, y = y, x
			}
			high := x + y
			if low := y - (high - x); low != 0 {
				parts[kept] = low
				kept++
			}
			x = high
		}
		parts = append(parts[:kept], x)
	}
	sum := new(big.Float).SetPrec(2200) // all bits from the smallest to the largest float64
	for _, part := range parts {
		if math.IsNaN(part) || math.IsInf(part, 0) {
			return part
		}
		sum.Add(sum, big.NewFloat(part))
	}
	rounded, _ := sum.Float64()
	return rounded
}
