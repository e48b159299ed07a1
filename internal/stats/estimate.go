package stats

import "math"

// An Interval contains the true figure with some probability. An end that the values do not bound is infinite.
type Interval struct{ Value, Low, High float64 }

// Apart reports whether the interval of a difference excludes 0.
func (i Interval) Apart() bool { return i.Low > 0 || i.High < 0 }

// A Block is one stretch of a run: a sum of values and its weight. For a mean or a share, the weight is the number of
// requests; for a rate, seconds.
type Block struct{ Sum, Weight float64 }

// An Estimate is a figure of a run with the error that its blocks show. The figure is a ratio, Σ Sum ÷ Σ Weight of all
// blocks, or a percentile, which follows from the share of values up to it. Blocks, not requests, are the unit of
// evidence: requests that share a queue are not independent.
type Estimate struct {
	Value float64

	ratio float64
	rank  bool                    // the ratio is the rank of a percentile
	least float64                 // least variance of the ratio
	off   []float64               // by block: how far the block moves the ratio; 0 if it is empty. The offsets add up to 0
	used  int                     // blocks with weight
	at    func(r float64) float64 // the figure for a ratio of r
}

// NewEstimate estimates a ratio.
func NewEstimate(blocks []Block) Estimate {
	e := Estimate{off: make([]float64, len(blocks)), at: func(r float64) float64 { return r }}
	var sum, weight float64
	for _, b := range blocks {
		sum, weight = sum+b.Sum, weight+b.Weight
		if b.Weight > 0 {
			e.used++
		}
	}
	e.ratio = sum / weight
	e.Value = e.ratio
	if weight > 0 {
		for i, b := range blocks {
			e.off[i] = (b.Sum - e.ratio*b.Weight) / weight
		}
	}
	return e
}

// PercentileEstimate estimates percentile p of a distribution. The Sum of a block is the number of its values that are
// at most that percentile, the Weight is the number of its values. The interval is Woodruff's (Journal of the American
// Statistical Association 47, 1952): the interval of the share, read off the distribution.
func PercentileEstimate(d Distribution, p float64, blocks []Block) Estimate {
	e := NewEstimate(blocks)
	e.Value, e.ratio, e.rank = d.Percentile(p), p/100, true
	n := float64(d.N())
	e.least = e.ratio * (1 - e.ratio) / n // if the largest values are equal, the blocks do not differ
	e.at = func(r float64) float64 {
		switch {
		case r == e.ratio:
			return e.Value
		case r*n < 1: // below the smallest value nothing is known
			return math.Inf(-1)
		case (1-r)*n < 1:
			return math.Inf(1)
		}
		return d.Percentile(100 * r)
	}
	return e
}

// Interval contains the figure with probability 1−tail, by Student's t over the effective number of blocks.
func (e Estimate) Interval(tail float64) Interval {
	return e.within(e.spread().factor(tail))
}

// within returns the interval whose half width is times the error of independent blocks.
func (e Estimate) within(times float64) Interval {
	half := times * math.Sqrt(max(e.least, e.spread().variance))
	if math.IsNaN(half) {
		half = math.Inf(1)
	}
	return Interval{e.Value, e.at(e.ratio - half), e.at(e.ratio + half)}
}

// Times returns a ratio in another unit, such as percent.
func (e Estimate) Times(factor float64) Estimate {
	of := e.at
	e.Value *= factor
	e.at = func(r float64) float64 { return factor * of(r) }
	return e
}

// Log returns the natural logarithm of the figure. The difference of two logarithms belongs to a ratio, which does not
// depend on the level that both runs have in a block. The figure must be above 0.
func (e Estimate) Log() Estimate {
	unit, of := 1.0, e.at
	if !e.rank { // offsets of both runs need the same unit
		unit = e.ratio
		off := make([]float64, len(e.off))
		for i, v := range e.off {
			off[i] = v / unit
		}
		e.off = off
	}
	e.Value, e.ratio = math.Log(e.Value), e.ratio/unit
	e.at = func(r float64) float64 { return math.Log(max(0, of(r*unit))) }
	return e
}

// Share returns Wilson's 95 % interval of a share of n requests. If the blocks show a larger error than n independent
// requests would have, Share uses a smaller n (Kish's effective sample size).
func (e Estimate) Share(n int) Interval {
	const z = 1.959964
	m, p, s := float64(n), e.ratio, e.spread()
	if variance := s.variance * s.inflation(); variance*m > p*(1-p) {
		m = p * (1 - p) / variance
	}
	middle := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return Interval{e.Value, e.at(max(0, middle-half)), e.at(min(1, middle+half))}
}

