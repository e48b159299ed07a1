package daemon

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"replayd/internal/canary"
	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/replay"
	"replayd/internal/schedule"
)

// A comparison collects the rows and requests of both sides, over reloads that change neither side. The runners only append to events. The goroutine of
// run judges, so that no request waits for that.
type comparison struct {
	config    config.Comparison
	sides     *replay.Sides
	equal     bool // both sides get equal texts
	workloads [2]config.Workload
	servers   [2]*server
	identity  string // of the evidence in the state file
	judged    func(name string, j canary.Judgement)
	block     func(name string, b canary.Block)
	pair      func(name string, p *canary.Pair)
	said      func(level slog.Level, text string) // tells a new verdict, a change, or why the evidence begins anew
	watched   [2]func() process
	before    *comparison // that had the name; nil: none, or its counters are taken over

	mu     sync.Mutex
	events []rowEvent
	over   bool // nothing takes events any more

	judging sync.Mutex // guards what follows
	pairing *canary.Pairing
	verdict *canary.Comparison
	epoch   time.Time
	last    canary.Judgement
	seen    [2]process
	end     context.CancelFunc // nil: run has not begun
}

// A process is the identity of the engine behind a side.
type process struct {
	model    string // "" before it is known
	restarts int64  // of all replicas, as their pages tell
	counted  bool   // restarts is known
}

// mirrored returns the name of the workload that sends the candidate's requests. No configured name has an @.
func mirrored(c config.Comparison) string { return c.Workload + "@" + c.Candidate }

// A rowEvent says that a row came due on a side, or how the side's request of the row ended. It is made between a due instant and the write of the
// request, so it only points to the row.
type rowEvent struct {
	side    canary.Side
	due     *schedule.Due // nil: the request id has ended
	id      string        // of the row; "": due has it
	half    canary.Half
	settled bool
}

// beginsWithin is how long a row waits for a side that has not said that it came due there.
const beginsWithin = time.Minute

func newComparison(c config.Comparison, sides [2]config.Workload, servers [2]*server) *comparison {
	now := time.Now()
	one := &comparison{
		config: c, sides: replay.NewSides(), workloads: sides, servers: servers, epoch: now,
		// One server on both sides would find the texts of the one in its cache for the other.
		equal: servers[canary.Baseline].config.URL != servers[canary.Candidate].config.URL,
	}
	one.judge(canary.New(c.Options()))
	return one
}

// continues makes the counters go on from those of the comparison that had the name before. Pairs that end there later are not counted.
func (c *comparison) continues() {
	if c.before == nil {
		return
	}
	c.before.judging.Lock()
	totals := c.before.last.Totals
	c.before.judging.Unlock()
	c.before = nil
	c.verdict.Continue(totals)
	c.last = c.verdict.Judge()
}

// judge makes the comparison add its pairs to a verdict.
func (c *comparison) judge(v *canary.Comparison) {
	c.verdict = v
	v.Ended = func(b canary.Block) {
		if c.block != nil {
			c.block(c.config.Name, b)
		}
	}
	c.pairing = canary.NewPairing(func(p *canary.Pair) {
		v.Add(p)
		if c.pair != nil {
			c.pair(c.config.Name, p)
		}
	})
	c.last = v.Judge()
}

// join makes a runner one of the comparison's sides.
func (c *comparison) join(w *replay.Workload, slo measure.SLO, of canary.Side) {
	w.Sides, w.Candidate = c.sides, of == canary.Candidate
	if c.equal {
		w.SaltName = c.config.Workload
	}
	w.Observers = append(w.Observers, sideObserver{c, of, slo})
	w.Due = func(d *schedule.Due) { c.report(rowEvent{side: of, due: d}) }
	w.Unsent = func(d *schedule.Due, why measure.DropReason) {
		c.report(rowEvent{side: of, due: d, half: canary.Half{Cause: causeOfDrop(why), Request: canary.Request{Why: string(why)}}, settled: true})
	}
}

func (c *comparison) report(e rowEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.events = append(c.events, e)
	}
}

// run judges every second until ctx is done, and then a last time.
func (c *comparison) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case now := <-tick.C:
			c.step(func() { c.pairing.Close(now.Add(-beginsWithin)) })
		case <-ctx.Done():
			c.step(c.pairing.CloseAll)
			c.close()
			return
		}
	}
}

// close drops later events.
func (c *comparison) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over, c.events = true, nil
}

// step adds the pairs that have ended, and judges.
func (c *comparison) step(closing func()) {
	c.judging.Lock()
	c.look()
	c.take()
	closing()
	before := c.last
	c.last = c.verdict.Judge()
	j := c.last
	c.judging.Unlock()
	if c.judged != nil {
		c.judged(c.config.Name, j)
	}
	c.tell(&before, &j)
}

// tell tells a new verdict, or what has changed in a comparison that never ends.
func (c *comparison) tell(before, now *canary.Judgement) {
	worse := now.Verdict == canary.Fail
	news := now.Verdict != before.Verdict
	for i, s := range now.Watch {
		news = news || i < len(before.Watch) && before.Watch[i].Direction != s.Direction
		worse = worse || s.Direction == canary.Slower || s.Direction == canary.More
	}
	if !news || c.judged != nil { // who is told of each judgement says it in its own way
		return
	}
	level := slog.LevelInfo
	if worse {
		level = slog.LevelWarn
	}
	c.said(level, now.Text(c.config.Options()))
}

// take passes the events on to the pairing.
func (c *comparison) take() {
	c.mu.Lock()
	events := c.events
	c.events = nil
	c.mu.Unlock()
	for _, e := range events {
		if e.id == "" {
			e.id = e.due.ID()
		}
		if e.settled {
			c.pairing.Settle(e.side, e.id, e.half)
		} else {
			c.pairing.Due(e.side, e.id, e.due.At.Round(0), gapOf(e.due)) // by the wall clock both sides have the same instant
		}
	}
}

// look begins the evidence anew where an engine is another one than before: all of it when it serves another model, that of latencies when it was
// restarted.
func (c *comparison) look() {
	for side, now := range c.watched {
		if now == nil {
			continue
		}
		p, before := now(), c.seen[side]
		if p.model == "" {
			p.model = before.model
		}
		c.seen[side] = p
		of := canary.Side(side).String()
		switch {
		case before.model != "" && p.model != before.model:
			c.anew()
			c.said(slog.LevelWarn, "the "+of+" serves another model: all evidence begins anew")
		case before.counted && p.restarts > before.restarts:
			c.verdict.RestartLatencies()
			c.said(slog.LevelWarn, "the engine of the "+of+" has restarted: the evidence about latencies begins anew")
		}
	}
}

// restart begins a new epoch. Kept connections are not used again: a Service may have other pods by now, and a connection stays with its pod.
func (c *comparison) restart() {
	for _, s := range c.servers {
		s.client.Renew()
	}
	c.judging.Lock()
	defer c.judging.Unlock()
	c.anew()
	c.last = c.verdict.Judge()
}

// anew forgets the evidence and the pairs that are not complete. The lock judging is held.
func (c *comparison) anew() {
	c.take()
	c.pairing.Forget()
	c.verdict.Restart()
	c.epoch = time.Now()
}

// now returns the state for pages.
func (c *comparison) now() metrics.Compared {
	c.judging.Lock()
	defer c.judging.Unlock()
	return metrics.Compared{
		Name: c.config.Name, Workload: c.config.Workload, Baseline: c.workloads[canary.Baseline].Target, Candidate: c.config.Candidate,
		Options: c.config.Options(), Epoch: c.epoch, Judgement: c.last,
	}
}
