// Package canary judges a comparison of two servers that get the same rows at the same instants: is the candidate worse than the baseline by
// more than a tolerance? Its answer has a stated chance of being wrong, which holds however long and often one looks.
//
// The way of a pair: pairs → blocks → bits → evidence → verdict.
//
//   - A pair is one row's two requests. A fault of a side counts against it. A fault of replayd makes the pair void.
//   - A block is consecutive pairs. It ends only at an instant at which neither side has an earlier request without a first token. Requests of a
//     burst share a queue, and a queue that outlives a block would make the next one depend on it. Then its bit would be no fair coin.
//   - A latency's value of a block is the median of ln(candidate ÷ baseline) over its calm pairs: those that were sent while neither side had an
//     earlier request without a first token. So a server that is slower by the tolerance does not look slower still by its queue.
//   - A bit says on which side of the tolerance the value is. Evidence adds up bits.
//
// The decision with the simulations is docs/decisions/0026-blocks-of-pairs.md. The package reads no clock and starts no goroutine. Memory and time
// of a pair are constant.
package canary

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// A Side is one of the two servers.
type Side int

// Sides.
const (
	Baseline Side = iota
	Candidate
)

func (s Side) String() string { return [...]string{"baseline", "candidate"}[s] }

// A Metric is a quantity that is compared.
type Metric int

// Metrics. The first three are latencies, the others are shares of requests.
const (
	TTFT   Metric = iota
	TPOT          // time per output token
	E2E           // to the last token
	Tail          // requests much slower than the block's median pair
	Queued        // requests sent while an earlier one had no first token
	Bad           // requests that failed or missed the SLO
	metrics
)

// Metrics lists all metrics, in order.
var Metrics = [metrics]Metric{TTFT, TPOT, E2E, Tail, Queued, Bad}

func (m Metric) String() string {
	return [...]string{"ttft", "tpot", "e2e", "tail", "queued", "bad"}[m]
}

// IsLatency says whether a metric is a latency. The others are shares.
func (m Metric) IsLatency() bool { return m <= E2E }

// Options of a comparison.
type Options struct {
	Tolerance float64       // δ: a latency may be longer by this share, 0 to 10
	Alpha     float64       // greatest chance of a false fail, and of a false pass, above 0 to 0.5
	MinPairs  int           // least calm pairs of a block, 1 to 4096
	MinTime   time.Duration // least length of a block

	ToleranceTail, ToleranceQueued, ToleranceBad float64 // least excess of a share that is a fail, of requests, 0 to 1
}

// Defaults returns the default options.
func Defaults() Options {
	return Options{
		Tolerance: 0.05, Alpha: 0.01, MinPairs: 20, MinTime: time.Minute,
		ToleranceTail: 0.01, ToleranceQueued: 0.05, ToleranceBad: 0.005,
	}
}

// Check reports all invalid options. Each error begins with the option's key.
func (o Options) Check() error {
	var errs []error
	number := func(key string, got, low, high float64) {
		if !(got >= low && got <= high) { // in this form NaN is refused too
			errs = append(errs, fmt.Errorf("%s: want a number from %v to %v, got %v", key, low, high, got))
		}
	}
	number("tolerance", o.Tolerance, 0, 10)
	number("alpha", o.Alpha, 1e-9, 0.5)
	if o.MinPairs < 1 || o.MinPairs > mostCalm {
		errs = append(errs, fmt.Errorf("min_pairs: want an integer from 1 to %d, got %d", mostCalm, o.MinPairs))
	}
	if o.MinTime < 0 || o.MinTime > 24*time.Hour {
		errs = append(errs, fmt.Errorf("min_time: want 0 to 24h, got %v", o.MinTime))
	}
	number("tolerance_tail", o.ToleranceTail, 0, 1)
	number("tolerance_queued", o.ToleranceQueued, 0, 1)
	number("tolerance_bad", o.ToleranceBad, 0, 1)
	return errors.Join(errs...)
}

// threshold returns the tolerance of a share, or ln(1 + tolerance) of a latency.
func (o *Options) threshold(m Metric) float64 {
	switch m {
	case Tail:
		return o.ToleranceTail
	case Queued:
		return o.ToleranceQueued
	case Bad:
		return o.ToleranceBad
	}
	return math.Log1p(o.Tolerance)
}

// FailLog10 is the decimal logarithm of the evidence that a fail needs: each metric has a test, and all together may be wrong with a chance
// of Alpha.
func (o *Options) FailLog10() float64 { return math.Log10(float64(metrics) / o.Alpha) }

// PassLog10 is the decimal logarithm of the evidence that each latency needs for a pass. All must have it, so none is corrected for.
func (o *Options) PassLog10() float64 { return -math.Log10(o.Alpha) }

// A Request is one side of a pair.
type Request struct {
	Sent  time.Time // start of the write; zero: it was not sent
	First time.Time // first token; zero: there was none
	End   time.Time

	TTFT, TPOT, E2E time.Duration // 0: the request has none
	Bad             bool          // it failed, missed the SLO, or could not be sent because of its server
}

// A Pair is the two requests of a row.
type Pair struct {
	At       time.Time // the planned instant
	Void     bool      // replayd's own doing: the pair says nothing
	Requests [2]Request
}

// A Comparison collects evidence. Make it with New. It is not safe for concurrent use.
type Comparison struct {
	options Options
	pairs   Pairs
	queues  [2]queue
	last    time.Time // instant of the latest pair
	block   block
	tail    tail
	tests   [metrics]test
	skipped map[Skip]int64
	began   time.Time // instant of the first pair
	ended   int64     // blocks
	opened  time.Time // the block's first instant
	failed  Metric    // the first metric that failed in this epoch; −1: none
}

// Pairs counts pairs since the epoch.
type Pairs struct{ Judged, Void int64 }

// New returns a comparison without pairs. The options pass Check.
func New(o Options) *Comparison {
	c := &Comparison{options: o, skipped: map[Skip]int64{}, failed: -1}
	for m := range c.tests {
		c.tests[m] = newTest(o, Metric(m))
	}
	return c
}

// Add adds the next pair. Pairs come in order of their instants, each when both its requests have ended.
func (c *Comparison) Add(p *Pair) {
	queued := c.meet(p)
	later := p.At.After(c.last)
	c.last = p.At
	if later && queued == [2]bool{} {
		c.close(p.At)
	}
	if c.began.IsZero() {
		c.began = p.At
	}
	if c.block.pairs == 0 {
		c.opened = p.At
	}
	if p.Void {
		c.pairs.Void++
	} else {
		c.pairs.Judged++
	}
	c.block.add(p, queued)
}

// close ends the block if it is long enough.
func (c *Comparison) close(at time.Time) {
	b := &c.block
	if b.judged() < c.options.MinPairs || at.Sub(c.opened) < c.options.MinTime || b.awaits(c.options.MinPairs) {
		return
	}
	c.judge(b)
	b.reset()
	c.ended++
	for m := range c.tests {
		if c.failed < 0 && c.tests[m].hasFailed(c.options.FailLog10()) {
			c.failed = Metric(m)
		}
	}
}

// RestartLatencies forgets the evidence about latencies, tail and queue: an engine was restarted without a new version. Failed requests
// still count.
func (c *Comparison) RestartLatencies() {
	for _, m := range Metrics {
		if m != Bad {
			c.tests[m] = newTest(c.options, m)
		}
	}
	c.tail = tail{}
	c.block.forgetLatencies()
}

// Restart begins a new epoch: everything is forgotten.
func (c *Comparison) Restart() { *c = *New(c.options) }
