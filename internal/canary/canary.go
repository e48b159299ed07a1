// Package canary judges a comparison of two servers that get the same rows at the same instants: is the candidate worse than the baseline by
// more than a tolerance? Its answer has a stated chance of being wrong, which holds however long and often one looks.
//
// The way of a pair: pairs → blocks → bits → evidence → verdict.
//
//   - A pair is one row's two requests. A fault of a side counts against it. A fault of replayd makes the pair void.
//   - A block is consecutive pairs. It ends only at an instant at which neither side has an earlier request without a first token. Requests of a
//     burst share a queue, and a queue that outlives a block would make the next one depend on it. Then its bit would be no fair coin.
//     A block also ends while a side is down, and while one side alone has long had a queue at every instant: see trouble.
//   - A latency's value of a block is the median of ln(candidate ÷ baseline) over its calm pairs: those that were sent while neither side had an
//     earlier request without a first token. So a server that is slower by the tolerance does not look slower still by its queue. They were also sent
//     after the last answer of the block before: answers that share an engine's steps are long on one side together.
//   - A bit says on which side of the tolerance the value is. Evidence adds up bits.
//
// A comparison that never ends (a watch) has no verdict. It finds changes: detectors take the place of evidence.
//
// The decision with the simulations is docs/decisions/0026-blocks-of-pairs.md. The package reads no clock and starts no goroutine. Memory and time
// of a pair are constant.
package canary

