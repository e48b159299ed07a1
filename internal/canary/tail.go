package canary

import "math"

// A tail counts pairs whose ratio lies far from the block's median, on either side. An even difference moves the median too, so
// a server that is evenly slower has no tail: the tests of the latencies see it.
type tail struct {
	counts [2][tailSteps]int64 // of distances in steps of tailStep, of the pairs above the median and of those below; the last step has all beyond
	all    [2]int64
}

const (
	tailSteps = 500
	tailStep  = 0.01 // of the natural logarithm
	tailShare = 0.98 // of a side's earlier distances lie below its bound
	tailLeast = 100  // earlier distances of each side that the bound needs
)

// slow counts a block's pairs that are slow on each side.
type slow struct {
	all [2]int // far from the median
	// For the question whether the candidate has more, and whether it has fewer. A candidate that is faster for most requests is not slow for those that
	// merely stayed the same: they are far above the median, and take no longer than on the baseline. So a pair is slow on a side only if it lies far
	// from the median and from 0.
	more, fewer [2]int
}

// count returns how many pairs are slow, judged by earlier blocks, and adds the block to those. ok is false until there are enough. What a latency may
// be longer by, its tolerance and the wander, is no tail, however little noise there is.
func (t *tail) count(logs []float64, tolerated float64) (found slow, ok bool) {
	bound, ok := t.bound()
	bound += tolerated
	middle := median(logs)
	for _, v := range logs {
		d := v - middle
		if ok {
			found.add(v, middle, bound)
		}
		for side, of := range [2]float64{d, -d} {
			if of >= 0 { // the median itself is on both sides
				t.counts[side][min(int(of/tailStep), tailSteps-1)]++
				t.all[side]++
			}
		}
	}
	return found, ok
}

// add adds a pair with the logarithm of its ratio.
func (s *slow) add(v, middle, bound float64) {
	switch {
	case v > middle+bound:
		s.all[Candidate]++
		s.fewer[Candidate]++
		if v > bound {
			s.more[Candidate]++
		}
	case v < middle-bound:
		s.all[Baseline]++
		s.more[Baseline]++
		if v < -bound {
			s.fewer[Baseline]++
		}
	}
}

// bound is the distance that 98 % of the earlier pairs of a side do not exceed, of the side where it is less: a server with a tail must not hide
// it by its own. Equal servers' ratios are as far above the median as below, by whatever bound earlier blocks give.
func (t *tail) bound() (least float64, ok bool) {
	least = math.Inf(1)
	for side := range t.counts {
		if t.all[side] < tailLeast {
			return 0, false
		}
		seen := int64(0)
		for i, n := range t.counts[side] {
			if seen += n; float64(seen) >= tailShare*float64(t.all[side]) {
				least = min(least, float64(i+1)*tailStep)
				break
			}
		}
	}
	return least, true
}
