package compare_test

import (
	"math"
	"testing"
)

// upper returns the upper 95 % bound of a share, k of n: Clopper and Pearson, Biometrika 26 (1934).
func upper(k, n int) float64 {
	low, high := float64(k)/float64(n), 1.0
	for range 60 {
		if middle := (low + high) / 2; atMost(k, n, middle) > 0.05 {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}

// atMost returns the probability of k or fewer of n events, each with probability p.
func atMost(k, n int, p float64) (sum float64) {
	logs := func(v int) float64 { l, _ := math.Lgamma(float64(v) + 1); return l }
	for i := range k + 1 {
		sum += math.Exp(logs(n) - logs(i) - logs(n-i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	return sum
}

// The rule of three, and 10 of 100 by scipy 1.17: stats.beta.ppf(0.95, 11, 90).
func TestUpper(t *testing.T) {
	for _, c := range []struct {
		k, n int
		want float64
	}{{0, 100, 1 - math.Pow(0.05, 0.01)}, {10, 100, 0.16372}} {
		if got := upper(c.k, c.n); math.Abs(got-c.want) > 2e-4 {
			t.Errorf("%d of %d: got %v, want %v", c.k, c.n, got, c.want)
		}
	}
}
