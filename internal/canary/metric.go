package canary

import (
	"math"
	"time"
)

// A judged is a metric whose block values are judged, by a test or by the detectors of a watch.
type judged struct {
	metric    Metric
	threshold float64 // ln(1 + tolerance) of a latency; the tolerance of a share
	wander    float64 // of a latency, and of the share queued
	neighbors neighbors
}

func newJudged(o Options, m Metric) judged {
	return judged{metric: m, threshold: o.threshold(m), wander: o.Wander}
}

// least is the excess of a share from which on it gives a bit. A wandering ratio of latencies makes queues on one side,
// so those count from their tolerance and the wander on.
func (j *judged) least() float64 {
	if j.metric == Queued {
		return j.threshold + j.wander
	}
	return 0
}

// depends says whether neighboring blocks are too much alike to be evidence. Blocks of a latency that may wander may
// be.
func (j *judged) depends() bool {
	return !(j.metric.IsLatency() && j.wander > 0) && j.neighbors.depend()
}

// A test is the evidence about one metric.
type test struct {
	judged
	TestSnapshot // what snapshot computes is set only there; At is 0 for a latency until then

	ratio  interval // of a latency
	course course
	long   *long    // of a share that is compared in long blocks
	outage Evidence // of the share bad: bits of blocks that are an outage of one side
}

func newTest(o Options, m Metric) test {
	t := test{judged: newJudged(o, m)}
	switch {
	case m.IsLatency():
		t.ratio = newInterval(t.threshold, t.wander, o.FailLog10(), o.PassLog10())
	case m == Bad, m == Tail && o.Wander > 0:
		t.long = &long{}
	}
	return t
}

// restart lets the evidence begin anew after a restart of an engine. With the next block it fails or passes by what there was before, if that was enough.
func (t *test) restart(o Options) {
	fresh := newTest(o, t.metric)
	fresh.Worse, fresh.Better, fresh.neighbors, fresh.Before = t.Worse, t.Better, t.neighbors, t.Before
	fresh.Before.add(t.All)
	fresh.Worse.Restart()
	fresh.Better.Restart()
	fresh.ratio.restarted(fresh.Worse.Count)
	fresh.clamp(o.FailLog10())
	*t = fresh
}

// alpha is the chance that the bound of a share's excess may be wrong: of all times between two restarts of an engine together that of the options.
func (t *test) alpha(o *Options) float64 {
	if t.metric == Bad { // it goes on
		return o.Alpha
	}
	return math.Ldexp(o.Alpha, -int(min(t.Worse.Count, 900))-1)
}

// latency adds a block's value. A value exactly at a bound is neither above nor below.
func (t *test) latency(value float64, at time.Time, o *Options) {
	t.Worse.Add(value > t.threshold+t.wander)
	t.Better.Add(value < t.threshold-t.wander)
	t.neighbors.add(value)
	t.course.add(t.ratio.add(value), at.Unix())
	t.Passed = t.Passed || t.canPass() && t.Better.Log10() >= o.PassLog10()
	t.clamp(o.FailLog10())
	if t.Changed.IsZero() && t.ratio.lower > t.ratio.upper {
		t.Changed = t.course.changed()
	}
}

// clamp keeps the interval on the side of the tolerance that the evidence says.
func (t *test) clamp(failLog10 float64) {
	if t.Passed {
		t.ratio.upper = min(t.ratio.upper, t.threshold)
	}
	if t.Worse.Log10() >= failLog10 {
		t.ratio.lower = max(t.ratio.lower, t.threshold)
	}
}

// canPass says whether a value below the tolerance can be told from wander.
func (t *test) canPass() bool { return t.wander == 0 || t.threshold > t.wander }

// share adds a block's counts. A tie gives no bit.
func (t *test) share(block Span, end time.Time, o *Options) {
	t.All.add(block.Tally)
	t.Blocks++
	if excess := block.excess(); t.metric == Bad && math.Abs(excess) > outageLeast {
		t.outage.Add(excess > 0)
	}
	if t.long != nil {
		if block.Tally = t.long.add(block, end, o.MinTime); block.Pairs == 0 {
			return
		}
	}
	t.neighbors.add(block.excess())
	t.Excess.add(block.excess())
	t.sign(block.Tally)
	t.Passed = t.Passed || t.isWithin(1, o)
}

func (t *test) sign(block Tally) {
	difference := block.Candidate - block.Baseline
	if difference == 0 {
		t.At++
		return
	}
	t.Worse.Add(block.excess() > t.least())
	t.Better.Add(block.excess() < -t.least())
}

func (t *test) hasFailed(failLog10 float64) bool {
	return t.worseLog10() >= failLog10 && (t.metric.IsLatency() || t.total() > t.threshold) && !t.depends()
}

// total is the excess of a share over all restarts.
func (t *test) total() float64 {
	all := t.Before
	all.add(t.All)
	return all.known()
}

// passes says whether the evidence of a pass was enough, and what has come since the latest restart does not speak against it. A ratio that was low
// for a while and is high now would else pass.
func (t *test) passes() bool {
	return t.Passed && (!t.metric.IsLatency() || t.Better.Bits > 0 && t.Better.Evidence.Log10() >= 0)
}

// worseLog10 is the decimal logarithm of the evidence for a fail. That of bad is the greater one of its two tests, each at half its alpha.
func (t *test) worseLog10() float64 {
	if t.metric != Bad {
		return t.Worse.Log10()
	}
	return max(t.Worse.Log10(), t.outage.Log10()) - math.Log10(2)
}

// blocksToPass is how many more blocks like those so far the metric needs for a pass; −1: no number of them suffices. A latency without values
// needs none.
func (t *test) blocksToPass(o *Options) int64 {
	switch {
	case t.passes(), t.metric.IsLatency() && t.values() == 0, !t.metric.IsLatency() && t.threshold >= 1:
		return 0
	case !t.metric.IsLatency():
		n := t.excessToPass(o)
		if t.long != nil && n > 0 {
			n *= longTimes
		}
		return n
	case !t.canPass():
		return -1
	}
	return t.Better.toReach(o.PassLog10())
}

// values is the number of blocks with a value since the latest restart of an engine.
func (t *test) values() int64 {
	if t.metric.IsLatency() {
		return t.Worse.Bits
	}
	return t.Blocks
}
