package stats

import (
	"cmp"
	"slices"
)

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
