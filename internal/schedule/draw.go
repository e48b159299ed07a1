package schedule

import (
	"math"
	"math/rand/v2"
)

// gammaGaps draws gaps from the gamma distribution with a shape and the mean 1. Their coefficient of variation is
// 1 / √shape; with shape 1 it is the exponential distribution, and the arrivals are Poisson's.
//
// The draws are the same to the last bit on every machine: only operations that IEEE 754 rounds correctly are used, none of them
// fused (hence the conversions of products, which Go does not fuse), and no function of package math with
// processor-specific code.
type gammaGaps struct {
	shape float64
	rng   rand.PCG
}

// stream separates gaps from other draws with the same seed.
const stream = 0x6172726976616c73

func newGammaGaps(shape float64, seed uint64) *gammaGaps {
	return &gammaGaps{shape: shape, rng: *rand.NewPCG(seed, stream)}
}

// next draws by Marsaglia and Tsang's method (ACM Transactions on Mathematical Software 26, 2000, p. 363), for a shape
// below 1 with their note on a power of a uniform number.
func (g *gammaGaps) next() float64 {
	if g.shape == 1 {
		return -ln(g.uniform())
	}
	if g.shape > 1 {
		return g.gamma(g.shape) / g.shape
	}
	log := ln(g.gamma(g.shape+1)) + ln(g.uniform())/g.shape
	return exp(log) / g.shape
}

// gamma draws from the gamma distribution with a shape of 1 or more and the mean shape.
func (g *gammaGaps) gamma(shape float64) float64 {
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := g.normal()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = v * v * v
		if ln(g.uniform()) < float64(x*x/2)+d-float64(d*v)+float64(d*ln(v)) {
			return d * v
		}
	}
}

// normal draws from the standard normal distribution by the polar method.
func (g *gammaGaps) normal() float64 {
	for {
		x, y := float64(2*g.uniform())-1, float64(2*g.uniform())-1
		if s := float64(x*x) + float64(y*y); s > 0 && s < 1 {
			return x * math.Sqrt(-2*ln(s)/s)
		}
	}
}

// uniform draws one of the multiples of 2⁻⁵³ in (0, 1].
func (g *gammaGaps) uniform() float64 { return float64(g.rng.Uint64()>>11+1) / (1 << 53) }

// ln returns the natural logarithm of a positive number, by the series of 2 artanh((f − 1) / (f + 1)) about 1.
func ln(x float64) float64 {
	f, e := math.Frexp(x)
	if f < math.Sqrt2/2 {
		f, e = 2*f, e-1
	}
	s := (f - 1) / (f + 1) // at most 0.1716 either way, so that the terms left out are below 2⁻⁶⁰
	sum, square := 0.0, s*s
	for _, c := range [...]float64{1. / 21, 1. / 19, 1. / 17, 1. / 15, 1. / 13, 1. / 11, 1. / 9, 1. / 7, 1. / 5, 1. / 3, 1} {
		sum = float64(sum*square) + c
	}
	return float64(float64(e)*math.Ln2) + float64(2*s*sum)
}

// exp returns e to the power of y, by the series about 0; 0 if the result is too small.
func exp(y float64) float64 {
	k := math.Round(y / math.Ln2)
	r := y - float64(k*math.Ln2) // at most 0.3466 either way
	sum := 1.0
	for n := 15.0; n >= 1; n-- {
		sum = 1 + r*sum/n
	}
	return math.Ldexp(sum, int(k))
}
