package stats

import "math"

// An Interval holds a true figure with some probability. An end that the values do not bound is infinite.
type Interval struct{ Value, Low, High float64 }

// Apart says whether an interval of a difference leaves 0 out.
func (i Interval) Apart() bool { return i.Low > 0 || i.High < 0 }

// A Block is one stretch of a run: a sum of values, and the weight over which they are spread. Mean and share: the weight is the
// number of requests; rate: seconds.
type Block struct{ Sum, Weight float64 }

// An Estimate is a figure of a run with the error that its blocks show. The figure is a ratio, Σ Sum ÷ Σ Weight of all blocks, or a
// percentile, which follows from the share of values up to it. Blocks, not requests, are the unit of evidence: requests that
// share a queue depend on each other.
type Estimate struct {
	Value float64

	ratio float64
	rank  bool                    // the ratio is the rank of a percentile
	least float64                 // variance of the ratio, whatever the blocks show
	off   []float64               // by block: how far it moves the ratio; 0 of an empty one. They add up to 0
	used  int                     // blocks with weight
	at    func(r float64) float64 // the figure where the ratio is r
}

// NewEstimate is of a ratio.
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

// PercentileEstimate is of percentile p of a distribution. Sum of each block is how many of its values are at most that percentile,
// Weight how many it has. The interval is Woodruff's (Journal of the American Statistical Association 47, 1952): that of the
// share, read off the distribution.
func PercentileEstimate(d Distribution, p float64, blocks []Block) Estimate {
	e := NewEstimate(blocks)
	e.Value, e.ratio, e.rank = d.Percentile(p), p/100, true
	n := float64(d.N())
	e.least = e.ratio * (1 - e.ratio) / n // where the greatest values are equal, no block differs from another
	e.at = func(r float64) float64 {
		switch {
		case r == e.ratio:
			return e.Value
		case r*n < 1: // below the least value nothing is known
			return math.Inf(-1)
		case (1-r)*n < 1:
			return math.Inf(1)
		}
		return d.Percentile(100 * r)
	}
	return e
}

// Interval holds the figure with probability 1−tail, by Student's t of the blocks that are worth counting.
func (e Estimate) Interval(tail float64) Interval {
	return e.within(e.spread().factor(tail))
}

// within is the interval of so many times the error of independent blocks.
func (e Estimate) within(times float64) Interval {
	half := times * math.Sqrt(max(e.least, e.spread().variance))
	if math.IsNaN(half) {
		half = math.Inf(1)
	}
	return Interval{e.Value, e.at(e.ratio - half), e.at(e.ratio + half)}
}

// Times is the same figure of a ratio in another unit, such as percent.
func (e Estimate) Times(factor float64) Estimate {
	of := e.at
	e.Value *= factor
	e.at = func(r float64) float64 { return factor * of(r) }
	return e
}

// Log is the figure's natural logarithm: the difference of two is that of a ratio, which does not depend on the level that both
// runs have in a block. The figure must be above 0.
func (e Estimate) Log() Estimate {
	unit, of := 1.0, e.at
	if !e.rank { // offsets of both runs must have one unit
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

// Share is Wilson's 95 % interval of a ratio that is a share of n. Where the blocks show that its error is larger than that of
// n independent requests, it is that of fewer (Kish's effective sample size).
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

// A Difference is that of a figure of two runs whose blocks belong together in their order: what both runs went through, such
// as the bursts of one trace, then does not count as error.
type Difference struct {
	Value float64

	from, to Estimate
	spread   spread
	together float64 // correlation of the blocks of both
}

// NewDifference is to − from. Both should have the same number of blocks.
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

// Neighbours is the correlation of neighbouring blocks, at least 0.
func (d Difference) Neighbours() float64 { return d.spread.neighbours }

// Alike is the difference with neighbours that are at least so correlated: figures of one quantity share the highest of them.
func (d Difference) Alike(neighbours float64) Difference {
	d.spread.neighbours = max(d.spread.neighbours, neighbours)
	return d
}

// Interval holds the true difference with probability 1−tail.
func (d Difference) Interval(tail float64) Interval { return d.within(d.spread.factor(tail)) }

// within combines the intervals of both figures, which may be lopsided: Zou, Psychological Methods 12 (2007), for figures that
// depend on each other.
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

// P is the least tail at which the interval leaves out 0: how likely equal runs are to differ by so much. 1 where there are too
// few blocks to tell.
func (d Difference) P() float64 {
	if d.spread.freedom() <= 0 || d.Value == 0 || math.IsNaN(d.Value) {
		return 1
	}
	low, high := 0.0, 1e6
	for range 60 {
		if middle := (low + high) / 2; d.within(middle).Apart() {
			low = middle
		} else {
			high = middle
		}
	}
	return StudentTail(low/math.Sqrt(d.spread.inflation()), d.spread.freedom())
}

// A spread is what the offsets of blocks say of the error of their sum.
type spread struct {
	blocks     float64 // those that are not empty
	variance   float64 // of the sum, if the blocks were independent
	neighbours float64 // correlation of neighbouring blocks, at least 0
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
		s.neighbours = max(0, r+(1+3*max(0, r))/s.blocks) // in short series it comes out too low: Kendall, Biometrika 41 (1954)
	}
	return s
}

// inflation is by how much neighbours that are alike raise the variance of a sum: that of a first-order autoregression.
func (s spread) inflation() float64 {
	r := min(s.neighbours, 0.999)
	return (1 + r) / (1 - r)
}

func (s spread) worth() float64 { return s.blocks / s.inflation() }

// freedom are Student's degrees of freedom; 0 where the blocks are worth too few.
func (s spread) freedom() float64 {
	if s.worth() < fewestBlocks {
		return 0
	}
	return s.worth() - 1
}

// fewestBlocks is how many independent blocks are the least to judge by.
const fewestBlocks = 3

// factor is the half width of an interval in errors of independent blocks.
func (s spread) factor(tail float64) float64 {
	if s.freedom() <= 0 {
		return math.Inf(1)
	}
	return StudentQuantile(tail, s.freedom()) * math.Sqrt(s.inflation())
}
