// Package replay runs a plan against a target: it sends each row at its due instant, on lanes that bound the requests
// in flight, and reports every request when it has ended.
//
// A row passes through four goroutines. None of them waits for a later one. The feed reads the plan some seconds ahead.
// The builder makes HTTP messages within a bound on bytes. The pacer, shared by all runners, sleeps to absolute
// instants on its own thread. A lane writes the message and reads the answer.
package replay

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/openai"
)

// A Runner runs one Workload.
type Runner struct {
	w       Workload
	guard   guard
	log     journal
	shown   atomic.Pointer[view]
	next    atomic.Int64       // planned instant at which the next row is due, in Unix ns; 0: unknown or none
	echo    *openai.Echo       // header of answers that later requests of their session send back; nil: none
	drain   atomic.Int64       // how long requests in flight may continue after a stop, in ns
	cut     atomic.Bool        // a stop came before nothing was left
	endWork context.CancelFunc // stops the taking of new work
	endRead context.CancelFunc // ends the reading of rows
	abort   context.CancelFunc // ends everything

	*shared  // its lock guards the fields below
	stage    // changes only while the runner has no row
	d        *dispatch.Dispatcher
	builder  builder
	lanes    lanes
	use      use
	alarm    *alarm      // nil until Run
	entered  bool        // a loop was entered
	until    Instant     // from which on rows belong to the successor; zero: there is none
	progress             // of a closed plan
	left     *left       // of a closed plan
	first    time.Time   // start of the first loop
	awaited  time.Time   // planned instant of the row that the feed waits for; zero: it waits for none
	patience *time.Timer // of the turns that go on after the handover; nil: it has not come
	over     bool        // nothing is left and nothing will come

	warmed chan struct{} // closed when all requests of the warm-up have ended
	moved  chan struct{} // capacity 1: tells the feed to check again whether it may read
	near   chan struct{} // capacity 1: tells warm that a row was read that is due soon
	salt   time.Time     // start of the first loop in the salt of its texts, if a warm-up used them; zero: the start
}

// A shared is the state that all runners of one workload share over reloads: the lock, the count of lanes in use, the
// spending.
type shared struct {
	mu       runnerLock
	slots    dispatch.Slots
	spending *limits.Spending // nil: no budget, now or before
	runners  []*Runner        // the running ones, in the order in which they took over
}

// New prepares a runner. It starts no goroutine and sends nothing.
func New(w Workload) *Runner {
	r := &Runner{
		w: w, stage: w.plan(), shared: new(shared), moved: make(chan struct{}, 1), near: make(chan struct{}, 1), warmed: make(chan struct{}),
		endWork: func() {}, endRead: func() {}, // until Run sets them
		first: w.Place.first, salt: w.Place.salt,
	}
	if r.closed {
		r.left = &left{known: make(chan struct{})}
	}
	if name := w.Request.EchoHeader; name != "" {
		r.echo = openai.NewEcho(name)
	}
	if w.After != nil {
		r.shared = w.After.shared
		r.w.After = nil // otherwise each reload would keep one more runner in memory
	}
	r.log.name, r.log.log, r.log.hooks, r.log.ready.L = w.Name, w.Log, &r.w.Hooks, &r.mu
	r.builder.wanted.L = &r.mu
	r.guard.breaker, r.guard.load, r.guard.count, r.guard.log = limits.NewBreaker(w.Guard), w.Load, w.Count, &r.log
	r.mu.Lock()
	defer r.mu.Unlock()
	if w.After != nil && w.After.w.Target == w.Target {
		r.guard.follow(&w.After.guard)
	}
	if r.spending == nil && w.Budget != (limits.Budget{}) {
		r.spending = limits.NewSpending()
	}
	r.d = dispatch.New(r.config())
	r.drain.Store(int64(w.Drain))
	r.show()
	w.Count.Paused(w.Paused)
	return r
}

// config returns the options of the plan's dispatcher.
func (r *Runner) config() dispatch.Config {
	w := &r.w
	return dispatch.Config{
		Lanes: w.Lanes, Closed: w.Plan.Closed(), Sessions: w.Plan.SessionsAtOnce(), LoopTime: w.LoopTime,
		HoldLanes: w.Hold, DropLate: w.Overload == Drop, MaxWait: w.MaxWait, History: w.History,
		Ahead: cmp.Or(w.Ahead, aheadBytes), Paused: w.Paused, HoldReader: w.HoldReader, Waiting: w.Waiting,
		Coupled:     w.Sides != nil,
		Clock:       w.Place.Clock,
		FollowsWall: !w.Plan.Closed() && (w.Plan.FollowsWall() || !w.Epoch.IsZero()),
		Floats:      !w.Plan.FollowsWall() && w.Epoch.IsZero() && w.Begin.IsZero() && w.Sides == nil,
		Breaker:     r.guard.breaker, Budget: w.Budget, Spending: r.spending, Slots: &r.slots, Moves: &r.mu.moves,
	}
}

// A stage is a part of a run: the warm-up, then the plan.
type stage struct {
	phase     measure.RunPhase
	closed    bool          // a closed loop
	rows      int           // number of rows, without filtered ones; 0: all
	length    time.Duration // nothing comes due later than this after the begin; 0: no limit
	epoch     time.Time     // start of the first loop; zero: the begin of the stage
	count     *metrics.Workload
	observers []Observer
}

// plan returns the stage after the warm-up.
func (w *Workload) plan() stage {
	return stage{
		phase: measure.Profiling, closed: w.Plan.Closed(), rows: w.Rows, length: w.Duration, epoch: w.Epoch,
		count: w.Count, observers: w.Observers,
	}
}
