package canary

import "math"

// An interval holds the ratio of a latency, as a natural logarithm, however long and often one looks: it has every ratio that the evidence of a fail
// or of a pass has not ruled out at some time so far. So it agrees with the verdict. The chance that it ever misses the ratio is at most
// Alpha / 6 + Alpha.
type interval struct {
	middle               float64 // the threshold: ratios are looked at in steps from it
	failLog10, passLog10 float64
	counts               [2*cells + 1]int64 // block values v by ⌈(v − middle) / step⌉ + cells
	n                    int64
	lower, upper         float64
	lowerCell, upperCell int // the bounds, as cells
}

// The cells reach from 1/20 to 20 times the threshold.
const (
	cells    = 1200
	cellStep = 0.0025
)

func newInterval(middle, failLog10, passLog10 float64) interval {
	i := interval{middle: middle, failLog10: failLog10, passLog10: passLog10}
	i.setBounds(-1, 2*cells+1)
	return i
}

// setBounds sets both bounds, as cells. Those outside the cells are infinite.
func (i *interval) setBounds(lower, upper int) {
	i.lowerCell, i.upperCell = lower, upper
	i.lower, i.upper = math.Inf(-1), math.Inf(1)
	if lower >= 0 {
		i.lower = i.middle + float64(lower-cells)*cellStep
	}
	if upper <= 2*cells {
		i.upper = i.middle + float64(upper-cells)*cellStep
	}
}

func (i *interval) add(v float64) {
	cell := math.Ceil((v-i.middle)/cellStep) + cells
	i.counts[int(max(0, min(2*cells, cell)))]++
	i.n++
	i.move()
}

// move raises the lower bound and lowers the upper one as far as the evidence goes.
func (i *interval) move() {
	// Values in cells above c are above the ratio of c; those in cells up to c − 1 are below it.
	above := i.n
	for c := 0; c <= 2*cells; c++ {
		above -= i.counts[c]
		if c <= i.lowerCell {
			continue
		}
		if (Evidence{above, i.n}).Log10() < i.failLog10 {
			break
		}
		i.setBounds(c, i.upperCell)
	}
	below := i.n
	for c := 2 * cells; c >= 0; c-- {
		below -= i.counts[c]
		if c >= i.upperCell {
			continue
		}
		if (Evidence{below, i.n}).Log10() < i.passLog10 {
			break
		}
		i.setBounds(i.lowerCell, c)
	}
}

// estimate is the median of the block values, to half a step; NaN without values.
func (i *interval) estimate() float64 {
	if i.n == 0 {
		return math.NaN()
	}
	seen := int64(0)
	for c, count := range i.counts {
		if seen += count; 2*seen >= i.n {
			return i.middle + (float64(c-cells)-0.5)*cellStep
		}
	}
	return math.NaN()
}
