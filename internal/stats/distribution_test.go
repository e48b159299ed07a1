package stats

import (
	"cmp"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// near compares with the result of another program, to 1e-12 of the value.
func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-12*math.Abs(want) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// Figures by numpy 2.4: percentile, std and mean of the same values.
func TestDistributionAsNumpy(t *testing.T) {
	d := NewDistribution([]float64{3.1, 0.2, math.NaN(), 7.7, 1.5, 9.25, 4.4, 6.125})
	for p, want := range map[float64]float64{
		0: 0.2, 1: 0.278, 25: 2.3, 33.3: 3.0967999999999996, 50: 4.4, 75: 6.9125, 90: 8.32, 99: 9.157, 99.9: 9.2407, 100: 9.25,
	} {
		if got := d.Percentile(p); got != want {
			t.Errorf("p%v = %v, want %v", p, got, want)
		}
	}
	if d.N() != 7 || d.Min() != 0.2 || d.Max() != 9.25 || d.Mean != 4.610714285714286 {
		t.Errorf("%+v", d)
	}
	near(t, "std", d.Std, 3.042961936491939)
	none := NewDistribution([]float64{math.NaN()})
	if none.N() != 0 || none.Mean != 0 || !math.IsNaN(none.Percentile(50)) || !math.IsNaN(none.Max()) {
		t.Errorf("%+v", none)
	}
	if one := NewDistribution([]float64{7}); one.Percentile(99) != 7 || one.Std != 0 || one.Mean != 7 {
		t.Errorf("%+v", one)
	}
}

// A sum equals exact arithmetic that is rounded once, in any order.
func TestSumIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	sum := func(values []float64) float64 {
		return exactSum(len(values), func(i int) float64 { return values[i] })
	}
	for range 300 {
		values := make([]float64, random.IntN(50))
		exact := new(big.Float).SetPrec(2200)
		for i := range values {
			values[i] = (random.Float64() - 0.5) * math.Pow(2, float64(random.IntN(120)-60))
			if i > 0 && random.IntN(4) == 0 {
				values[i] = -values[i-1] // so that the terms cancel
			}
			exact.Add(exact, big.NewFloat(values[i]))
		}
		want, _ := exact.Float64()
		if got := sum(values); got != want {
			t.Fatalf("sum of %v = %v, want %v", values, got, want)
		}
		slices.Sort(values)
		if got := sum(values); got != want {
			t.Fatalf("sum of sorted %v = %v, want %v", values, got, want)
		}
	}
	// Smaller parts decide a tie: 1 + 2^-53 + 2^-120 is above the midpoint between two neighbors.
	if got := sum([]float64{1, 0x1p-53, 0x1p-120}); got != 1+0x1p-52 {
		t.Errorf("%v", got)
	}
}

// Figures by scipy 1.17, mannwhitneyu(alternative="greater", method="asymptotic").
func TestRankSumAsScipy(t *testing.T) {
	a := []float64{12, 15, 14, 18, 21, 13.5, 19, 17}
	b := []float64{11, 10, 14, 9, 12, 8.5, 13, 10, 16, 7}
	greater, less := NewRankSum(a, b), NewRankSum(b, a)
	near(t, "U", greater.U, 72)
	near(t, "p", greater.P, 0.002529983757436506)
	near(t, "delta", greater.Delta, 2*72.0/80-1)
	near(t, "U of the others", less.U, 8)
	near(t, "p of the others", less.P, 0.9980871145286915)
	if !greater.Detected() || less.Detected() {
		t.Errorf("%+v %+v", greater, less)
	}
	for _, few := range []RankSum{NewRankSum(a[:7], b), NewRankSum(nil, b), NewRankSum(a, nil), NewRankSum(make([]float64, 9), make([]float64, 9))} {
		if !math.IsNaN(few.P) || few.Detected() {
			t.Errorf("%+v: want no probability", few)
		}
	}
}

// U and Cliff's delta match a count of the pairs.
func TestRankSumCountsPairs(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range 100 {
		a, b := make([]float64, 1+random.IntN(30)), make([]float64, 1+random.IntN(30))
		for _, s := range [][]float64{a, b} {
			for i := range s {
				s[i] = float64(random.IntN(12))
			}
		}
		greater, less := 0.0, 0.0
		for _, x := range a {
			for _, y := range b {
				switch {
				case x > y:
					greater++
				case x < y:
					less++
				}
			}
		}
		pairs := float64(len(a) * len(b))
		got := NewRankSum(a, b)
		if got.U != greater+(pairs-greater-less)/2 || math.Abs(got.Delta-(greater-less)/pairs) > 1e-12 {
			t.Fatalf("%v %v: %+v, want %v greater, %v less", a, b, got, greater, less)
		}
	}
}

// Figures by scipy 1.17, kendalltau(range, values, method="exact"), and by the formula with ties, in numpy.
func TestMannKendallAsScipy(t *testing.T) {
	f := func(values []float64, s int, p float64, detected int) {
		t.Helper()
		got := NewMannKendall(values)
		near(t, "p", got.P, p)
		if got.S != s || got.Detected() != detected {
			t.Errorf("%v: %+v, want S %d", values, got, s)
		}
	}
	f([]float64{1, 2, 3, 4, 5, 6}, 15, 0.002777777777777778, 1)
	f([]float64{6, 5, 4, 3, 2, 1}, -15, 0.002777777777777778, -1)
	f([]float64{381, 376, 388, 387, 344, 374}, -5, 0.46944444444444444, 0) // the document's slices after the first
	f([]float64{1, 1, 2, 3, 3, 4, 5, 4}, 23, 0.005327697130745202, 1)
	saw := make([]float64, 40)
	for i := range saw {
		saw[i] = float64(i%7) + float64(i)/10 + float64(i)*1e-6
	}
	f(saw, 310, 0.00031800958959306844, 1)
	for _, few := range [][]float64{nil, {1, 2, 3}, {2, 2, 2, 2, 2}} {
		if got := NewMannKendall(few); !math.IsNaN(got.P) || got.Detected() != 0 {
			t.Errorf("%v: %+v: want no probability", few, got)
		}
	}
}

// The exact probabilities match an enumeration of all orders.
func TestKendallExact(t *testing.T) {
	const n = 6
	count, all := map[int]float64{}, 0.0
	order := []float64{0, 1, 2, 3, 4, 5}
	var permute func(int)
	permute = func(k int) {
		if k == n {
			all++
			count[NewMannKendall(order).S]++
			return
		}
		for i := k; i < n; i++ {
			order[k], order[i] = order[i], order[k]
			permute(k + 1)
			order[k], order[i] = order[i], order[k]
		}
	}
	permute(0)
	for s := range count {
		far := 0.0
		for other, c := range count {
			if abs(other) >= abs(s) {
				far += c
			}
		}
		near(t, "p", kendallExact(n, s), far/all)
	}
}

// The count matches the definition, for random values with ties.
func TestMannKendallByPairs(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		values := make([]float64, rng.IntN(60))
		for i := range values {
			values[i] = float64(rng.IntN(1 + rng.IntN(40)))
		}
		s := 0
		for i := range values {
			for j := i + 1; j < len(values); j++ {
				s += cmp.Compare(values[j], values[i])
			}
		}
		if got := NewMannKendall(values).S; got != s {
			t.Fatalf("seed %d: want S %d, got %d", seed, s, got)
		}
	}
}
