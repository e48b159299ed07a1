package canary

import (
	"math"
	"time"
)

// A Block is what one block of pairs showed, and the state after it.
type Block struct {
	Number     int64     // from 1, in the epoch
	Begin, End time.Time // instants of its first pair and of the first pair after it

	Pairs, Void, Calm int  // calm pairs: those whose latencies count
	Skip              Skip // why it gives no bits for latencies; "": it gives some
	Metrics           [metrics]BlockMetric
}

// A BlockMetric is what one block showed of a metric.
type BlockMetric struct {
	Ratio    float64     // of a latency: the median of candidate ÷ baseline; NaN: the block gives none
	Requests [2]int      // of a share: requests of each side that count
	Of       int         // of a share: pairs; 0: the block gives none
	After    MetricState // in the mode verdict
}

// Value is the ratio of a latency, and the difference of a share: the candidate's less the baseline's. NaN: the block gives none.
func (b *Block) Value(m Metric) float64 {
	v := &b.Metrics[m]
	if m.IsLatency() {
		return v.Ratio
	}
	return float64(v.Requests[Candidate]-v.Requests[Baseline]) / float64(v.Of)
}

// newEnded returns the block that ends at an instant, without values.
func (c *Comparison) newEnded(at time.Time) Block {
	b := &c.block
	e := Block{Number: c.ended + 1, Begin: c.opened, End: at, Pairs: b.pairs(), Void: int(b.Void), Calm: len(b.logs[E2E])}
	for m := range e.Metrics {
		e.Metrics[m].Ratio = math.NaN()
	}
	return e
}

// blamed is the order of the metrics where several fail with one block. A server that fails requests is often slow
// and has queues, too, and people look for failures first.
var blamed = [metrics]Metric{Bad, TTFT, TPOT, E2E, Tail, Queued}

// maxOverlap bounds the time, in blocks, in which pairs are not calm because answers of the block before go on.
const maxOverlap = 5

// end ends the block if it is long enough and may end at an instant.
func (c *Comparison) end(at time.Time, queued [2]bool) {
	b := &c.block
	down := c.isDown(Baseline, at) || c.isDown(Candidate, at)
	trouble := down || c.isBehind(Baseline, at) || c.isBehind(Candidate, at)
	switch {
	case b.judged() < c.options.MinPairs || at.Sub(c.opened) < c.options.MinTime:
		return
	case trouble: // calm pairs are not waited for
	case queued != [2]bool{} && !c.haveMany() || c.awaits():
		return
	}
	if down {
		b.queued = [2]int{}
	}
	shown := c.newEnded(at)
	c.judge(b, &shown)
	c.sight.end(b.sight, shown.Skip == "", at)
	for m := range c.overall {
		for _, v := range b.all[m] {
			countRatio(c.overall[m][:], v, overallStep)
		}
	}
	c.freePods(at.Add(maxOverlap * max(c.options.MinTime, time.Second)))
	c.answers.merge(&b.answers)
	b.forgetLatencies()
	*b = block{logs: b.logs, all: b.all}
	c.ended++
	c.lasted += at.Sub(c.opened)
	for _, m := range blamed {
		if c.failed < 0 && c.tests[m].hasFailed(c.options.FailLog10()) {
			c.failed, c.after = m, c.lasted
		}
	}
	if c.Ended != nil {
		for m := range c.tests {
			shown.Metrics[m].After = c.state(&c.tests[m])
		}
		c.Ended(shown)
	}
}
