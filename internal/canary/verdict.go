package canary

import (
	"maps"
	"math"
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

// Reasons; the list is complete.
const (
	FewBlocks Reason = "few_blocks" // the evidence does not suffice yet
	Dependent Reason = "dependent"  // neighbouring blocks are too much alike to be evidence
	Queues    Reason = "queues"     // there are pairs, and no instant without a queue
	NoValues  Reason = "no_values"  // no pair has latencies on both sides
	Excess    Reason = "excess"     // a share of requests is above its tolerance, which is not proven
)

// Reasons lists all reasons.
var Reasons = []Reason{FewBlocks, Dependent, Queues, NoValues, Excess}

// A Judgement is the state of a comparison.
type Judgement struct {
	Verdict Verdict // "" in the mode watch
	Reason  Reason  // "" unless it is undecided. In the mode watch it is Queues, or "".
	Metric  Metric  // that has failed, or is the reason
	Behind  [2]bool // sides whose latest requests all met a queue
	Pairs   Pairs
	Metrics [metrics]MetricState // in the mode verdict
	Watch   []WatchState         // in the mode watch, one for each metric; else nil
	Totals  Totals
	Skipped map[Skip]int64 // blocks without bits for latencies
	// More is how many blocks the verdict still needs if the next ones are like the ones so far: 0 unless it is undecided; −1: no number of
	// blocks suffices.
	More int64
	// BlockTime is the mean length of the blocks so far; 0: there are none.
	BlockTime time.Duration
}

// A MetricState is the state of one metric.
type MetricState struct {
	Metric              Metric
	Blocks              int64 // with a value
	Worse, Better, Ties int64 // blocks
	WorseLog10          float64
	NotWorseLog10       float64 // of latencies
	Correlation         float64 // of neighbouring blocks; NaN: below 50
	Dependent           bool
	// A latency's candidate ÷ baseline, with an interval that holds however often one looks. NaN, 0 and +Inf where there is none.
	Ratio, Lower, Upper float64
	Excess              float64 // of a share: the candidate's less the baseline's
	Failed, Passed      bool
}

// Judge returns the present state.
func (c *Comparison) Judge() Judgement {
	j := Judgement{Verdict: Undecided, Reason: FewBlocks, Pairs: c.pairs, Totals: c.totals.clone(), Skipped: maps.Clone(c.skipped)}
	for side := range c.troubles {
		j.Behind[side] = c.troubles[side].behind.pairs >= c.options.MinPairs
	}
	for m := range c.tests {
		j.Metrics[m] = c.state(&c.tests[m])
	}
	if c.ended > 0 {
		j.BlockTime = c.lasted / time.Duration(c.ended)
	}
	if c.watch != nil {
		j.Verdict, j.Reason, j.Watch = "", "", c.watch.States()
		if c.waits() {
			j.Reason = Queues
		}
		return j
	}
	if c.failed >= 0 {
		j.Verdict, j.Reason, j.Metric = Fail, "", c.failed
		return j
	}
	values, dependent, excess := false, Metric(-1), Metric(-1)
	passes := true
	for _, s := range j.Metrics {
		if s.Blocks == 0 {
			continue
		}
		if s.Dependent && dependent < 0 {
			dependent = s.Metric
		}
		if s.Metric.IsLatency() {
			values = true
			passes = passes && s.Passed
		} else if s.Excess > c.options.threshold(s.Metric) && excess < 0 {
			excess = s.Metric
		}
	}
	switch {
	case !values && c.waits():
		j.Reason = Queues
	case !values && c.skipped[SkipNoValues] > 0:
		j.Reason = NoValues
	case !values:
	case dependent >= 0:
		j.Reason, j.Metric = Dependent, dependent
	case passes && excess >= 0:
		j.Reason, j.Metric = Excess, excess
	case passes:
		j.Verdict, j.Reason = Pass, ""
		return j
	}
	j.More = c.missing()
	return j
}

// queuesAfter is how many times min_time a block lasts before queues are the reason.
const queuesAfter = 10

// waits says whether a side is behind, or the block is long enough and has long found no instant without a queue.
func (c *Comparison) waits() bool {
	if c.isBehind(Baseline, c.last) || c.isBehind(Candidate, c.last) {
		return true
	}
	return c.block.judged() >= c.options.MinPairs && c.last.Sub(c.opened) >= queuesAfter*max(c.options.MinTime, time.Second)
}

func (c *Comparison) state(t *test) MetricState {
	s := MetricState{
		Metric: t.metric, Blocks: t.worse.Bits + t.ties, Worse: t.worse.Ones, Better: t.better.Ones, Ties: t.ties,
		WorseLog10: t.worse.Log10(), Correlation: t.neighbours.correlation(), Dependent: t.neighbours.depend(),
		Ratio: math.NaN(), Failed: c.failed == t.metric, Passed: t.passed,
	}
	if t.metric.IsLatency() {
		s.NotWorseLog10 = t.better.Log10()
		s.Ratio, s.Lower, s.Upper = math.Exp(t.ratio.estimate()), math.Exp(t.ratio.lower), math.Exp(t.ratio.upper)
	} else {
		s.Excess = t.all.excess()
	}
	return s
}

// missing estimates the blocks to a verdict: to the first fail, or to the last pass of a latency, whichever is sooner.
func (c *Comparison) missing() int64 {
	fail, pass, known := int64(-1), int64(0), false
	for m := range c.tests {
		t := &c.tests[m]
		if n := t.worse.toReach(c.options.FailLog10()); n >= 0 && (t.metric.IsLatency() || t.all.excess() > t.threshold) && (fail < 0 || n < fail) {
			fail = n
		}
		if !t.metric.IsLatency() || t.worse.Bits == 0 || t.passed {
			continue
		}
		known = true
		if n := t.better.toReach(c.options.PassLog10()); n < 0 || pass < 0 {
			pass = -1
		} else {
			pass = max(pass, n)
		}
	}
	switch {
	case !known:
		pass = -1
	case fail < 0:
		return pass
	}
	if pass < 0 {
		return fail
	}
	return min(fail, pass)
}

// mostAhead bounds the estimate, in bits.
const mostAhead = 1 << 20

// toReach is how many more bits with the share of ones so far bring the evidence to a bound; −1: they never do.
func (e Evidence) toReach(log10 float64) int64 {
	if e.Bits == 0 || 2*e.Ones <= e.Bits {
		return -1
	}
	share := float64(e.Ones) / float64(e.Bits)
	reaches := func(more int64) bool {
		return Evidence{e.Ones + int64(share*float64(more)), e.Bits + more}.Log10() >= log10
	}
	if !reaches(mostAhead) {
		return -1
	}
	low, high := int64(-1), int64(mostAhead) // low does not reach, high does
	for high-low > 1 {
		if middle := (low + high) / 2; reaches(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
