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
	e := Block{Number: c.ended + 1, Begin: c.opened, End: at, Pairs: b.pairs, Void: b.void, Calm: len(b.logs[E2E])}
	for m := range e.Metrics {
		e.Metrics[m].Ratio = math.NaN()
	}
	return e
}

// tell passes the block that has ended on.
func (c *Comparison) tell(e Block) {
	if c.Ended == nil {
		return
	}
	for m := range c.tests {
		e.Metrics[m].After = c.state(&c.tests[m])
	}
	c.Ended(e)
}
