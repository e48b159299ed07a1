package stats

import (
	"math"
	"math/rand/v2"
	"testing"
)

func within(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if !(math.Abs(got-want) <= by) {
		t.Errorf("%s = %v, want %v ± %v", what, got, want, by)
	}
}

// Quantiles of Student's t, two-sided 5 %, are from textbook tables. Tails are by scipy 1.17: 2·stats.t.sf(t, freedom).
func TestStudent(t *testing.T) {
	for freedom, want := range map[float64]float64{1: 12.7062, 2: 4.3027, 5: 2.5706, 10: 2.2281, 29: 2.0452, 60: 2.0003, 120: 1.9799, 1e5: 1.96} {
		within(t, "quantile", StudentQuantile(0.05, freedom), want, 6e-5)
	}
	within(t, "tail of 1 degree", StudentTail(1, 1), 0.5, 1e-12) // Cauchy
	within(t, "tail of 2 degrees", StudentTail(3, 2), 1-3/math.Sqrt(11), 1e-12)
	within(t, "tail of 0", StudentTail(0, 7), 1, 1e-12)
	within(t, "tail of many", StudentTail(1.959963984540054, 1e7), 0.05, 1e-7)
}

// Holm's procedure with four tests: the smallest p is compared with alpha/4, the next with alpha/3. All after the first
// that is not found are not found either, though 0.04 is less than alpha.
func TestHolm(t *testing.T) {
	tails, found := Holm(0.05, []float64{0.04, 0.01, 0.03, 0.005})
	for i, want := range []float64{0.025, 0.05 / 3, 0.025, 0.0125} {
		within(t, "tail", tails[i], want, 1e-15)
	}
	for i, want := range []bool{false, true, false, true} {
		if found[i] != want {
			t.Errorf("test %d: found %v, want %v", i, found[i], want)
		}
	}
	if _, all := Holm(0.05, []float64{0.04, 0.01}); !all[0] || !all[1] {
		t.Errorf("got %v, want both", all)
	}
}

// Eight blocks of weight 1 by hand: 2, 4, 4, 4, 5, 5, 7, 9 have mean 5 and s = √(32/7). In this order neighbors are
// correlated: Σ off·off' = (−3)(−1) + 1 + 1 + 0 + 0 + 0 + 2·4 = 13 of 32.
func TestEstimateByHand(t *testing.T) {
	var blocks []Block
	for _, v := range []float64{2, 4, 4, 4, 5, 5, 7, 9} {
		blocks = append(blocks, Block{v, 1})
	}
	e := NewEstimate(blocks)
	s := e.spread()
	r := 13.0/32 + (1+3*13.0/32)/8
	within(t, "mean", e.Value, 5, 1e-12)
	within(t, "variance", s.variance, 32.0/7/8, 1e-12)
	within(t, "neighbors", s.neighbors, r, 1e-12)
	within(t, "inflation", s.inflation(), (1+r)/(1-r), 1e-12)
	if in := e.Interval(0.05); !math.IsInf(in.High, 1) || !math.IsInf(in.Low, -1) {
		t.Errorf("8 blocks that are worth %.1f bound nothing, got %+v", s.worth(), in)
	}

	apart := NewEstimate([]Block{{2, 1}, {9, 1}, {4, 1}, {5, 1}, {4, 1}, {7, 1}, {4, 1}, {5, 1}}) // a negative correlation counts as 0
	in := apart.Interval(0.05)
	within(t, "high", in.High, 5+2.3646*math.Sqrt(32.0/7/8), 1e-3)
	within(t, "low", in.Low, 5-2.3646*math.Sqrt(32.0/7/8), 1e-3)
	if one := NewEstimate([]Block{{3, 1}}).Interval(0.05); one.Value != 3 || !math.IsInf(one.High, 1) {
		t.Errorf("one block: %+v", one)
	}
}

