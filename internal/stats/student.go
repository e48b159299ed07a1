package stats

import "math"

// StudentTail is the probability that Student's t with the given
// degrees of freedom is further from 0 than t, on either side.
func StudentTail(t, freedom float64) float64 {
	return incompleteBeta(freedom/2, 0.5, freedom/(freedom+t*t))
}

// StudentQuantile is the value that |t| exceeds with probability tail.
func StudentQuantile(tail, freedom float64) float64 {
	low, high := 0.0, 1.0
	for StudentTail(high, freedom) > tail && high < 1e12 {
		low, high = high, 2*high
	}
	return Bisect(low, high, 100, func(t float64) bool { return !(StudentTail(t, freedom) > tail) })
}

// Bisect halves the span from out to in so many times, and returns its end for which isIn is true. Either may be the greater.
func Bisect(out, in float64, times int, isIn func(float64) bool) float64 {
	for range times {
		if middle := (out + in) / 2; isIn(middle) {
			in = middle
		} else {
			out = middle
		}
	}
	return in
}

// StudentPower is the probability that a statistic exceeds bound which would be Student's t, with the given degrees of freedom, if its
// numerator were not shifted by so many of its standard deviations. It is the upper tail of the noncentral t distribution:
// the normal tail, averaged over the distribution of the estimated deviation.
func StudentPower(bound, freedom, shift float64) float64 {
	const steps = 2000
	half := freedom / 2
	lgamma, _ := math.Lgamma(half)
	high := 1 + 8/math.Sqrt(freedom) // of the deviation; what lies above is below 1e-9
	sum := 0.0
	for i := range steps {
		s := high * (float64(i) + 0.5) / steps
		density := math.Exp(math.Ln2 + half*math.Log(half) - lgamma + (freedom-1)*math.Log(s) - half*s*s)
		sum += density * math.Erfc((bound*s-shift)/math.Sqrt2) / 2
	}
	return sum * high / steps
}

// incompleteBeta is the regularized incomplete beta function I_x(a, b), by its continued fraction: Press and others, Numerical
// Recipes, 3rd edition, section 6.4.
func incompleteBeta(a, b, x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsNaN(a):
		return math.NaN()
	case x <= 0:
		return 0
	case x >= 1:
		return 1
	}
	if x > (a+1)/(a+b+2) { // where the fraction converges slowly
		return 1 - incompleteBeta(b, a, 1-x)
	}
	logs := func(v float64) float64 { l, _ := math.Lgamma(v); return l }
	front := math.Exp(logs(a+b)-logs(a)-logs(b)+a*math.Log(x)+b*math.Log1p(-x)) / a
	const tiny = 1e-300
	or := func(v float64) float64 {
		if math.Abs(v) < tiny {
			return tiny
		}
		return v
	}
	c, d := 1.0, 1/or(1-(a+b)*x/(a+1))
	sum := d
	for m := 1.0; m < 10_000; m++ {
		even := m * (b - m) * x / ((a + 2*m - 1) * (a + 2*m))
		d = 1 / or(1+even*d)
		c = or(1 + even/c)
		sum *= d * c
		odd := -(a + m) * (a + b + m) * x / ((a + 2*m) * (a + 2*m + 1))
		d = 1 / or(1+odd*d)
		c = or(1 + odd/c)
		sum *= d * c
		if math.Abs(d*c-1) < 1e-15 {
			break
		}
	}
	return front * sum
}
