package report

import (
	"math"
	"slices"

	"replayd/internal/stats"
)

// confidence is that of all intervals on pages.
const confidence = 0.95

// An interval holds the true figure with the confidence, if what is said of it holds. An end that the values do not bound is infinite.
type interval struct{ Value, Low, High float64 }

// batches is into how many parts a run is cut for the interval of a mean: enough for a narrow one, and few enough for their
// means to be nearly independent though neighbouring requests are not.
const batches = 30

// batchMean is the mean of values in the order in which they came, and half the width of its interval: by Student's t of
// the means of equal batches, or of the values where they are few. NaN where there are too few.
// Law and Kelton, Simulation Modeling and Analysis, section 9.5.3.
func batchMean(values []float64) (mean, half float64) {
	n := len(values)
	mean = stats.NewDistribution(slices.Clone(values)).Mean
	if n < 2 {
		return mean, math.NaN()
	}
	parts := values
	if n >= 2*batches {
		parts = make([]float64, batches)
		for i := range parts {
			parts[i] = stats.NewDistribution(slices.Clone(values[i*n/batches : (i+1)*n/batches])).Mean
		}
	}
	d := stats.NewDistribution(slices.Clone(parts))
	k := float64(len(parts))
	deviation := d.Std * math.Sqrt(k/(k-1)) // the sample's
	return mean, studentT(len(parts)-1) * deviation / math.Sqrt(k)
}

// fewT are the 0.975 quantiles of Student's t for 1, 2, 3 … degrees of freedom, from the tables.
var fewT = []float64{12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281}

// studentT is the 0.975 quantile, by the first terms of its expansion beyond the table: Abramowitz and Stegun 26.7.5.
func studentT(freedom int) float64 {
	if freedom <= len(fewT) {
		return fewT[max(freedom, 1)-1]
	}
	const z = 1.959964
	v := float64(freedom)
	const z3, z5, z7 = z * z * z, z * z * z * z * z, z * z * z * z * z * z * z
	return z + (z3+z)/(4*v) + (5*z5+16*z3+3*z)/(96*v*v) + (3*z7+19*z5+17*z3-15*z)/(384*v*v*v)
}

// percentileInterval is a percentile with its interval between two order statistics, by the binomial distribution of how many
// values lie below it: exact for independent values, whatever their distribution. Conover, Practical Nonparametric Statistics, 3.2.
func percentileInterval(d stats.Distribution, p float64) interval {
	n := d.N()
	in := interval{Value: d.Percentile(p), Low: math.Inf(-1), High: math.Inf(1)}
	if n == 0 {
		return in
	}
	low, high := binomialRange(n, p/100)
	if low >= 1 {
		in.Low = d.Values[low-1]
	}
	if high < n {
		in.High = d.Values[high]
	}
	return in
}

// binomialRange are the quantiles (1−c)/2 and (1+c)/2 of a binomial distribution: the least counts of which at most so many are
// reached with at least that probability.
func binomialRange(n int, p float64) (low, high int) {
	mean, deviation := float64(n)*p, math.Sqrt(float64(n)*p*(1-p))
	from := max(0, int(mean-9*deviation)-9)
	logs := func(n float64) float64 {
		l, _ := math.Lgamma(n + 1)
		return l
	}
	k := float64(from)
	mass := math.Exp(logs(float64(n)) - logs(k) - logs(float64(n)-k) + k*math.Log(p) + (float64(n)-k)*math.Log1p(-p))
	sum := 0.0
	low = -1
	for i := from; i <= n; i++ {
		sum += mass
		if low < 0 && sum >= (1-confidence)/2 {
			low = i
		}
		if sum >= (1+confidence)/2 {
			return low, i
		}
		mass *= float64(n-i) / float64(i+1) * p / (1 - p)
	}
	return max(low, 0), n
}

// shareInterval is Wilson's interval of a share.
func shareInterval(n, of int) interval {
	if of == 0 {
		return interval{math.NaN(), math.Inf(-1), math.Inf(1)}
	}
	const z = 1.959964
	m, p := float64(of), float64(n)/float64(of)
	middle := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return interval{p, max(0, middle-half), min(1, middle+half)}
}

// difference is a − b with an interval from those of both, which may be lopsided. Zou and Donner, Construction of confidence
// limits about effect measures: a general approach, Statistics in Medicine 27 (2008).
func difference(a, b interval) interval {
	d := a.Value - b.Value
	return interval{d, d - math.Hypot(a.Value-a.Low, b.High-b.Value), d + math.Hypot(a.High-a.Value, b.Value-b.Low)}
}

// apart says whether an interval of a difference leaves 0 out.
func (i interval) apart() bool { return i.Low > 0 || i.High < 0 }
