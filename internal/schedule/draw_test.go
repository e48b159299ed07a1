package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"testing"
)

func TestLogarithmAndExponentialAsInPackageMath(t *testing.T) {
	g := newGammaGaps(1, 1)
	for range 100_000 {
		x := math.Ldexp(g.uniform(), int(g.uniform()*120)-60)
		if got, want := ln(x), math.Log(x); math.Abs(got-want) > 4e-16*max(math.Abs(want), 1e-3) {
			t.Fatalf("ln(%v) = %v, want %v", x, got, want)
		}
		y := 80*g.uniform() - 75
		if got, want := exp(y), math.Exp(y); math.Abs(got-want) > 2e-14*want {
			t.Fatalf("exp(%v) = %v, want %v", y, got, want)
		}
	}
	if ln(1) != 0 || exp(0) != 1 || exp(-4000) != 0 {
		t.Errorf("ln(1) = %v, exp(0) = %v, exp(-4000) = %v", ln(1), exp(0), exp(-4000))
	}
}

// The Kolmogorov-Smirnov distance between the draws and their distribution. One seed in a thousand exceeds
// 1.95 / √n.
func TestGapsHaveTheirDistribution(t *testing.T) {
	for shape, cumulative := range map[float64]func(x float64) float64{ // for the mean 1
		0.5: func(x float64) float64 { return math.Erf(math.Sqrt(x / 2)) },
		1:   func(x float64) float64 { return -math.Expm1(-x) },
		2:   func(x float64) float64 { return 1 - (1+2*x)*math.Exp(-2*x) },
		3:   func(x float64) float64 { return 1 - (1+3*x+9*x*x/2)*math.Exp(-3*x) },
	} {
		g := newGammaGaps(shape, 42)
		const n = 100_000
		draws := make([]float64, n)
		for i := range draws {
			draws[i] = g.next()
		}
		slices.Sort(draws)
		distance := 0.0
		for i, x := range draws {
			c := cumulative(x)
			distance = max(distance, c-float64(i)/n, float64(i+1)/n-c)
		}
		if distance > 1.95/math.Sqrt(n) {
			t.Errorf("shape %v: distance %v, want at most %v", shape, distance, 1.95/math.Sqrt(n))
		}
	}
}

// The mean is 1 and the coefficient of variation (CV) is 1 / √shape. For n draws, the standard error of the mean is
// CV / √n, and that of the CV is CV √((1 + CV²) / 2n). The formulas use the delta method with the skewness 2 CV and
// the excess kurtosis 6 CV² of the gamma distribution.
func TestMeanAndVariationOfGaps(t *testing.T) {
	for _, shape := range []float64{0.05, 0.1, 0.5, 1, 1.5, 4, 100} {
		g := newGammaGaps(shape, 7)
		const n = 400_000
		sum, squares := 0.0, 0.0
		for range n {
			x := g.next()
			sum, squares = sum+x, squares+x*x
		}
		mean, cv := sum/n, 1/math.Sqrt(shape)
		got := math.Sqrt(squares/n-mean*mean) / mean
		if math.Abs(mean-1) > 4*cv/math.Sqrt(n) || math.Abs(got-cv) > 4*cv*math.Sqrt((1+cv*cv)/(2*n)) {
			t.Errorf("shape %v: mean %v, CV %v, want 1, %v", shape, mean, got, cv)
		}
	}
}

// The draws are the same on amd64 with fused multiply-add (GOAMD64=v3), on amd64 without it and on 386, so shards
// on different machines agree.
func TestGapsAreTheSameOnEveryMachine(t *testing.T) {
	hash := sha256.New()
	for _, shape := range []float64{0.3, 1, 2.5} {
		g := newGammaGaps(shape, 1)
		for range 10_000 {
			if err := binary.Write(hash, binary.LittleEndian, g.next()); err != nil {
				t.Fatal(err)
			}
		}
	}
	const want = "1d3b165a97641bfd"
	if got := hex.EncodeToString(hash.Sum(nil)[:8]); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