// Wilson's interval of 5 and of 0 of 10: Brown, Cai and DasGupta (2001) and every statistics package. 10 requests that
// fail together in one block of ten are worth less than 100 independent requests.
func TestShare(t *testing.T) {
	five, none := NewEstimate([]Block{{5, 10}}).Share(10), NewEstimate([]Block{{0, 10}}).Share(10)
	within(t, "5 of 10", five.Low, 0.2366, 1e-4)
	within(t, "5 of 10", five.High, 0.7634, 1e-4)
	within(t, "0 of 10", none.Low, 0, 1e-12)
	within(t, "0 of 10", none.High, 0.2775, 1e-4)
	blocks := make([]Block, 10)
	for i := range blocks {
		blocks[i].Weight = 10
	}
	blocks[4].Sum = 10
	if together := NewEstimate(blocks).Share(100); together.High < 0.3 {
		t.Errorf("a burst of failures: up to %v, want more than 0.3", together.High)
	}
}

// series returns values in the order of time, with correlated neighbors.
func series(random *rand.Rand, n int, alike float64) []float64 {
	values := make([]float64, n)
	v := random.NormFloat64()
	for i := range values {
		values[i] = math.Exp(v / 2)
		v = alike*v + math.Sqrt(1-alike*alike)*random.NormFloat64()
	}
	return values
}

func blocksOf(values []float64, n int, of func(float64) float64) []Block {
	blocks := make([]Block, n)
	for i, v := range values {
		b := &blocks[i*n/len(values)]
		b.Sum, b.Weight = b.Sum+of(v), b.Weight+1
	}
	return blocks
}

// Of 2,000 pairs of series with correlated neighbors, about 5 % are found to differ at 5 %, in mean and in p90, also if
// both have the same bursts. Far more are found if requests are taken as independent.
func TestDifferenceHoldsItsLevel(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const pairs, n, blocks = 2000, 900, 30
	means, p90s, paired, naive := 0, 0, 0, 0
	mean := func(v []float64, blocks int) Estimate {
		return NewEstimate(blocksOf(v, blocks, func(v float64) float64 { return v }))
	}
	p90 := func(v []float64) Estimate {
		d := NewDistribution(append([]float64(nil), v...))
		most := d.Percentile(90)
		return PercentileEstimate(d, 90, blocksOf(v, blocks, func(v float64) float64 {
			if v <= most {
				return 1
			}
			return 0
		}))
	}
	count := func(n *int, d Difference) {
		p := d.P()
		if p <= 0.05 {
			*n++
		}
		if got := d.Interval(0.05).Apart(); got != (p < 0.05) && math.Abs(p-0.05) > 1e-6 {
			t.Fatalf("p %v, and the interval %+v", p, d.Interval(0.05))
		}
	}
	for range pairs {
		a, b, both := series(random, n, 0.9), series(random, n, 0.9), series(random, n, 0.95)
		count(&means, NewDifference(mean(a, blocks), mean(b, blocks)))
		count(&p90s, NewDifference(p90(a), p90(b)))
		count(&naive, NewDifference(mean(a, n), mean(b, n)).independent())
		for i := range both {
			a[i], b[i] = a[i]+9*both[i], b[i]+9*both[i]
		}
		count(&paired, NewDifference(mean(a, blocks), mean(b, blocks)))
	}
	for what, n := range map[string]int{"mean": means, "p90": p90s, "paired": paired} {
		if n < pairs*2/100 || n > pairs*7/100 {
			t.Errorf("%s: %d of %d are said to differ, want about 5 %%", what, n, pairs)
		}
	}
	if naive < pairs/3 {
		t.Errorf("taken for independent, %d of %d are said to differ: this test is too kind", naive, pairs)
	}
}

func (d Difference) independent() Difference {
	d.spread.neighbors = 0
	return d
}

// If the largest values are equal, the blocks have the same share up to p99. That is not certainty: 48 requests do not
// bound a p99 on either side.
func TestTiesAreNoCertainty(t *testing.T) {
	p99 := func(values ...float64) Estimate {
		d := NewDistribution(append([]float64(nil), values...))
		return PercentileEstimate(d, 99, blocksOf(values, 24, func(float64) float64 { return 1 }))
	}
	a, b := make([]float64, 48), make([]float64, 48)
	for i := range a {
		a[i], b[i] = 20, 20
	}
	a[3], a[4] = 20.4, 20.4
	if d := NewDifference(p99(a...), p99(b...)); d.Value == 0 || d.P() < 0.05 {
		t.Errorf("difference %v, p %v: want no finding", d.Value, d.P())
	}
}