func (e Estimate) spread() spread { return newSpread(e.off, e.used) }

// A Difference is the difference of a figure between two runs. Their blocks are paired in order, so that events of both
// runs, such as the bursts of one trace, do not count as error.
type Difference struct {
	Value float64

	from, to Estimate
	spread   spread
	together float64 // correlation of the paired blocks
}

// NewDifference returns to − from. Both should have the same number of blocks.
func NewDifference(from, to Estimate) Difference {
	d := Difference{Value: to.Value - from.Value, from: from, to: to}
	off := make([]float64, min(len(from.off), len(to.off)))
	var both, squares, others float64
	for i := range off {
		x, y := from.off[i], to.off[i]
		off[i] = y - x
		both, squares, others = both+x*y, squares+x*x, others+y*y
	}
	if squares > 0 && others > 0 {
		d.together = both / math.Sqrt(squares*others)
	}
	d.spread = newSpread(off, min(from.used, to.used))
	return d
}

// Neighbors is the correlation of neighboring blocks, at least 0.
func (d Difference) Neighbors() float64 { return d.spread.neighbors }

// Alike returns the difference with a correlation of neighboring blocks that is at least neighbors. Figures of one
// quantity share their highest correlation.
func (d Difference) Alike(neighbors float64) Difference {
	d.spread.neighbors = max(d.spread.neighbors, neighbors)
	return d
}

// Interval contains the true difference with probability 1−tail.
func (d Difference) Interval(tail float64) Interval { return d.within(d.spread.factor(tail)) }

// within combines the intervals of both figures, which may be asymmetric: Zou, Psychological Methods 12 (2007), for
// correlated figures.
func (d Difference) within(times float64) Interval {
	from, to := d.from.within(times), d.to.within(times)
	join := func(x, y float64) float64 {
		if !(x < math.Inf(1) && y < math.Inf(1)) {
			return math.Inf(1)
		}
		return math.Sqrt(max(0, x*x+y*y-2*d.together*x*y))
	}
	return Interval{d.Value, d.Value - join(to.Value-to.Low, from.High-from.Value), d.Value + join(to.High-to.Value, from.Value-from.Low)}
}

// P is the smallest tail at which the interval excludes 0: the probability that equal runs differ by as much. It is 1
// if there are too few blocks.
func (d Difference) P() float64 {
	if d.spread.freedom() <= 0 || d.Value == 0 || math.IsNaN(d.Value) {
		return 1
	}
	most := Bisect(1e6, 0, 60, func(times float64) bool { return d.within(times).Apart() })
	return StudentTail(most/math.Sqrt(d.spread.inflation()), d.spread.freedom())
}

// A spread describes the error of a sum by the offsets of its blocks.
type spread struct {
	blocks    float64 // number of blocks that are not empty
	variance  float64 // of the sum, if the blocks were independent
	neighbors float64 // correlation of neighboring blocks, at least 0
}

func newSpread(off []float64, used int) spread {
	var squares, products float64
	for i, v := range off {
		squares += v * v
		if i > 0 {
			products += v * off[i-1]
		}
	}
	s := spread{blocks: float64(used), variance: squares * float64(used) / float64(used-1)}
	if squares > 0 {
		r := products / squares
		s.neighbors = max(0, r+(1+3*max(0, r))/s.blocks) // short series underestimate it: Kendall, Biometrika 41 (1954)
	}
	return s
}

// inflation is the factor by which correlated neighbors raise the variance of a sum, as in a first-order
// autoregression.
func (s spread) inflation() float64 {
	r := min(s.neighbors, 0.999)
	return (1 + r) / (1 - r)
}

func (s spread) worth() float64 { return s.blocks / s.inflation() }

// freedom returns Student's degrees of freedom, or 0 if the blocks are worth too little.
func (s spread) freedom() float64 {
	if s.worth() < fewestBlocks {
		return 0
	}
	return s.worth() - 1
}

// fewestBlocks is the least number of independent blocks to judge by.
const fewestBlocks = 3

// factor returns the half width of an interval in errors of independent blocks.
func (s spread) factor(tail float64) float64 {
	if s.freedom() <= 0 {
		return math.Inf(1)
	}
	return StudentQuantile(tail, s.freedom()) * math.Sqrt(s.inflation())
}
