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

	"replayd/internal/limits"
	"replayd/internal/measure"
)

// A Runner runs one Workload.
type Runner struct {
	w     Workload
	phase measure.RunPhase
	count figures
	looks atomic.Uint64 // readings of the engine's load

	*shared
	changed sync.Cond // the builder waits here: a new row, bytes given back, a stop
	queue   queue
	idle    []*lane // free lanes; the last one used is the last in the slice, so its connection is the youngest
	lanes   int     // started so far
	held    int     // bytes of messages built and not yet sent
	buffers buffers
	stopped bool // no new work
	done    bool // nothing is left and nothing will come
	fed     bool // the feed has ended

	succeeds bool      // it takes over from another runner
	warming  *Runner   // of the warm-up, while that runs
	salt     time.Time // start of the first loop as its texts have it, where a warm-up has had them; zero: as it is
	first    time.Time // its start; the feed's

	seq      int64 // rows read, without filtered ones; the feed's
	filtered int   // rows that were filtered since the last that was not; the feed's

	alarm    *alarm    // nil until the plan begins
	sleepsTo time.Time // what it is set to, or was last; zero: it was not

	playing *loop         // the one that the pacer is in; nil before the first
	moved   chan struct{} // holds one: planned instants have moved on the monotonic clock
	told    time.Time     // the last time of queue.rejoined that was told
	news    []func()      // what is to be told
	unsaid  int           // what was left out of it
	said    sync.Cond     // who tells it waits here
	astray  bool          // the feed is to look anew where the clock is
	until   time.Time     // planned instant from which on rows are another runner's; zero: none are
	leaves  time.Time     // the same by this process' own clock, when it was told: what holds where the plan does not follow the wall clock
	clipped int64         // rows that came due and were cut to the limits
	ended   bool          // nothing comes due any more, by Duration
	endWork func()        // stops the taking of new work
	judged  uint64        // order of the latest reading that the guard was judged by
	lacks   string        // what was logged of figures that the engine does not show
	large   bool          // it was told that a request is larger than the budget
	invalid struct {      // messages that could not be built
		told  time.Time // the latest log line
		since int       // dropped since then
	}

	running sync.WaitGroup // lanes
}

// New prepares a runner; nothing is started and nothing is sent.
func New(w Workload) *Runner {
	r := newRunner(w, w.Count, w.Plan.Closed())
	w.Count.Paused(w.Paused)
	return r
}

// newRunner prepares a runner of a plan, or of the plan's rows in a closed loop.
func newRunner(w Workload, count figures, closed bool) *Runner {
	r := &Runner{w: w, count: count, moved: make(chan struct{}, 1)}
	if r.shared = new(shared); w.After != nil {
		r.shared = w.After.shared
	}
	r.changed.L, r.said.L = &r.mu, &r.mu
	r.queue = queue{
		loops: map[int64]*loop{}, free: w.Lanes, maxWait: w.MaxWait, dropLate: w.Overload == Drop, missed: missedAfter,
		paused: w.Paused, guard: limits.NewBreaker(w.Guard), purse: newPurse(w.Budget),
		carry:   w.Carry,
		waiting: line{near: nearRows}, named: r.id, ready: w.Client.Ready,
		count: count, dropped: r.forget, forgotten: r.giveBack, clipped: r.clip, emptied: r.settle,
	}
	if closed {
		r.queue.close(poolOf(w.Lanes), r.move)
		r.queue.closed.hold = w.Hold
	}
	if w.After != nil {
		r.follow(w.After)
		r.succeeds = true
		if closed {
			r.queue.closed.full = func() bool { return r.busy() >= r.w.Lanes }
		}
		r.w.After = nil // or runners would keep each other in memory, reload after reload
	}
	if p := r.queue.purse; p != nil {
		p.tell, p.turned = r.tellLarge, r.tellBudget
	}
	return r
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
	if r.w.Warmup > 0 && !r.succeeds && r.w.Begin.IsZero() {
		if err := r.warmUp(ctx, hard); err != nil {
			return err
		}
	}
	hard, abort := context.WithCancel(hard)
	defer abort()
	work, stop := context.WithCancel(ctx)
	defer stop()
	r.mu.Lock()
	r.endWork = stop
	r.alarm = r.w.Pacer.join(&r.mu, func() bool { return r.step(hard) })
	r.alarm.want()
	r.mu.Unlock()
	defer r.alarm.leave()
	detach := context.AfterFunc(hard, stop)
	defer detach()

	var feedErr error
	var rooms, warmer sync.WaitGroup
	rooms.Go(func() { feedErr = r.feed(work) })
	rooms.Go(func() { r.build(hard) })
	rooms.Go(r.tellNews)
	warming, endWarming := context.WithCancel(work)
	defer endWarming()
	warmer.Go(func() { r.warm(warming) })
	if r.queue.guard != nil {
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
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	r.queue.stop()
	r.unguard()
	r.settle()
	r.wakeOthers()
}

// settle finds out, with the lock held, whether anything is left, and wakes whoever waits for that.
func (r *Runner) settle() {
	open := 0
	for n, l := range r.queue.loops {
		open += l.open
		if l.read && l.open == 0 {
			delete(r.queue.loops, n)
			if !r.stopped && !l.cut {
				r.count.LoopCompleted()
			}
		}
	}
	if !r.done && open == 0 && (r.fed || r.stopped) {
		r.done = true
		for _, l := range r.idle {
			close(l.work)
		}
		r.idle = nil
	}
	r.changed.Broadcast()
	r.said.Signal()
	r.alarm.want()
}

// forget tells the observers of a dropped request and gives its bytes back. The lock is held.
func (r *Runner) forget(it *item, reason measure.DropReason) {
	r.giveBack(it)
	if reason == measure.Invalid {
		r.tellInvalid(it)
	}
	if r.w.Dropped != nil {
		r.w.Dropped(reason)
	}
}

// clip tells of a request that was cut to the limits. The lock is held.
func (r *Runner) clip(*item) {
	r.clipped++
	if r.w.Clipped != nil {
		r.w.Clipped()
	}
}

// Clipped is how many requests that came due were cut to the limits.
func (r *Runner) Clipped() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clipped
}
