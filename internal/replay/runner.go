// Package replay runs a plan against a target: it sends each row at its due instant, on lanes that bound the requests in
// flight, and reports every request when it has ended.
//
// A row passes through four goroutines. None of them waits for a later one. The feed reads the plan some seconds ahead.
// The builder makes HTTP messages within a bound on bytes. The pacer, shared by all runners, sleeps to absolute instants
// on its own thread. A lane writes the message and reads the answer.
package replay

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/limits"
	"replayd/internal/measure"
)

// A Runner runs one Workload.
type Runner struct {
	w       Workload
	breaker *limits.Breaker
	looks   atomic.Uint64      // readings of the engine's load
	launch  func(*lane)        // starts the goroutine of a lane
	endWork context.CancelFunc // stops the taking of new work

	*shared    // its lock guards the fields below
	stage      // changes only while the runner has no row
	d          *dispatch.Dispatcher
	toBuild    build     // the message to build next; a nil row: none
	builder    sync.Cond // the builder waits here for toBuild
	buffers    buffers
	idle       []*lane   // free lanes; the lane used last is last
	lanes      int       // lanes started so far
	freed      *lane     // the lane whose request has just ended; set during a Step
	alarm      *alarm    // nil until Run
	entered    bool      // a loop was entered
	succeeds   bool      // the runner takes over from another runner
	until      time.Time // planned instant from which on rows belong to the successor; zero: there is none
	over       bool      // nothing is left and nothing will come
	cut        bool      // a stop came before that
	told       told
	logQueue   []func()  // log lines and callbacks for writeLog
	drops      drops     // drops that are not logged yet
	logDropped int       // lines left out beyond mostLogLines
	said       sync.Cond // writeLog waits here

	warmed chan struct{} // closed when all requests of the warm-up have ended
	moved  chan struct{} // capacity 1: tells the feed to check again whether it may read
	salt   time.Time     // start of the first loop in the salt of its texts, if a warm-up used them; zero: the start itself

	running sync.WaitGroup // goroutines of the lanes
}

// New prepares a runner. It starts no goroutine and sends nothing.
func New(w Workload) *Runner {
	r := &Runner{
		w: w, stage: w.plan(), breaker: limits.NewBreaker(w.Guard),
		shared: new(shared), moved: make(chan struct{}, 1), warmed: make(chan struct{}),
		endWork: func() {}, // until Run sets it
	}
	if w.After != nil {
		r.shared, r.succeeds = w.After.shared, true
		r.follow(w.After)
		r.w.After = nil // otherwise each reload would keep one more runner in memory
	}
	r.said.L, r.builder.L = &r.mu, &r.mu
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spending == nil && w.Budget != (limits.Budget{}) {
		r.spending = limits.NewSpending()
	}
	r.d = dispatch.New(r.config())
	w.Count.Paused(w.Paused)
	return r
}

// config returns the options of the plan's dispatcher.
func (r *Runner) config() dispatch.Config {
	w := &r.w
	return dispatch.Config{
		Lanes: w.Lanes, Closed: w.Plan.Closed(), Sessions: w.Plan.SessionsAtOnce(), HoldLanes: w.Hold, DropLate: w.Overload == Drop, MaxWait: w.MaxWait,
		History: w.History, Ahead: w.Ahead, Paused: w.Paused, HoldReader: w.HoldReader, Waiting: w.Waiting,
		Coupled:     w.Sides != nil,
		FollowsWall: !w.Plan.Closed() && (w.Plan.FollowsWall() || !w.Epoch.IsZero()),
		Breaker:     r.breaker, Budget: w.Budget, Spending: r.spending, Slots: &r.slots,
	}
}

// A stage is a part of a run: the warm-up, then the plan.
type stage struct {
	phase     measure.RunPhase
	closed    bool          // a closed loop
	rows      int           // number of rows, without filtered ones; 0: all
	length    time.Duration // nothing comes due later than this after the begin; 0: no limit
	epoch     time.Time     // start of the first loop; zero: the begin of the stage
	count     counters
	observers []Observer
}

// plan returns the stage after the warm-up.
func (w *Workload) plan() stage {
	return stage{
		phase: measure.Profiling, closed: w.Plan.Closed(), rows: w.Rows, length: w.Duration, epoch: w.Epoch,
		count: w.Count, observers: w.Observers,
	}
}
