// Package replay runs a plan against a target: it lets each row go at its due instant, through lanes that bound
// what is in flight, and reports every request when it has ended.
//
// A row passes four goroutines, none of which waits for a later one: the feed reads the plan some seconds ahead,
// the builder makes HTTP messages within a budget of bytes, the pacer of all runners sleeps to absolute instants on
// a thread of its own, and a lane writes the message and reads the answer.
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
	launch  func(*lane)        // starts a lane
	endWork context.CancelFunc // stops the taking of new work

	*shared    // its lock guards the fields below
	stage      // changes only while no row is on its way
	d          *dispatch.Dispatcher
	toBuild    build     // the message to build next; its row is nil: none
	builder    sync.Cond // the builder waits here for it
	buffers    buffers
	idle       []*lane   // free lanes; the last one used is the last in the slice
	lanes      int       // started so far
	freed      *lane     // the lane whose request has just ended, during that Step
	alarm      *alarm    // nil until Run
	entered    bool      // a loop was entered
	succeeds   bool      // it takes over from another runner
	until      time.Time // planned instant from which on rows are another runner's; zero: none are
	over       bool      // nothing is left and nothing will come
	cut        bool      // a stop came before that
	told       told
	logQueue   []func()  // log lines and callbacks, told by writeLog
	drops      drops     // not told yet
	logDropped int       // lines left out, at mostLogLines
	said       sync.Cond // writeLog waits here

	warmed chan struct{} // closed when nothing of the warm-up is left
	moved  chan struct{} // holds one: the feed is to look again whether there is room
	salt   time.Time     // start of the first loop as its texts have it, where a warm-up has had them; zero: as it is

	running sync.WaitGroup // lanes
}

// New prepares a runner; nothing is started and nothing is sent.
func New(w Workload) *Runner {
	r := &Runner{
		w: w, stage: w.plan(), breaker: limits.NewBreaker(w.Guard),
		shared: new(shared), moved: make(chan struct{}, 1), warmed: make(chan struct{}),
		endWork: func() {}, // before Run there is none
	}
	if w.After != nil {
		r.shared, r.succeeds = w.After.shared, true
		r.follow(w.After)
		r.w.After = nil // or runners would keep each other in memory, reload after reload
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

// config has the options of the plan's dispatcher.
func (r *Runner) config() dispatch.Config {
	w := &r.w
	return dispatch.Config{
		Lanes: w.Lanes, Closed: w.Plan.Closed(), HoldLanes: w.Hold, DropLate: w.Overload == Drop, MaxWait: w.MaxWait,
		History: w.History, Ahead: w.Ahead, Paused: w.Paused, HoldReader: w.HoldReader, Waiting: w.Waiting,
		FollowsWall: !w.Plan.Closed() && (w.Plan.FollowsWall() || !w.Epoch.IsZero()),
		Breaker:     r.breaker, Budget: w.Budget, Spending: r.spending, Slots: &r.slots,
	}
}

// A stage is a part of a run: the warm-up, then the plan.
type stage struct {
	phase     measure.RunPhase
	closed    bool          // it is a closed loop
	rows      int           // after which it is over, filtered ones not counted; 0: all
	length    time.Duration // nothing comes due later than this after it begins; 0: no limit
	epoch     time.Time     // start of the first loop; zero: when it begins
	count     counters
	observers []Observer
}

// plan is the stage after the warm-up.
func (w *Workload) plan() stage {
	return stage{
		phase: measure.Profiling, closed: w.Plan.Closed(), rows: w.Rows, length: w.Duration, epoch: w.Epoch,
		count: w.Count, observers: w.Observers,
	}
}
