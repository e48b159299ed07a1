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
	"math"
	"time"

	"replayd/internal/fault"
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
	Mode      Mode          `json:"mode" koanf:"mode"`
	Tolerance float64       `json:"tolerance" koanf:"tolerance"`  // δ: a latency may be longer by this share, 0 to 10
	Alpha     float64       `json:"alpha" koanf:"alpha"`          // greatest chance of a false fail or pass, above 0 to 0.5
	MinPairs  int           `json:"min_pairs" koanf:"min_pairs"`  // least calm pairs of a block, 1 to 4096
	MinTime   time.Duration `json:"min_time_ns" koanf:"min_time"` // least length of a block

	// Two equal servers' ratio of a latency stays within e^±Wander, 0 to 1, whatever has been seen before. It is a natural logarithm: 0.05 is 5 %.
	Wander float64       `json:"wander,omitempty" koanf:"wander"`
	WarmUp time.Duration `json:"warm_up_ns,omitempty" koanf:"warm_up"` // pairs are void for so long after the epoch begins, and after an engine's restart
	// Require is the subject that a verdict must have. With ScopePods only the looks at pods give one.
	Require Scope `json:"require" koanf:"require"`

	// Least excess of a share that is a fail or a change, of requests, 0 to 1.
	ToleranceTail   float64 `json:"tolerance_tail" koanf:"-"`
	ToleranceQueued float64 `json:"tolerance_queued" koanf:"-"`
	ToleranceBad    float64 `json:"tolerance_bad" koanf:"-"`
}

// Defaults returns the default options.
func Defaults() Options {
	return Options{
		Mode: ModeVerdict, Tolerance: 0.05, Alpha: 0.01, MinPairs: 20, MinTime: time.Minute,
		ToleranceTail: 0.01, ToleranceQueued: 0.05, ToleranceBad: 0.005, Require: ScopePair,
	}
}

// Check returns a fault for each invalid option.
func (o Options) Check() (f fault.List) {
	f.OneOf("mode", string(o.Mode), string(ModeVerdict), string(ModeWatch))
	f.Between("tolerance", o.Tolerance, 0, 10)
	f.Between("alpha", o.Alpha, 1e-9, 0.5)
	f.Integer("min_pairs", o.MinPairs, 1, maxCalm)
	f.If(o.MinTime < 0 || o.MinTime > 24*time.Hour, "min_time", "want 0 to 24h, got %v", o.MinTime)
	f.Between("wander", o.Wander, 0, 1)
	f.If(o.WarmUp < 0 || o.WarmUp > 24*time.Hour, "warm_up", "want 0 to 24h, got %v", o.WarmUp)
	f.OneOf("require", string(o.Require), string(ScopePair), string(ScopePods))
	f.If(o.Mode == ModeWatch && o.Require == ScopePods, "require", "want %s with the mode watch: changes are those of the pods that are compared", ScopePair)
	f.Between("tolerance_tail", o.ToleranceTail, 0, 1)
	f.Between("tolerance_queued", o.ToleranceQueued, 0, 1)
	f.Between("tolerance_bad", o.ToleranceBad, 0, 1)
	return f
}

// ToleranceOf returns the tolerance of a metric: the share by which a latency may be longer, or the excess of a share of requests.
func (o *Options) ToleranceOf(m Metric) float64 {
	return [...]float64{o.Tolerance, o.Tolerance, o.Tolerance, o.ToleranceTail, o.ToleranceQueued, o.ToleranceBad}[m]
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
	Answer          Answer        // of a request with E2E
	Pod             uint16        // of the side that it was sent to, from 1; 0: it was not sent, or no pod was known
}

// A Pair is the two requests of a row.
type Pair struct {
	ID       string    // of the row, for people
	At       time.Time // when both requests could be sent; no pair is before the one that was added before it
	Void     Void      // replayd's own doing: the pair says nothing; NotVoid: it is judged
	Calm     bool      // set by Add: not void, and sent while neither side had an earlier request without a first token
	Requests [2]Request
}

