package canary

import (
	"fmt"
	"math"
)

// An interval holds the ratio of a latency, as a natural logarithm, however long and often one looks: it has every ratio that the evidence of a fail
// or of a pass has not ruled out at some time so far. So it agrees with the verdict. The chance that it ever misses the ratio is at most
// Alpha / 6 + Alpha. It is empty if the ratio has changed. A value's distance from the ratio may be the wander, so the bounds are wider by it.
type interval struct {
	middle               float64 // the threshold: ratios are looked at in steps from it
	wander               float64
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

func newInterval(middle, wander, failLog10, passLog10 float64) interval {
	i := interval{middle: middle, wander: wander, failLog10: failLog10 + math.Log10(2), passLog10: passLog10 + math.Log10(2)}
	i.setBounds(-1, 2*cells+1)
	return i
}

// restarted raises the evidence that a bound needs after so many restarts of an engine: the time between two of them has half the weight of the one before.
func (i *interval) restarted(times int64) {
	i.failLog10 += float64(times) * math.Log10(2)
	i.passLog10 += float64(times) * math.Log10(2)
}

// setBounds sets both bounds, as cells. Those outside the cells are infinite.
func (i *interval) setBounds(lower, upper int) {
	i.lowerCell, i.upperCell = lower, upper
	i.lower, i.upper = math.Inf(-1), math.Inf(1)
	if lower >= 0 {
		i.lower = i.middle + float64(lower-cells)*cellStep - i.wander
	}
	if upper <= 2*cells {
		i.upper = i.middle + float64(upper-cells)*cellStep + i.wander
	}
}

// add adds a value and returns its cell.
func (i *interval) add(v float64) int {
	cell := int(max(0, min(2*cells, math.Ceil((v-i.middle)/cellStep)+cells)))
	i.counts[cell]++
	i.n++
	i.move()
	return cell
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

// estimate is the median of the block values, to half a step; NaN without values. A median in the first or the last cell can lie anywhere beyond: then it
// is the cell's edge, and a bound.
func (i *interval) estimate() (float64, Bound) {
	switch c := middle(i.counts[:]); c {
	case -1:
		return math.NaN(), ""
	case 0:
		return i.middle - cells*cellStep, LessThan
	case 2 * cells:
		return i.middle + (cells-1)*cellStep, MoreThan
	default:
		return i.middle + (float64(c-cells)-0.5)*cellStep, ""
	}
}

// A Bound says that a ratio is not known, only on which side of a number it is.
type Bound string

// Bounds; "" is that of a ratio that is known.
const (
	LessThan Bound = "less_than"
	MoreThan Bound = "more_than"
)

// RatioText formats the ratio of a latency. One that is only bounded is shown as a number of one digit that it is
// surely beyond.
func (s *MetricState) RatioText() string {
	digit := math.Pow(10, math.Floor(math.Log10(s.Ratio)))
	switch s.Bound {
	case MoreThan:
		return fmt.Sprintf("more than %.4g", digit*math.Floor(s.Ratio/digit))
	case LessThan:
		return fmt.Sprintf("less than %.4g", digit*math.Ceil(s.Ratio/digit))
	}
	return fmt.Sprintf("%.3f", s.Ratio)
}
