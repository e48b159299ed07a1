package canary

import (
	"cmp"
	"maps"
	"math"
	"sort"
	"time"
)

// A Verdict answers a comparison.
type Verdict string

// Verdicts; the list is complete.
const (
	Pass      Verdict = "pass" // it can still become a fail
	Fail      Verdict = "fail" // final in its epoch
	Undecided Verdict = "undecided"
)

// Verdicts lists all verdicts.
var Verdicts = []Verdict{Pass, Fail, Undecided}

// A Reason says why a comparison is undecided.
type Reason string

// Reasons; the list is complete. The first ones say that the comparison sees nothing of latencies: it is blind.
const (
	Queues        Reason = "queues"     // most requests meet a queue
	FewCalm       Reason = "few_calm"   // too few pairs that met no queue have latencies, because of failures or answers that overlap
	TooVoid       Reason = "void"       // too many pairs are void
	NoValues      Reason = "no_values"  // no pair of the last two blocks' time has latencies on both sides
	NoData        Reason = "no_data"    // no block has latencies yet, and none is due for long
	FewBlocks     Reason = "few_blocks" // the evidence does not suffice yet
	FewPairs      Reason = "few_pairs"  // latencies would pass; a share of requests may still be above its tolerance
	Excess        Reason = "excess"     // a share of requests is above its tolerance, which is not proven
	Dependent     Reason = "dependent"  // neighboring blocks are too much alike to be evidence
	TooMuchWander Reason = "wander"     // the tolerance is not above the wander: nothing can pass
	Changed       Reason = "changed"    // the ratio has changed

	// Where a verdict must be about the version.
	FewPods     Reason = "few_pods"     // fewer than three pods on a side, or with latencies
	PodsChanged Reason = "pods_changed" // a pod was replaced or has restarted since the first pair
	NextLook    Reason = "next_look"    // no look at the pods has decided yet
)

// Reasons lists all reasons.
var Reasons = []Reason{
	Queues, FewCalm, TooVoid, NoValues, NoData, FewBlocks, FewPairs, Excess, Dependent, TooMuchWander, Changed,
	FewPods, PodsChanged, NextLook,
}

// BlindReasons lists why a comparison sees nothing.
var BlindReasons = Reasons[:4]

// Rules is the version of the rules by which pairs become a verdict. Evidence of other rules is no evidence: where they change, so does this number.
const Rules = 3

// A Judgment is the state of a comparison.
type Judgment struct {
	Verdict Verdict // "" in the mode watch
	Reason  Reason  // "" unless it is undecided. In the mode watch it is a blind reason, NoData, or "".
	Blind   Reason  // why nothing is seen of latencies at present, also where a verdict stands; "": it is seen
	Metric  Metric  // that has failed, or is the reason
	Scope   Scope   // of the verdict
	Pair    Verdict // of the servers that were compared, whatever is required
	PairWhy Reason  // why that is undecided
	// Hidden is a pod with hardly any calm pairs, by side and number, for which no block has latencies; 0: there is none.
	Hidden  [2]int
	Pods    PodsState
	Behind  [2]bool // sides whose latest requests all met a queue
	Pairs   Pairs
	Account Account // of the process; set by whoever pairs the requests
	// Others is the share of each side's output tokens that other clients have got, by its engine's page; NaN: not known. Set likewise.
	Others  [2]float64
	Unread  [2]bool              // sides whose output tokens are on no page that is read: Others is not known. Set likewise.
	Metrics [metrics]MetricState // in the mode verdict
	Watch   []WatchState         // in the mode watch, one for each metric; else nil
	Blocks  int64                // that have ended in the epoch
	Lasted  time.Duration        // all of them; where the candidate has failed, those until then
	Useful  int64                // blocks with bits for latencies
	Skipped map[Skip]int64       // blocks without
	Answers Answers              // not judged
	// Calm is the share of the pairs with latencies that met no queue: the latencies are theirs. NaN: there are no pairs.
	Calm     float64
	Overall  [E2E + 1]float64 // ratio of each latency over all pairs, as a median; NaN: there is none
	Warm     time.Time        // until then the servers warm up, and pairs are void; zero: they do not
	Unseen   Sight            // since the latest block with latencies
	Restarts int64            // of engines that the evidence about latencies goes over
	// More is how many blocks the verdict still needs if the next ones are like the ones so far: 0 unless it is undecided; −1: no number of
	// blocks suffices.
	More int64
	// BlockTime is the mean time of a block with bits for latencies so far; 0: there are none.
	BlockTime time.Duration
}

