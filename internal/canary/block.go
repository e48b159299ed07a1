package canary

import (
	"math"
	"slices"

	"replayd/internal/stats"
)

// maxCalm bounds the calm pairs of a block. The latencies of later pairs are not kept.
const maxCalm = 4096

// maxVoid is the greatest share of void pairs in a block with bits for latencies.
const maxVoid = 0.1

// A block is the pairs since the last border.
type block struct {
	Pairs
	logs    [E2E + 1][]float64 // ln(candidate ÷ baseline) of calm pairs
	queued  [2]int             // requests by side
	overlap int                // judged pairs that overlap with the block before
	answers answers
	sight   Sight
	all     [E2E + 1][]float64 // as logs, of all judged pairs
}

// longest is how many times min_pairs a block may have while it waits for calm pairs.
const longest = 50

// awaits says whether the block, which is long enough, goes on, because it may yet have enough calm pairs: there are some, and not enough, or all so far
// overlap with the block before.
func (c *Comparison) awaits() bool {
	b := &c.block
	calm, alone := len(b.logs[E2E]), b.judged()-b.overlap
	hope := calm > 0 || alone == 0 || c.haveMany() && b.judged() < manyTimes*c.options.MinPairs
	return calm < c.least() && hope && alone < longest*c.options.MinPairs && !b.isVoid()
}

// Where the sides have many pods, a block of manyTimes min_pairs that has few calm ones has a value with an eighth of min_pairs. A block's value is a
// median, and of fewer pairs it is less exact, but no less even.
const (
	manyTimes = 10
	leastPart = 8
)

// least is how many calm pairs the open block needs for a value.
func (c *Comparison) least() int {
	if c.haveMany() && c.block.judged() >= manyTimes*c.options.MinPairs {
		return (c.options.MinPairs + leastPart - 1) / leastPart
	}
	return c.options.MinPairs
}

// isVoid says whether too many pairs are void for bits for latencies. Those of servers that warm up are not expected to be judged.
func (b *block) isVoid() bool {
	warming := b.Voids[VoidWarmUp]
	return float64(b.Void-warming) > maxVoid*float64(int64(b.pairs())-warming)
}

func (b *block) pairs() int { return int(b.Judged + b.Void) }

// judged is the number of pairs that are not void.
func (b *block) judged() int { return int(b.Judged) }

func (b *block) add(p *Pair, queued [2]bool, overlaps bool) {
	b.Pairs.add(p)
	if p.Void != VoidWarmUp {
		b.sight.add(p, queued)
	}
	if p.Void != NotVoid {
		return
	}
	b.answers.add(p)
	for side := range p.Requests {
		if queued[side] {
			b.queued[side]++
		}
	}
	if overlaps {
		b.overlap++
	}
	for m := range b.logs {
		ratio := p.logRatio(Metric(m))
		if math.IsNaN(ratio) {
			continue
		}
		if len(b.all[m]) < maxCalm {
			b.all[m] = append(b.all[m], ratio)
		}
		if p.Calm && len(b.logs[m]) < maxCalm {
			b.logs[m] = append(b.logs[m], ratio)
		}
	}
}

// logRatio is ln(candidate ÷ baseline) of a latency; NaN where a side has none.
func (p *Pair) logRatio(m Metric) float64 {
	base, cand := p.Requests[Baseline].Latency(m), p.Requests[Candidate].Latency(m)
	if base <= 0 || cand <= 0 {
		return math.NaN()
	}
	return math.Log(float64(cand) / float64(base))
}

func (b *block) forgetLatencies() {
	for m := range b.logs {
		b.logs[m], b.all[m] = b.logs[m][:0], b.all[m][:0]
	}
	b.queued, b.sight = [2]int{}, Sight{}
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
		bad := [2]int{int(b.Bad[Baseline]), int(b.Bad[Candidate])}
		c.share(Bad, slow{all: bad, more: bad, fewer: bad}, judged, shown)
		c.share(Queued, slow{all: b.queued, more: b.queued, fewer: b.queued}, judged, shown)
	}
	least := c.least()
	shown.Skip = b.skips(least)
	if _, pod := c.unseen(); pod > 0 && shown.Skip == "" {
		shown.Skip = SkipFewCalm
	}
	if shown.Skip != "" {
		c.skipped[shown.Skip]++
		c.counters.count(func(t *Totals) { t.Skipped[shown.Skip]++ })
		return
	}
	for m, logs := range b.logs {
		if len(logs) >= least {
			// Of an odd number of pairs the median is one of them: it is above a bound with a chance of at most 1/2 if each pair is, however skew they are.
			c.latency(Metric(m), median(logs[:len(logs)-1+len(logs)%2]), shown)
		}
	}
	logs := b.logs[TTFT]
	if len(logs) < least { // answers are not streamed
		logs = b.logs[E2E]
	}
	if found, ok := c.tail.count(logs, c.options.threshold(TTFT)+c.options.Wander); ok {
		c.share(Tail, found, len(logs), shown)
	}
}

// skips returns why a block gives no bits for latencies; "": it gives some.
func (b *block) skips(least int) Skip {
	switch {
	case b.isVoid():
		return SkipVoid
	case len(b.logs[E2E]) == 0 && b.queued == [2]int{}:
		return SkipNoValues
	case len(b.logs[E2E]) < least:
		return SkipFewCalm
	}
	return ""
}

func (c *Comparison) latency(m Metric, value float64, shown *Block) {
	shown.Metrics[m].Ratio = math.Exp(value)
	change := Direction("")
	if c.watch != nil {
		change = c.watch.Latency(m, value, shown.Begin, shown.End)
	} else {
		c.tests[m].latency(value, shown.Begin, &c.options)
	}
	c.counters.count(func(t *Totals) { t.Metrics[m].add(value, c.options.threshold(m), change) })
}

func (c *Comparison) share(m Metric, found slow, pairs int, shown *Block) {
	shown.Metrics[m].Requests, shown.Metrics[m].Of = found.all, pairs
	change := Direction("")
	if c.watch != nil {
		of := func(counts [2]int) Tally { return tallyOf(counts, pairs) }
		change = c.watch.share(m, of(found.all), of(found.more), of(found.fewer), shown.Begin, shown.End)
	} else {
		shown.Metrics[m].Requests = found.more
		c.tests[m].share(Span{shown.Begin, tallyOf(found.more, pairs)}, shown.End, &c.options)
	}
	c.counters.count(func(t *Totals) {
		t.Metrics[m].add(float64(shown.Metrics[m].Requests[Candidate]-shown.Metrics[m].Requests[Baseline]), 0, change)
	})
}

func tallyOf(counts [2]int, pairs int) Tally {
	return Tally{Baseline: int64(counts[Baseline]), Candidate: int64(counts[Candidate]), Pairs: int64(pairs)}
}

// median sorts the values. Of an even number it is the mean of the middle two: with the upper one, bits would be biased.
func median(values []float64) float64 {
	slices.Sort(values)
	return stats.Percentile(50, int64(len(values)), func(rank int64) float64 { return values[rank] })
}
