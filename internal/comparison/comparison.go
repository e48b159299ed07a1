// Package comparison pairs the requests that two servers got for the same rows. canary judges the pairs. This package
// keeps the evidence in the state file, and gives the state of comparisons as series and as JSON.
//
// The way of a pair: a runner → Side → Comparison → canary.Pairing → canary.Comparison → Status.
package comparison

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"replayd/internal/canary"
	"replayd/internal/measure"
)

// Options of a Comparison.
type Options struct {
	canary.Options

	Name, Workload, Baseline, Candidate string

	Given    []any            // besides the rows, the evidence depends on it; nil: not known, and no evidence is kept
	Engines  [2]func() Engine // behind both sides; nil: not known
	Counters *canary.Counters // of the name: a comparison after this one adds to them, too; nil: new ones
	Listeners

	// News is called with a new verdict, with a change, and with the reason for which the evidence begins anew.
	News func(level slog.Level, text string)
}

// Listeners receive the judgments, blocks and pairs of comparisons; nil: not called.
type Listeners struct {
	Judged func(j canary.Judgment) // every second and after the last request
	Block  func(b canary.Block)    // before Judged, with each block that has ended since
	Pair   func(p *canary.Pair)    // before Judged, with each pair that has ended since
}

// An Engine is the identity of the engine behind a side.
type Engine struct {
	Model    string   // "" before it is known
	Restarts int64    // of all replicas, as their pages tell
	Counted  bool     // Restarts is known
	Pods     []string // that requests go to, in the order of their numbers; none before they are known

	Generated float64 // output tokens, for whoever asked for them
	Generates bool    // Generated is known
}

// A Comparison collects the rows and requests of both sides, over reloads that change neither side. The runners only
// add to a queue. The goroutine of Run judges, so that no request waits for that.
type Comparison struct {
	options  Options
	queue    queue
	replaced atomic.Bool                     // another comparison has the name: nothing of this one is reported
	shown    atomic.Pointer[Status]          // so that pages do not wait for judging
	kept     atomic.Pointer[savedComparison] // as it was last written
	judging  *turnLock
	judged
}

// judged is the evidence with its epoch, trace and engines. The comparison's judging guards it.
type judged struct {
	pairing  *canary.Pairing
	verdict  *canary.Comparison
	identity string // of the evidence in the state file
	epoch    time.Time
	epochs   int64       // with judged pairs, and the present one
	version  string      // of the candidate, as the latest restart named it; "": it named none
	began    canary.Void // why the evidence began anew
	since    time.Time   // when it did, by the monotonic clock; zero: it did not
	trace    int         // the version that the evidence is about
	missing  []rowEvent  // requests that got "not found", until it is known whether the server has another model
	seen     [2]Engine
	loads    [2]load
}

// foundWithin is how long a request that was answered with "not found" waits for the news that the server has another
// model. A target that answers so is asked for its models within 5 s.
const foundWithin = 10 * time.Second

// beginsWithin is how long a row waits for a side that has not said that it came due there.
const beginsWithin = time.Minute

// New returns a comparison without evidence. Run judges it.
func New(o Options) *Comparison {
	if o.Counters == nil {
		o.Counters = canary.NewCounters()
	}
	c := &Comparison{options: o, judging: newTurnLock(), judged: judged{epoch: time.Now(), epochs: 1}}
	c.use(canary.New(o.Options))
	return c
}

// use makes the comparison add its pairs to a verdict.
func (c *Comparison) use(v *canary.Comparison) {
	c.verdict = v
	v.Count(c.options.Counters)
	v.Ended = c.options.Block
	c.pairing = canary.NewPairing(c.options.Counters, func(p *canary.Pair) {
		v.Add(p)
		if c.options.Pair != nil {
			c.options.Pair(p)
		}
	})
	c.show()
}

// Side returns the Side that a runner reports to. rows is the digest of its rows.
func (c *Comparison) Side(of canary.Side, rows string, slo measure.SLO) Side {
	return Side{&c.queue, of, c.queue.version(rows), slo}
}

