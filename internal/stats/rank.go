package stats

import (
	"cmp"
	"math"
	"slices"
)

// A test detects an effect if p is below significant. A RankSum also needs an effect that is at least small by the
// usual thresholds of Cliff's delta (Romano and others, 2006).
const (
	significant = 0.01
	smallEffect = 0.147
	fewest      = 8 // values on each side, from which on the normal approximation of U holds
)

// A RankSum is Mann and Whitney's U test: whether the values of a first sample tend to be greater than the others. It
// treats requests as independent, which is not quite true: they share a server.
type RankSum struct {
	First, Others int     // values
	U             float64 // pairs in which the first sample's value is greater; ties count half
	P             float64 // one-sided, by the normal approximation with corrections for ties and continuity; NaN with too few values
	Delta         float64 // Cliff's: share of pairs in which the first is greater − share in which it is less, −1 to 1
}

// Detected reports whether the first sample is greater.
func (t RankSum) Detected() bool { return t.P < significant && t.Delta >= smallEffect }

// NewRankSum tests two samples.
func NewRankSum(first, others []float64) RankSum {
	n, m := float64(len(first)), float64(len(others))
	t := RankSum{First: len(first), Others: len(others), P: math.NaN(), Delta: math.NaN()}
	if len(first) == 0 || len(others) == 0 {
		return t
	}
	type value struct {
		v     float64
		first bool
	}
	all := make([]value, 0, len(first)+len(others))
	for _, v := range first {
		all = append(all, value{v, true})
	}
	for _, v := range others {
		all = append(all, value{v, false})
	}
	slices.SortFunc(all, func(a, b value) int { return cmp.Compare(a.v, b.v) })
	ranks, ties := 0.0, 0.0
	for i := 0; i < len(all); {
		j, mine := i, 0
		for ; j < len(all) && all[j].v == all[i].v; j++ {
			if all[j].first {
				mine++
			}
		}
		equal := float64(j - i)
		ranks += float64(mine) * (float64(i+j+1) / 2) // the mean of the ranks i+1 to j
		ties += equal*equal*equal - equal
		i = j
	}
	t.U = ranks - n*(n+1)/2
	t.Delta = 2*t.U/(n*m) - 1
	variance := n * m / 12 * (n + m + 1 - ties/((n+m)*(n+m-1)))
	if min(n, m) >= fewest && variance > 0 {
		t.P = above((t.U - n*m/2 - 0.5) / math.Sqrt(variance))
	}
	return t
}

// above is the probability that a standard normal value is greater than z.
func above(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// A MannKendall is the Mann-Kendall test: whether values rise or fall over time.
type MannKendall struct {
	N   int
	S   int     // pairs in which the later value is greater − those in which it is less
	Tau float64 // S ÷ the number of pairs, −1 to 1
	P   float64 // two-sided: exact up to 30 values without ties, else by the normal approximation; NaN below 4 values
}

// Detected returns 1 if the values rise, −1 if they fall, 0 if neither is significant.
func (t MannKendall) Detected() int {
	if !(t.P < significant) {
		return 0
	}
	return cmp.Compare(t.S, 0)
}

// NewMannKendall tests values in the order of time.
func NewMannKendall(values []float64) MannKendall {
	n := len(values)
	t := MannKendall{N: n, P: math.NaN()}
	pairs, sizes := n*(n-1)/2, map[float64]int{}
	sorted := make([]float64, 0, n)
	for i, v := range values {
		less, _ := slices.BinarySearch(sorted, v)
		t.S += less - (i - less - sizes[v])
		sorted = slices.Insert(sorted, less, v)
		sizes[v]++
	}
	if n < 4 {
		return t
	}
	t.Tau = float64(t.S) / float64(pairs)
	if len(sizes) == n && n <= 30 {
		t.P = kendallExact(n, t.S)
		return t
	}
	variance := float64(n * (n - 1) * (2*n + 5))
	for _, k := range sizes {
		variance -= float64(k * (k - 1) * (2*k + 5))
	}
	if variance /= 18; variance > 0 {
		t.P = min(1, 2*above((math.Abs(float64(t.S))-1)/math.Sqrt(variance)))
	}
	return t
}

// kendallExact is the probability that |S| of a random order of n values is at least |s|. The number of orders by their
// inversions follows from that for n−1 values: the last value stands before 0 to n−1 of the others.
func kendallExact(n, s int) float64 {
	share := []float64{1}
	for k := 2; k <= n; k++ {
		next := make([]float64, k*(k-1)/2+1)
		for inversions, p := range share {
			for more := range k {
				next[inversions+more] += p / float64(k)
			}
		}
		share = next
	}
	pairs, p := n*(n-1)/2, 0.0
	for inversions, q := range share {
		if abs(pairs-2*inversions) >= abs(s) {
			p += q
		}
	}
	return min(1, p)
}

func abs(n int) int { return max(n, -n) }

// Holm judges a family of tests so that the probability of any false finding is at most alpha: Holm, Scandinavian
// Journal of Statistics 6 (1979). tails are the levels that each p was compared with. found reports whether p ≤ tail.
// In the order of p, the tests after the first that is not found are not found either and have its tail.
func Holm(alpha float64, p []float64) (tails []float64, found []bool) {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(p[a], p[b]) })
	tails, found = make([]float64, len(p)), make([]bool, len(p))
	finding, tail := true, 0.0
	for i, at := range order {
		if finding {
			tail = alpha / float64(len(p)-i)
			finding = p[at] <= tail
		}
		tails[at], found[at] = tail, finding
	}
	return tails, found
}
