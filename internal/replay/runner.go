// Package replay runs a plan against a target: it lets each row go at its due instant, through lanes that bound
// what is in flight, and reports every request when it has ended.
//
// A row passes four goroutines, none of which waits for a later one: the feed reads the plan some seconds ahead,
// the builder makes HTTP messages within a budget of bytes, the pacer of all runners sleeps to absolute instants on
// a thread of its own, and a lane writes the message and reads the answer.
package replay

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/limits"
)

// A Runner runs one Workload.
type Runner struct {
	w       Workload
	breaker *limits.Breaker
	looks   atomic.Uint64      // readings of the engine's load
	launch  func(*lane)        // starts a lane
	endWork context.CancelFunc // stops the taking of new work

	*shared  // its lock guards what follows
	stage    // changes while nothing is on its way
	d        *dispatch.Dispatcher
	builds   chan build // room for one: the dispatcher asks for no second
	buffers  buffers
	idle     []*lane   // free lanes; the last one used is the last in the slice
	lanes    int       // started so far
	freed    *lane     // the one whose request has just ended, while the dispatcher is told
	alarm    *alarm    // nil until Run
	entered  bool      // a loop was entered
	cuts     int64     // rows that came due and were cut to the limits
	succeeds bool      // it takes over from another runner
	until    time.Time // planned instant from which on rows are another runner's; zero: none are
	over     bool      // nothing is left and nothing will come
	told     told
	news     []func()  // what is to be told
	unsaid   int       // what was left out of it
	said     sync.Cond // who tells it waits here

	warmed   chan struct{} // closed when nothing of the warm-up is left
	moved    chan struct{} // holds one: the feed is to look again whether there is room
	salt     time.Time     // start of the first loop as its texts have it, where a warm-up has had them; zero: as it is
	first    time.Time     // its start; the feed's
	seq      int64         // rows read, without filtered ones; the feed's
	filtered int           // rows that were filtered since the last that was not; the feed's

	running sync.WaitGroup // lanes
}

// New prepares a runner; nothing is started and nothing is sent.
func New(w Workload) *Runner {
	r := &Runner{
		w: w, stage: w.plan(), breaker: limits.NewBreaker(w.Guard),
		shared: new(shared), builds: make(chan build, 1), moved: make(chan struct{}, 1), warmed: make(chan struct{}),
		endWork: func() {}, // before Run there is none
	}
	if w.After != nil {
		r.shared, r.succeeds = w.After.shared, true
		r.follow(w.After)
		r.w.After = nil // or runners would keep each other in memory, reload after reload
	}
	r.said.L = &r.mu
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spending == nil && w.Budget != (limits.Budget{}) {
		r.spending = limits.NewSpending()
	}
	r.d = dispatch.New(r.config())
	w.Count.Paused(w.Paused)
	return r
}

// config is what the dispatcher of the plan is made by.
func (r *Runner) config() dispatch.Config {
	w := &r.w
	return dispatch.Config{
		Lanes: w.Lanes, Closed: w.Plan.Closed(), HoldLanes: w.Hold, DropLate: w.Overload == Drop, MaxWait: w.MaxWait,
		Carry: w.Carry, Ahead: w.Ahead, Paused: w.Paused,
		FollowsWall: !w.Plan.Closed() && (w.Plan.FollowsWall() || !w.Epoch.IsZero()),
		Breaker:     r.breaker, Budget: w.Budget, Spending: r.spending, Slots: &r.slots,
	}
}

// Run replays until the plan is over or ctx is cancelled; then what waits is dropped and what is in flight may
// end, for at most the drain time or until hard is cancelled. It returns when nothing of the runner runs any more:
// with nil after the plan's end or a stop, with an error when the trace could not be read to its end.
func (r *Runner) Run(ctx, hard context.Context) (err error) {
	defer r.close()
	endPacer, err := r.ownPacer()
	if err != nil {
		return err
	}
	defer endPacer()
	r.mu.Lock()
	r.runners = append(r.runners, r)
	r.mu.Unlock()
	hard, abort := context.WithCancel(hard)
	defer abort()
	work, stop := context.WithCancel(ctx)
	defer stop()
	r.mu.Lock()
	r.launch = func(l *lane) { r.running.Go(func() { r.carry(hard, l) }) }
	r.endWork = stop
	r.alarm = r.w.Pacer.join(&r.mu, r.tick)
	r.alarm.want()
	r.mu.Unlock()
	defer r.alarm.leave()
	detach := context.AfterFunc(hard, stop)
	defer detach()

	var feedErr error
	var rooms, warmer sync.WaitGroup
	rooms.Go(func() { feedErr = r.read(work) })
	rooms.Go(r.build)
	rooms.Go(r.tellNews)
	warming, endWarming := context.WithCancel(work)
	defer endWarming()
	warmer.Go(func() { r.warm(warming) })
	if r.breaker != nil {
		warmer.Go(func() { r.watch(warming) })
	}

	stopped := make(chan struct{})
	natural := context.AfterFunc(work, func() {
		r.stop()
		close(stopped)
	})
	finished := make(chan struct{})
	go func() { // waited for in every case below
		rooms.Wait()
		r.running.Wait()
		endWarming()
		warmer.Wait()
		close(finished)
	}()
	select {
	case <-finished:
	case <-work.Done():
		drain := time.NewTimer(r.drain())
		select {
		case <-finished:
		case <-hard.Done():
		case <-drain.C:
			r.w.Log.Warn("drain time is over, requests in flight are cut", "workload", r.w.Name, "drain", r.drain())
		}
		drain.Stop()
		abort()
		<-finished
	}
	if !natural() {
		<-stopped
	}
	if errors.Is(feedErr, errRetired) ||
		work.Err() != nil && (errors.Is(feedErr, context.Canceled) || errors.Is(feedErr, context.DeadlineExceeded)) {
		return nil
	}
	return feedErr
}

// read reads the rows of the warm-up, and then those of the plan.
func (r *Runner) read(ctx context.Context) error {
	if r.w.Warmup > 0 && !r.succeeds && r.w.Begin.IsZero() {
		if err := r.warmUp(ctx); err != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.end()
			return err
		}
	}
	return r.feed(ctx)
}

// ownPacer has a pacer run for this runner alone, where it was given none.
func (r *Runner) ownPacer() (end func(), err error) {
	if r.w.Pacer != nil {
		return func() {}, nil
	}
	sleeper := r.w.Sleeper
	if sleeper == nil {
		if sleeper, err = NewSleeper(); err != nil {
			return nil, err
		}
	}
	r.w.Pacer = NewPacer(sleeper)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.w.Pacer.Run(ctx)
	}()
	return func() {
		stop()
		<-ended
	}, nil
}

// close leaves no limit shown as open, and its workload without the runner.
func (r *Runner) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unguard()
	r.runners = slices.DeleteFunc(r.runners, func(one *Runner) bool { return one == r })
}

// stop ends the taking of new work.
func (r *Runner) stop() {
	r.tell(dispatch.Event{Kind: dispatch.Stop})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unguard()
	r.wakeOthers()
}

// Clipped is how many requests that came due were cut to the limits.
func (r *Runner) Clipped() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cuts
}