// Run judges every second until ctx is done, and then a last time.
func (c *Comparison) Run(ctx context.Context) {
	tick := time.Tick(time.Second)
	for {
		select {
		case now := <-tick:
			c.step(now, func() { c.pairing.Close(now.Add(-beginsWithin)) })
		case <-ctx.Done():
			c.queue.close()
			c.step(time.Now(), func() {
				c.settleMissing(nil, canary.NotVoid)
				c.pairing.CloseAll(canary.VoidShutdown)
			})
			return
		}
	}
}

func (c *Comparison) step(now time.Time, closing func()) {
	c.judging.Lock()
	c.checkEngines(now)
	c.pairEvents(now, canary.NotVoid)
	closing()
	before := c.Status().Judgment
	c.show()
	j := c.Status().Judgment
	c.judging.Unlock()
	if c.options.Judged != nil {
		c.options.Judged(j)
	}
	c.reportChange(&before, &j)
}

// reportChange reports a new verdict, or a change in a comparison that never ends.
func (c *Comparison) reportChange(before, now *canary.Judgment) {
	worse := now.Verdict == canary.Fail
	changed := now.Verdict != before.Verdict
	for i, s := range now.Watch {
		changed = changed || i < len(before.Watch) && before.Watch[i].Direction != s.Direction
		worse = worse || s.Direction == canary.Slower || s.Direction == canary.More
	}
	if !changed || c.options.Judged != nil || c.replaced.Load() { // who gets each judgment logs it in its own way
		return
	}
	level := slog.LevelInfo
	if worse {
		level = slog.LevelWarn
	}
	text := now.Text(c.options.Options)
	if answers := now.Answers.Text(); answers != "" {
		text += "; " + answers
	}
	c.options.News(level, text)
}

// pairEvents passes the events on to the pairing. Requests that have ended are void for a reason, if one is given.
func (c *Comparison) pairEvents(now time.Time, why canary.Void) {
	events := c.queue.take()
	c.settleMissing(func(e *rowEvent) bool { return now.Sub(e.at) >= foundWithin }, canary.NotVoid)
	for _, e := range events {
		if e.id == "" {
			e.id = e.due.ID()
		}
		if e.settled && e.half.Void == canary.NotVoid {
			e.half.Void = why
		}
		if e.trace > c.trace {
			c.play(e.trace)
		}
		if e.settled {
			c.loads[e.side].own += e.tokens
		}
		switch k := (canary.Key{Trace: e.trace, ID: e.id}); {
		case !e.settled:
			c.pairing.Due(e.side, canary.Due{Key: k, At: e.due.At, Planned: e.planned, Gap: gapOf(e.due)}, now)
		case e.missing:
			e.at, e.due = now, nil
			c.missing = append(c.missing, e)
		default:
			if e.half.Fault && !e.lost.IsZero() && e.lost.Before(c.since) {
				e.half.Fault, e.half.Void = false, c.began // what came due before the evidence began does not count
			}
			c.pairing.Settle(e.side, k, e.half)
		}
	}
}

// settleMissing settles requests that got "not found"; nil: all. They are void for a reason, if one is given.
func (c *Comparison) settleMissing(which func(*rowEvent) bool, why canary.Void) {
	c.missing = slices.DeleteFunc(c.missing, func(e rowEvent) bool {
		if which != nil && !which(&e) {
			return false
		}
		if why != canary.NotVoid {
			e.half.Void = why
		}
		c.pairing.Settle(e.side, canary.Key{Trace: e.trace, ID: e.id}, e.half)
		return true
	})
}

// play begins a new epoch with another version of the rows.
func (c *Comparison) play(trace int) {
	c.trace = trace
	c.pairing.Trace(trace)
	c.begin(canary.VoidTraceChanged)
	c.identity = c.identityOf(c.queue.rows(trace))
	c.options.News(slog.LevelWarn, "the trace has changed: all evidence begins anew")
}