import (
	"errors"
	"fmt"
	"math"
	"time"

	"replayd/internal/spelling"
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

// A Mode is the question that a comparison answers.
type Mode string

// Modes.
const (
	ModeVerdict Mode = "verdict" // is the candidate worse? It ends with a verdict.
	ModeWatch   Mode = "watch"   // when does the candidate change? It never ends.
)

// Options of a comparison.
type Options struct {
	Mode      Mode          `json:"mode"`
	Tolerance float64       `json:"tolerance"`   // δ: a latency may be longer by this share, 0 to 10
	Alpha     float64       `json:"alpha"`       // greatest chance of a false fail, and of a false pass, above 0 to 0.5
	MinPairs  int           `json:"min_pairs"`   // least calm pairs of a block, 1 to 4096
	MinTime   time.Duration `json:"min_time_ns"` // least length of a block

	// Least excess of a share that is a fail or a change, of requests, 0 to 1.
	ToleranceTail   float64 `json:"tolerance_tail"`
	ToleranceQueued float64 `json:"tolerance_queued"`
	ToleranceBad    float64 `json:"tolerance_bad"`
}

// Defaults returns the default options.
func Defaults() Options {
	return Options{
		Mode: ModeVerdict, Tolerance: 0.05, Alpha: 0.01, MinPairs: 20, MinTime: time.Minute,
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
	if o.Mode != ModeVerdict && o.Mode != ModeWatch {
		errs = append(errs, fmt.Errorf("mode: %s", spelling.Want([]string{string(ModeVerdict), string(ModeWatch)}, string(o.Mode))))
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

// ToleranceOf returns the tolerance of a metric: the share by which a latency may be longer, or the excess of a share of requests.
func (o *Options) ToleranceOf(m Metric) float64 {
	switch m {
	case Tail:
		return o.ToleranceTail
	case Queued:
		return o.ToleranceQueued
	case Bad:
		return o.ToleranceBad
	}
	return o.Tolerance
}

// threshold returns the tolerance of a share, or ln(1 + tolerance) of a latency.
func (o *Options) threshold(m Metric) float64 {
	if m.IsLatency() {
		return math.Log1p(o.Tolerance)
	}
	return o.ToleranceOf(m)
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
	Why             string        // why it is bad, for people
}

// A Pair is the two requests of a row.
type Pair struct {
	ID       string    // of the row, for people
	At       time.Time // the planned instant
	Void     bool      // replayd's own doing: the pair says nothing
	Calm     bool      // set by Add: not void, and sent while neither side had an earlier request without a first token
	Requests [2]Request
}

// A Comparison collects evidence. Make it with New. It is not safe for concurrent use.
type Comparison struct {
	Ended func(Block) // called by Add with each block that has ended; nil: not called

	options  Options
	pairs    Pairs
	queues   [2]queue
	troubles [2]trouble
	last     time.Time // instant of the latest pair
	block    block
	tail     tail
	tests    [metrics]test // in the mode verdict
	watch    *Watch        // in the mode watch; else nil
	skipped  map[Skip]int64
	ended    int64         // blocks
	lasted   time.Duration // all of them
	opened   time.Time     // the block's first instant
	free     time.Time     // when the block before had its last answer
	failed   Metric        // the first metric that failed in this epoch; −1: none
	totals   Totals
}

// Pairs counts pairs.
type Pairs struct {
	Judged int64 `json:"judged"`
	Void   int64 `json:"void"`
}

func (p *Pairs) add(void bool) {
	if void {
		p.Void++
	} else {
		p.Judged++
	}
}

// New returns a comparison without pairs. The options pass Check.
func New(o Options) *Comparison {
	c := &Comparison{options: o, skipped: map[Skip]int64{}, failed: -1, totals: newTotals()}
	for m := range c.tests {
		c.tests[m] = newTest(o, Metric(m))
	}
	if o.Mode == ModeWatch {
		c.watch = NewWatch(o)
	}
	return c
}

// Add adds the next pair. Pairs come in order of their instants, each when both its requests have ended.
func (c *Comparison) Add(p *Pair) {
	queued := c.meet(p)
	later := p.At.After(c.last)
	c.last = p.At
	if later {
		c.end(p.At, queued)
	}
	p.Calm = !p.Void && queued == [2]bool{} && !p.At.Before(c.free)
	c.observe(p, queued)
	if c.block.pairs == 0 {
		c.opened = p.At
	}
	c.pairs.add(p.Void)
	c.totals.Pairs.add(p.Void)
	c.block.add(p, queued, c.free)
}

// mostOverlap bounds the time, in blocks, in which pairs are not calm because answers of the block before go on.
const mostOverlap = 5

// end ends the block if it is long enough and may end at an instant.
func (c *Comparison) end(at time.Time, queued [2]bool) {
	b := &c.block
	down := c.isDown(Baseline, at) || c.isDown(Candidate, at)
	trouble := down || c.isBehind(Baseline, at) || c.isBehind(Candidate, at)
	switch {
	case b.judged() < c.options.MinPairs || at.Sub(c.opened) < c.options.MinTime:
		return
	case trouble: // calm pairs are not waited for
	case queued != [2]bool{} || b.awaits(c.options.MinPairs):
		return
	}
	if down {
		b.queued = [2]int{}
	}
	shown := c.newEnded(at)
	c.judge(b, &shown)
	c.free = earlier(b.ends, at.Add(mostOverlap*max(c.options.MinTime, time.Second)))
	b.reset()
	c.ended++
	c.lasted += at.Sub(c.opened)
	for m := range c.tests {
		if c.failed < 0 && c.tests[m].hasFailed(c.options.FailLog10()) {
			c.failed = Metric(m)
		}
	}
	c.tell(shown)
}

// RestartLatencies forgets the evidence about latencies, tail and queue: an engine was restarted without a new version. Failed requests
// still count.
func (c *Comparison) RestartLatencies() {
	for _, m := range Metrics {
		if m == Bad {
			continue
		}
		c.tests[m] = newTest(c.options, m)
		if c.watch != nil {
			c.watch.metrics[m] = newWatched(c.options, m)
		}
	}
	c.tail = tail{}
	c.block.forgetLatencies()
}

// Restart begins a new epoch: the evidence is forgotten. Totals go on, and so do queues, which are the servers'.
func (c *Comparison) Restart() {
	ended, totals, queues, troubles, last := c.Ended, c.totals, c.queues, c.troubles, c.last
	*c = *New(c.options)
	c.Ended, c.totals, c.queues, c.troubles, c.last = ended, totals, queues, troubles, last
}

// Continue makes the totals go on from those of a comparison before this one.
func (c *Comparison) Continue(before Totals) { c.totals = before.clone() }
