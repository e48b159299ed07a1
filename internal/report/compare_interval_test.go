package report

import (
	"math"
	"math/rand/v2"
	"testing"

	"replayd/internal/stats"
)

func within(t *testing.T, what string, got, want, by float64) {
	t.Helper()
	if !(math.Abs(got-want) <= by) {
		t.Errorf("%s = %v, want %v ± %v", what, got, want, by)
	}
}

// Student's t, 0.975, from the tables that every textbook has.
func TestStudentT(t *testing.T) {
	for freedom, want := range map[int]float64{1: 12.706, 2: 4.303, 5: 2.571, 10: 2.228, 11: 2.201, 15: 2.131, 20: 2.086, 29: 2.045, 60: 2.000, 120: 1.980, 100_000: 1.960} {
		within(t, "t", studentT(freedom), want, 0.0006)
	}
}

// Order statistics that hold a percentile with at least 95 %, counted by the binomial distribution itself; those of the median of
// 100 values, the 40th and the 61st, stand in Conover's tables.
func TestBinomialRange(t *testing.T) {
	for _, c := range []struct {
		n         int
		p         float64
		low, high int
	}{
		{100, 0.5, 40, 60},
		{10, 0.5, 2, 8},
		{5, 0.5, 0, 5}, // not enough for either side
		{100, 0.99, 97, 100},
		{1000, 0.99, 983, 996},
		{400, 0.9, 348, 371},
	} {
		low, high := binomialRange(c.n, c.p)
		if low != c.low || high != c.high {
			t.Errorf("n %d, p %v: %d to %d, want %d to %d", c.n, c.p, low, high, c.low, c.high)
		}
	}
	in := percentileInterval(stats.NewDistribution([]float64{1, 2, 3, 4, 5}), 50)
	if in.Value != 3 || !math.IsInf(in.Low, -1) || !math.IsInf(in.High, 1) {
		t.Errorf("5 values bound no median, got %+v", in)
	}
}

// Wilson's interval of 5 and of 0 of 10: Brown, Cai and DasGupta (2001) and every statistics package.
func TestShareInterval(t *testing.T) {
	five, none := shareInterval(5, 10), shareInterval(0, 10)
	within(t, "5 of 10", five.Low, 0.2366, 1e-4)
	within(t, "5 of 10", five.High, 0.7634, 1e-4)
	within(t, "0 of 10", none.Low, 0, 1e-12)
	within(t, "0 of 10", none.High, 0.2775, 1e-4)
}

// Few values: mean ± t·s/√n by hand: 2, 4, 4, 4, 5, 5, 7, 9 have mean 5 and s = √(32/7).
func TestBatchMeanOfFew(t *testing.T) {
	mean, half := batchMean([]float64{2, 4, 4, 4, 5, 5, 7, 9})
	within(t, "mean", mean, 5, 1e-12)
	within(t, "half", half, 2.3646*math.Sqrt(32.0/7/8), 1e-9)
	if _, half := batchMean([]float64{1}); !math.IsNaN(half) {
		t.Errorf("one value bounds nothing, got %v", half)
	}
}

// Of 400 series in which neighbours are alike, about 95 % of the intervals hold the true mean; taken for independent, far fewer do.
func TestBatchMeanCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const series, n, alike = 400, 3000, 0.9
	held, naive := 0, 0
	for range series {
		values := make([]float64, n)
		v, sum, squares := random.NormFloat64()/math.Sqrt(1-alike*alike), 0.0, 0.0
		for i := range values {
			v = alike*v + random.NormFloat64()
			values[i] = v
			sum, squares = sum+v, squares+v*v
		}
		mean, half := batchMean(values)
		if math.Abs(mean) <= half {
			held++
		}
		if math.Abs(mean) <= 1.96*math.Sqrt((squares/n-sum*sum/n/n)/n) {
			naive++
		}
	}
	if held < series*90/100 || held > series*99/100 || naive > series*60/100 {
		t.Errorf("%d of %d intervals hold the mean, want about 95 %%; taken for independent %d", held, series, naive)
	}
}

// Of 1,000 samples of one distribution, about 95 % of the intervals of p90 and of the differences of two hold the truth.
func TestPercentileIntervalCovers(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	draw := func() stats.Distribution {
		values := make([]float64, 500)
		for i := range values {
			values[i] = random.ExpFloat64()
		}
		return stats.NewDistribution(values)
	}
	held, apart := 0, 0
	const samples = 1000
	for range samples {
		a, b := percentileInterval(draw(), 90), percentileInterval(draw(), 90)
		if truth := math.Log(10); a.Low <= truth && truth <= a.High {
			held++
		}
		if difference(a, b).apart() {
			apart++
		}
	}
	if held < 930 || held > 985 || apart > 70 {
		t.Errorf("of %d intervals %d hold p90; %d pairs are said to differ, want about 50", samples, held, apart)
	}
}
