package main

import (
	"fmt"
	"math"
)

// A rate is how many of some rollouts.
type rate struct{ k, n int }

// interval is that of Clopper and Pearson: with a chance of at most (1−level)/2 the true rate is below it, and likewise
// above.
func (r rate) interval(level float64) (low, high float64) {
	miss := (1 - level) / 2
	low, high = 0, 1
	if r.k > 0 {
		low = bisect(func(p float64) bool { return atLeast(r.k, r.n, p) < miss })
	}
	if r.k < r.n {
		high = bisect(func(p float64) bool { return 1-atLeast(r.k+1, r.n, p) > miss })
	}
	return low, high
}

// bisect finds the chance up to which something holds.
func bisect(holds func(p float64) bool) float64 {
	low, high := 0.0, 1.0
	for range 50 {
		if middle := (low + high) / 2; holds(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// atLeast is the chance of k or more of n, each with a chance.
func atLeast(k, n int, chance float64) float64 {
	logs := func(v int) float64 { l, _ := math.Lgamma(float64(v) + 1); return l }
	sum := 0.0
	for i := k; i <= n; i++ {
		sum += math.Exp(logs(n) - logs(i) - logs(n-i) + float64(i)*math.Log(chance) + float64(n-i)*math.Log1p(-chance))
	}
	return sum
}

// text has the interval of a level.
func (r rate) text(level float64) string {
	low, high := r.interval(level)
	return fmt.Sprintf("%d of %d (%.1f–%.1f %%)", r.k, r.n, 100*low, 100*high)
}