// A Comparison collects evidence. Make it with New. It is not safe for concurrent use.
type Comparison struct {
	Ended func(Block) // called by Add with each block that has ended; nil: not called

	options  Options
	pairs    Pairs
	warm     time.Time     // pairs before it are void; zero: the next pair sets it
	toWarm   time.Duration // from the next pair on
	pods     [2][]pod      // by number
	unknown  [2]pod        // one that no request went to yet
	recent   [2]calmness
	troubles [2]trouble
	last     time.Time // instant of the latest pair
	block    block
	tail     tail
	tests    [metrics]test // in the mode verdict
	looks    *looks        // in the mode verdict
	watch    *Watch        // in the mode watch; else nil
	skipped  map[Skip]int64
	ended    int64         // blocks
	lasted   time.Duration // all of them
	sight    sight
	overall  [E2E + 1]overall
	opened   time.Time     // the block's first instant
	failed   Metric        // the first metric that failed in this epoch; −1: none
	after    time.Duration // length of the blocks until it failed
	counters *Counters
	answers  answers // of ended blocks
}

// New returns a comparison without pairs. The options pass Check.
func New(o Options) *Comparison {
	c := &Comparison{options: o, toWarm: o.WarmUp, skipped: map[Skip]int64{}, failed: -1, counters: NewCounters()}
	for m := range c.tests {
		c.tests[m] = newTest(o, Metric(m))
	}
	if o.Mode == ModeWatch {
		c.watch = NewWatch(o)
	} else {
		c.looks = &looks{}
	}
	return c
}

// Add adds the next pair. Pairs come in order of their instants, each when both its requests have ended.
func (c *Comparison) Add(p *Pair) {
	queued := c.meet(p)
	c.warmUp(p)
	later := p.At.After(c.last)
	c.last = p.At
	if later {
		c.end(p.At, queued)
	}
	if p.Void != VoidWarmUp {
		c.sight.meet(p.At)
	}
	overlaps := c.overlaps(p)
	p.Calm = p.Void == NotVoid && queued == [2]bool{} && !overlaps
	c.observe(p, queued)
	if c.block.pairs() == 0 {
		c.opened = p.At
	}
	c.pairs.add(p)
	c.counters.count(func(t *Totals) {
		t.Pairs.add(p)
		if p.Void == NotVoid {
			t.Answers.add(p)
		}
	})
	if p.valued() {
		c.sight.answered = p.At
	}
	if p.Void == NotVoid {
		c.answered(p)
		c.see(p)
	}
	if c.looks != nil {
		c.looks.add(p, queued, &c.options)
	}
	c.block.add(p, queued, overlaps)
}

func (c *Comparison) warmUp(p *Pair) {
	if c.warm.IsZero() {
		c.warm = p.At.Add(c.toWarm)
	}
	if p.Void == NotVoid && p.At.Before(c.warm) {
		p.Void = VoidWarmUp
	}
}

// RestartLatencies lets the evidence about latencies, tail and queue begin anew: an engine was restarted without a new version. What it said before
// is spent, not forgotten: see Restarts. Failed requests still count.
func (c *Comparison) RestartLatencies() {
	for _, m := range Metrics {
		if m == Bad {
			continue
		}
		if c.watch != nil {
			c.watch.metrics[m] = newWatched(c.options, m)
		} else {
			c.tests[m].restart(c.options)
		}
	}
	c.tail, c.overall, c.sight = tail{}, [E2E + 1]overall{}, sight{}
	c.warm, c.toWarm = time.Time{}, c.options.WarmUp
	c.block.forgetLatencies()
	if c.looks != nil {
		c.looks.change()
	}
}

// Restart begins a new epoch: the evidence is forgotten. Counters go on, and so do queues, which are the servers'.
func (c *Comparison) Restart() {
	before := *c
	*c = *New(c.options)
	c.Ended, c.counters, c.troubles, c.last = before.Ended, before.counters, before.troubles, before.last
	c.pods, c.unknown, c.recent = before.pods, before.unknown, before.recent
	c.freePods(time.Time{})
}

// Count makes the comparison add to these counters from now on. Comparisons that follow each other under one name share them.
func (c *Comparison) Count(on *Counters) { c.counters = on }