// A MetricState is the state of one metric.
type MetricState struct {
	Metric              Metric
	Blocks              int64 // with a value
	Worse, Better, Ties int64 // blocks
	WorseLog10          float64
	NotWorseLog10       float64 // of latencies
	Correlation         float64 // of neighboring blocks; NaN: below 50
	Dependent           bool
	// A latency's candidate ÷ baseline, with an interval that holds however often one looks. NaN, 0 and +Inf where there is none.
	Ratio, Lower, Upper float64
	Bound               Bound     // of a ratio that is more, or less, than Ratio
	Changed             time.Time // when the ratio changed, so that there is no interval; zero: it has not
	Excess              float64   // of a share: the candidate's less the baseline's; NaN without a block
	ExcessUpper         float64   // of a share: a bound that a pass needs at or below the tolerance
	Failed, Passed      bool
}

// Judge returns the present state.
func (c *Comparison) Judge() Judgment {
	j := c.judgePair()
	if side, pod := c.unseen(); pod > 0 {
		j.Hidden[side] = pod
	}
	if c.looks == nil {
		return j
	}
	j.Pair, j.PairWhy, j.Pods = j.Verdict, j.Reason, c.looks.state(&c.options)
	switch {
	case c.options.Require == ScopePods:
		j.Scope, j.Verdict, j.Reason, j.Metric, j.Lasted, j.More = ScopePods, j.Pods.Verdict, j.Pods.Reason, j.Pods.Metric, j.Pods.After, 0
		if j.Verdict == Undecided {
			j.More = -1
		}
	case j.Pods.Verdict == j.Verdict && j.Verdict != Undecided:
		j.Scope = ScopePods
	}
	return j
}

// judgePair returns the state of the servers that are compared, without a sentence about their version.
func (c *Comparison) judgePair() Judgment {
	s := &c.sight
	j := Judgment{
		Verdict: Undecided, Scope: ScopePair, Pairs: c.pairs, Blocks: c.ended, Lasted: c.lasted, Skipped: maps.Clone(c.skipped), Useful: s.Useful,
		Calm: s.calmShare(), BlockTime: s.blockTime(), Restarts: c.tests[TTFT].Worse.Count,
	}
	j.Blind, j.Unseen = c.blind()
	if c.last.Before(c.warm) {
		j.Warm = c.warm
	}
	all := c.answers
	all.merge(&c.block.answers)
	j.Answers = all.state(c.options.Alpha)
	for side := range c.troubles {
		j.Behind[side] = c.troubles[side].behind.pairs >= c.options.MinPairs
	}
	for m := range c.tests {
		j.Metrics[m] = c.state(&c.tests[m])
		if Metric(m).IsLatency() {
			j.Overall[m] = medianRatio(c.overall[m][:], overallStep)
		}
	}
	if c.watch != nil {
		j.Verdict, j.Reason, j.Watch = "", j.Blind, c.watch.States()
		if j.Blind == "" && s.Useful == 0 {
			j.Reason = NoData
		}
		return j
	}
	if c.failed >= 0 {
		j.Verdict, j.Metric, j.Lasted = Fail, c.failed, c.after
		return j
	}
	if j.Reason, j.Metric = c.reason(&j); j.Reason == "" {
		j.Verdict = Pass
		return j
	}
	j.More = c.missing()
	return j
}

