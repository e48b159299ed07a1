package canary

import (
	"math"
	"slices"
	"time"

	"replayd/internal/stats"
)

// A queue tells whether requests of earlier instants wait for their first token on one side.
type queue struct {
	earlier, present time.Time // latest first token among requests of earlier instants, and of this one
}

// meet returns which sides had an earlier request without a first token when the pair was sent. A request that has failed waits no more.
// A request that was not sent meets nothing.
func (c *Comparison) meet(p *Pair) (queued [2]bool) {
	for side := range c.queues {
		q, r := &c.queues[side], &p.Requests[side]
		if p.At.After(c.last) {
			q.earlier = later(q.earlier, q.present)
		}
		if r.Sent.IsZero() {
			continue
		}
		queued[side] = q.earlier.After(r.Sent)
		if r.First.IsZero() {
			q.present = later(q.present, r.End)
		} else {
			q.present = later(q.present, r.First)
		}
	}
	return queued
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// mostCalm bounds the calm pairs of a block whose latencies are kept. The later ones have none.
const mostCalm = 4096

// mostVoid is the greatest share of void pairs in a block with bits for latencies.
const mostVoid = 0.1

// A block is the pairs since the last border.
type block struct {
	pairs, void int
	logs        [E2E + 1][]float64 // ln(candidate ÷ baseline) of calm pairs
	queued, bad [2]int             // requests by side
	ends        time.Time          // of the latest answer
	overlap     int                // judged pairs that overlap with the block before
}

// longest is how many times min_pairs a block may have while it waits for calm pairs.
const longest = 50

// awaits says whether a block that is long enough goes on, because it may yet have enough calm pairs: there are some, and not enough, or all so far
// overlap with the block before.
func (b *block) awaits(least int) bool {
	calm, alone := len(b.logs[E2E]), b.judged()-b.overlap
	return calm < least && (calm > 0 || alone == 0) && alone < longest*least && float64(b.void) <= mostVoid*float64(b.pairs)
}

// judged is the number of pairs that are not void.
func (b *block) judged() int { return b.pairs - b.void }

func (b *block) add(p *Pair, queued [2]bool, free time.Time) {
	b.pairs++
	if p.Void {
		b.void++
		return
	}
	for side := range p.Requests {
		if p.Requests[side].Bad {
			b.bad[side]++
		}
		if queued[side] {
			b.queued[side]++
		}
	}
	for _, r := range p.Requests {
		if r.E2E > 0 {
			b.ends = later(b.ends, r.End)
		}
	}
	if p.At.Before(free) {
		b.overlap++
	}
	if !p.Calm {
		return
	}
	base, cand := &p.Requests[Baseline], &p.Requests[Candidate]
	for m, d := range [E2E + 1][2]time.Duration{{base.TTFT, cand.TTFT}, {base.TPOT, cand.TPOT}, {base.E2E, cand.E2E}} {
		if d[0] > 0 && d[1] > 0 && len(b.logs[m]) < mostCalm {
			b.logs[m] = append(b.logs[m], math.Log(float64(d[1])/float64(d[0])))
		}
	}
}

func (b *block) reset() {
	for m := range b.logs {
		b.logs[m] = b.logs[m][:0]
	}
	*b = block{logs: b.logs}
}

func (b *block) forgetLatencies() {
	for m := range b.logs {
		b.logs[m] = b.logs[m][:0]
	}
	b.queued = [2]int{}
}

// A Skip is the reason why a block gives no bits for latencies.
type Skip string

// Skips; the list is complete.
const (
	SkipVoid     Skip = "void"      // over 10 % of its pairs are void
	SkipFewCalm  Skip = "few_calm"  // fewer calm pairs than min_pairs, because of queues or failures
	SkipNoValues Skip = "no_values" // no pair has latencies
)

// Skips lists all reasons.
var Skips = []Skip{SkipVoid, SkipFewCalm, SkipNoValues}

// judge turns a block into bits, and says what it showed.
func (c *Comparison) judge(b *block, shown *Block) {
	judged := b.judged()
	if judged > 0 {
		c.share(Bad, b.bad, judged, shown)
		c.share(Queued, b.queued, judged, shown)
	}
	if shown.Skip = b.skips(c.options.MinPairs); shown.Skip != "" {
		c.skipped[shown.Skip]++
		c.totals.Skipped[shown.Skip]++
		return
	}
	for m, logs := range b.logs {
		if len(logs) >= c.options.MinPairs {
			c.latency(Metric(m), median(logs), shown)
		}
	}
	logs := b.logs[TTFT]
	if len(logs) < c.options.MinPairs { // answers are not streamed
		logs = b.logs[E2E]
	}
	if over, ok := c.tail.count(logs); ok {
		c.share(Tail, over, len(logs), shown)
	}
}

// skips returns why a block gives no bits for latencies; "": it gives some.
func (b *block) skips(least int) Skip {
	switch {
	case float64(b.void) > mostVoid*float64(b.pairs):
		return SkipVoid
	case len(b.logs[E2E]) == 0 && b.queued == [2]int{}:
		return SkipNoValues
	case len(b.logs[E2E]) < least:
		return SkipFewCalm
	}
	return ""
}

// latency gives a block's value to the metric's test, or to its detectors.
func (c *Comparison) latency(m Metric, value float64, shown *Block) {
	shown.Metrics[m].Ratio = math.Exp(value)
	change := Direction("")
	if c.watch != nil {
		change = c.watch.Latency(m, value, shown.Begin, shown.End)
	} else {
		c.tests[m].latency(value)
	}
	c.totals.Metrics[m].add(value, c.options.threshold(m), change)
}

// share gives a block's requests, by side, to the metric's test, or to its detectors.
func (c *Comparison) share(m Metric, counts [2]int, pairs int, shown *Block) {
	shown.Metrics[m].Requests, shown.Metrics[m].Of = counts, pairs
	change := Direction("")
	if c.watch != nil {
		change = c.watch.Share(m, counts, pairs, shown.Begin, shown.End)
	} else {
		c.tests[m].share(counts, pairs)
	}
	c.totals.Metrics[m].add(float64(counts[Candidate]-counts[Baseline]), 0, change)
}

// median sorts the values. Of an even number it is the mean of the middle two: with the upper one, bits would be biased.
func median(values []float64) float64 {
	slices.Sort(values)
	return stats.Percentile(50, int64(len(values)), func(rank int64) float64 { return values[rank] })
}

// A tail counts pairs whose ratio lies far from the block's median, on either side. An even difference moves the median too, so
// a server that is evenly slower has no tail: the tests of the latencies see it.
type tail struct {
	counts [500]int64 // of distances in steps of tailStep; the last one has all beyond
	all    int64
}

const (
	tailStep  = 0.01 // of the natural logarithm
	tailShare = 0.95 // of earlier distances lie below the bound
	tailLeast = 200  // earlier distances that the bound needs
)

// count returns how many pairs are slow on each side, judged by earlier blocks, and adds the block to those. ok is false until there are enough.
func (t *tail) count(logs []float64) (slow [2]int, ok bool) {
	bound, ok := t.bound()
	middle := median(logs)
	for _, v := range logs {
		d := v - middle
		if ok && math.Abs(d) > bound {
			if d > 0 {
				slow[Candidate]++
			} else {
				slow[Baseline]++
			}
		}
		t.counts[min(int(math.Abs(d)/tailStep), len(t.counts)-1)]++
		t.all++
	}
	if t.all > 1<<40 { // far from overflow
		t.all = 0
		for i := range t.counts {
			t.counts[i] /= 2
			t.all += t.counts[i]
		}
	}
	return slow, ok
}

// bound is the distance that 95 % of the earlier pairs do not exceed.
func (t *tail) bound() (float64, bool) {
	if t.all < tailLeast {
		return 0, false
	}
	seen := int64(0)
	for i, n := range t.counts {
		if seen += n; float64(seen) >= tailShare*float64(t.all) {
			return float64(i+1) * tailStep, true
		}
	}
	return 0, false
}
