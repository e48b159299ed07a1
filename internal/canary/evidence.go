package canary

import "math"

// Evidence is a sequential sign test: how much k ones among n bits speak against "the chance of a one, given the past, is at most 1/2".
// It is the beta-binomial mixture of Howard, Ramdas, McAuliffe and Sekhon, Time-uniform, nonparametric, nonasymptotic confidence sequences,
// Annals of Statistics 49(2), 2021, Proposition 8 and equation (59), with the prior Beta(1, 1) on chances above 1/2:
//
//	E = 2ⁿ · B(1+k, 1+n−k) · (1 − I½(1+k, 1+n−k)) / (B(1, 1) / 2)
//
// B is the beta function, I½ its regularized incomplete form at 1/2. By Ville's inequality E ever reaches 1/α with a chance of at most α.
type Evidence struct{ Ones, Bits int64 }

// Add counts a bit.
func (e *Evidence) Add(one bool) {
	e.Bits++
	if one {
		e.Ones++
	}
}

// maxLog10 bounds the logarithm of evidence.
const maxLog10 = 300

// Log10 is the decimal logarithm of E, from −300 to 300.
//
// For whole numbers I½ is a tail of the binomial distribution, and with N = n + 1 the formula is
//
//	E = Σ C(N, j) / C(N, k) / (N − k), over j from 0 to k
//
// Below the middle the terms fall quickly from j = k down. Above it the sum is 2ᴺ without the terms beyond k, which fall as well.
func (e Evidence) Log10() float64 {
	n, k := float64(e.Bits+1), float64(e.Ones)
	var ln float64
	if 2*k <= n {
		ln = math.Log1p(falling(k, n-k+1))
	} else {
		logs := func(v float64) float64 { l, _ := math.Lgamma(v + 1); return l }
		all := n*math.Ln2 - logs(n) + logs(k) + logs(n-k) // ln(2ᴺ / C(N, k))
		ln = all + math.Log1p(-falling(n-k, k+1)*math.Exp(-all))
	}
	ln -= math.Log(n - k)
	return max(-maxLog10, min(maxLog10, ln/math.Ln10))
}

// falling returns the sum of top/bottom, top/bottom · (top−1)/(bottom+1), and so on.
func falling(top, bottom float64) float64 {
	sum := 0.0
	for term := 1.0; top > 0; top, bottom = top-1, bottom+1 {
		term *= top / bottom
		sum += term
		if term < 1e-17*sum {
			break
		}
	}
	return sum
}