// reason says why the comparison is undecided, and the metric that is the reason; "": it passes.
func (c *Comparison) reason(j *Judgment) (Reason, Metric) {
	first := func(is func(s *MetricState) bool) Metric {
		for m := range j.Metrics {
			if s := &j.Metrics[m]; s.Blocks > 0 && is(s) {
				return s.Metric
			}
		}
		return -1
	}
	unpassed := first(func(s *MetricState) bool { return s.Metric.IsLatency() && !s.Passed })
	if c.sight.Useful == 0 {
		return cmp.Or(j.Blind, NoData), 0
	}
	if m := first(func(s *MetricState) bool { return !s.Changed.IsZero() }); m >= 0 {
		return Changed, m
	}
	if j.Blind != "" && unpassed >= 0 {
		return j.Blind, 0
	}
	if _, pod := c.unseen(); pod > 0 {
		return FewCalm, 0
	}
	if m := first(func(s *MetricState) bool { return s.Dependent }); m >= 0 {
		return Dependent, m
	}
	if !c.tests[TTFT].canPass() {
		return TooMuchWander, TTFT
	}
	if unpassed >= 0 {
		return FewBlocks, 0
	}
	if m := first(func(s *MetricState) bool { return !s.Metric.IsLatency() && s.Excess > c.options.threshold(s.Metric) }); m >= 0 {
		return Excess, m
	}
	for _, m := range []Metric{Tail, Queued, Bad} {
		if !j.Metrics[m].Passed && c.options.ToleranceOf(m) < 1 { // all may be so
			return FewPairs, m
		}
	}
	return "", 0
}

func (c *Comparison) state(t *test) MetricState {
	s := MetricState{
		Metric: t.metric, Blocks: t.values(), Worse: t.Worse.Ones, Better: t.Better.Ones, Ties: t.At,
		WorseLog10: t.worseLog10(), Correlation: t.neighbors.correlation(), Dependent: t.depends(),
		Ratio: math.NaN(), Failed: c.failed == t.metric, Passed: t.passes(), Changed: t.Changed,
	}
	if t.metric.IsLatency() {
		s.NotWorseLog10 = t.Better.Log10()
		estimate, bound := t.ratio.estimate()
		s.Ratio, s.Lower, s.Upper, s.Bound = math.Exp(estimate), math.Exp(t.ratio.lower), math.Exp(t.ratio.upper), bound
		if !t.Changed.IsZero() {
			s.Lower, s.Upper = 0, math.Inf(1)
		}
	} else {
		s.Excess, s.ExcessUpper = t.total(), t.upper(&c.options)
	}
	return s
}

// missing estimates the blocks to a verdict: to the first fail, or to the last pass, whichever is sooner.
func (c *Comparison) missing() int64 {
	fail, pass := int64(-1), int64(0)
	for m := range c.tests {
		t := &c.tests[m]
		needed := c.options.FailLog10()
		if t.metric == Bad { // each of its two tests has half of alpha
			needed += math.Log10(2)
		}
		n := t.Worse.toReach(needed)
		if t.long != nil && n > 0 {
			n *= longTimes
		}
		if n >= 0 && (t.metric.IsLatency() || t.total() > t.threshold) && (fail < 0 || n < fail) {
			fail = n
		}
		if n := t.blocksToPass(&c.options); n < 0 || pass < 0 {
			pass = -1
		} else {
			pass = max(pass, n)
		}
	}
	switch {
	case c.sight.Useful == 0 || pass < 0:
		return fail
	case fail < 0:
		return pass
	}
	return min(fail, pass)
}

// maxAhead bounds the estimate, in bits.
const maxAhead = 1 << 20

// toReach is how many more bits with the share of ones so far bring the evidence to a bound; −1: they never do.
func (r *Restarts) toReach(log10 float64) int64 {
	e := r.Evidence
	if e.Bits == 0 || 2*e.Ones <= e.Bits {
		return -1
	}
	share := float64(e.Ones) / float64(e.Bits)
	reaches := func(more int) bool {
		return r.with(Evidence{e.Ones + int64(share*float64(more)), e.Bits + int64(more)}) >= log10
	}
	if !reaches(maxAhead) {
		return -1
	}
	fewer := sort.Search(maxAhead, func(fewer int) bool { return !reaches(maxAhead - 1 - fewer) })
	return int64(maxAhead - fewer)
}