// checkEngines begins the evidence anew where an engine is another one than before: all of it when it serves another
// model, that of latencies when it was restarted.
func (c *Comparison) checkEngines(at time.Time) {
	for side, ask := range c.options.Engines {
		if ask == nil || c.replaced.Load() {
			continue
		}
		of, now, before := canary.Side(side), ask(), c.seen[side]
		now.Model = cmp.Or(now.Model, before.Model)
		if len(now.Pods) == 0 {
			now.Pods = before.Pods
		}
		c.seen[side] = now
		c.loads[side].see(now)
		if len(before.Pods) > 0 && !slices.Equal(now.Pods, before.Pods) {
			c.changePods(of, at)
		}
		switch {
		case before.Model != "" && now.Model != before.Model:
			c.pairEvents(at, canary.NotVoid)
			c.settleMissing(func(e *rowEvent) bool { return e.side == of }, canary.VoidModelChanged)
			c.begin(canary.VoidModelChanged)
			c.options.News(slog.LevelWarn, "the "+of.String()+" serves another model: all evidence begins anew")
		case before.Counted && now.Restarts > before.Restarts:
			c.verdict.RestartLatencies()
			c.options.News(slog.LevelWarn,
				"the engine of the "+of.String()+" has restarted: the evidence about latencies begins anew")
		}
	}
}

// changePods gives the pairs up that have not ended when a side has other pods than before: the numbers of pods have
// another meaning now. The requests that have ended since the latest step are void too. As after a restart of an engine,
// the evidence about latencies begins anew.
func (c *Comparison) changePods(of canary.Side, at time.Time) {
	c.pairEvents(at, canary.VoidPodsChanged)
	c.settleMissing(nil, canary.VoidPodsChanged)
	c.pairing.CloseAll(canary.VoidPodsChanged)
	c.verdict.ChangePods(of)
	c.options.News(slog.LevelWarn, fmt.Sprintf(
		"the pods of the %s have changed, there are %d now: the evidence about latencies begins anew", of, len(c.seen[of].Pods)))
}

// Judges reports whether the present epoch is about a version of the candidate. No epoch is about "".
func (c *Comparison) Judges(version string) bool {
	c.judging.Lock()
	defer c.judging.Unlock()
	return version != "" && version == c.version
}

// Restart begins a new epoch, about a version of the candidate; "" if it is not known.
func (c *Comparison) Restart(version string) {
	c.judging.Lock()
	defer c.judging.Unlock()
	c.pairEvents(time.Now(), canary.NotVoid)
	c.version = version
	c.begin(canary.VoidRestarted)
	c.show()
}

// begin begins a new epoch: evidence and pairs that have not ended are given up. One without a judged pair has spent
// nothing of the error, and is not counted. The lock judging is held.
func (c *Comparison) begin(why canary.Void) {
	c.settleMissing(nil, canary.NotVoid)
	c.pairing.CloseAll(why)
	if c.verdict.Judge().Pairs.Judged > 0 {
		c.epochs++
	}
	c.verdict.Restart()
	for side := range c.loads {
		c.loads[side] = load{}
		c.loads[side].see(c.seen[side])
	}
	c.since, c.began = time.Now(), why
	c.epoch = c.since
}

// Replaced ends the reports of a comparison: another one has its name.
func (c *Comparison) Replaced() { c.replaced.Store(true) }

// Turn identifies what judging is locked for; 0: it is not locked.
func (c *Comparison) Turn() uint64 { return c.judging.turn() }

// Status returns the state as of the latest judgment.
func (c *Comparison) Status() Status { return *c.shown.Load() }

// show judges and publishes the state for pages. The lock judging is held, or the comparison does not run yet.
func (c *Comparison) show() {
	last := c.verdict.Judge()
	last.Account = c.options.Counters.Totals().Account
	for side := range c.loads {
		last.Others[side], last.Unread[side] = c.loads[side].others(), !c.loads[side].known
	}
	o := &c.options
	c.shown.Store(&Status{
		Name: o.Name, Workload: o.Workload, Baseline: o.Baseline, Candidate: o.Candidate,
		Options: o.Options, Epoch: c.epoch, Epochs: c.epochs, Version: c.version, Judgment: last, Counters: o.Counters,
		Pods: [2]int{len(c.seen[0].Pods), len(c.seen[1].Pods)},
	})
}

// identityOf digests everything that the evidence depends on; "": it cannot be told. Evidence of a verdict depends on the
// rules too.
func (c *Comparison) identityOf(rows string) string {
	if c.options.Given == nil || rows == "" {
		return ""
	}
	all := slices.Concat([]any{rows}, c.options.Given)
	if c.options.Mode == canary.ModeVerdict {
		all = append(all, canary.Rules)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return ""
	}
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:])
}
