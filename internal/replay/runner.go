// Package replay runs a plan against a target: it lets each row go at its due instant, through lanes that bound
// what is in flight, and reports every request when it has ended.
//
// A row passes four goroutines, none of which waits for a later one: the feed reads the plan some seconds ahead,
// the builder makes HTTP messages within a budget of bytes, the pacer sleeps to absolute instants on a thread of
// its own, and a lane writes the message and reads the answer.
package replay

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"replayd/internal/measure"
	"replayd/internal/openai"
	"replayd/internal/schedule"
	"replayd/internal/synth"
)

// Overload says what happens to a request that finds no free lane at its instant.
type Overload string

// Overload policies.
const (
	Wait Overload = "wait" // it waits for a lane, at most MaxWait
	Drop Overload = "drop" // it is dropped at once
)

// OverLimit says what happens to a row that is longer than MaxInput or MaxOutput.
type OverLimit string

// Treatments of rows over the length limits.
const (
	Filter OverLimit = "filter" // it is not part of the replay
	Clip   OverLimit = "clip"   // it is cut to the limit
	Send   OverLimit = "send"   // it goes out as it is
)

// An Observer hears of every request that ended. Calls come from many goroutines. A request and its slices are
// the lane's again when Observe returns.
type Observer interface {
	Observe(*measure.Request)
}

// Workload is one plan against one target, with all its options. Fields without a stated default are required.
type Workload struct {
	Name   string
	Plan   *schedule.Plan
	Prompt *synth.Prompter
	Salt   synth.Salt
	Mark   Mark // of every request; probes carry none
	Client *openai.Client
	Target *Target // of the same client; its Run is the caller's to start
	Count  *measure.Workload
	Log    *slog.Logger

	Observers []Observer
	Dropped   func(measure.DropReason) // hears of every request that was due and not sent; nil: nobody
	Rejoined  func(text string)        // hears in words of each time that the replay rejoins where the clock is; nil: nobody
	Guarded   func(slog.Level, string) // hears in words of each time that a limit of the guard opens or closes; nil: nobody

	Lanes     int           // most requests in flight
	Overload  Overload      // Wait or Drop
	MaxWait   time.Duration // longest wait for a lane; 0: without limit
	Ahead     int           // bytes of messages built and not yet sent
	Rows      int           // rows after which the plan is over; 0: all
	MaxInput  int           // tokens; 0: no limit
	MaxOutput int           // tokens; 0: no limit
	OverLimit OverLimit
	Calibrate bool          // take the server's own tokens (chat template, beginning of text) off synthesized prompts
	Drain     time.Duration // how long requests in flight may go on after a stop

	Guard  Guard
	Budget Budget
	// Load tells the engine's load of now; its error says why that is not known: nothing was scraped yet, or too long ago.
	// Nil: nothing is scraped. It is called before every row and every second by several goroutines, without a lock of the
	// runner's held, so it may take its own; it does not wait and allocates nothing.
	Load func() (Load, error)

	Epoch   time.Time        // start of the first loop; zero: when the target has answered a probe, or after 5 s
	Begin   time.Time        // rows due before it are another runner's, which Retires then; zero: none are
	After   *Runner          // the one that this one takes over from; it goes on with its budget and guard. Nil: none
	Paused  bool             // begin paused
	Wall    func() time.Time // the wall clock; nil: time.Now
	Sleeper Sleeper          // nil: the most exact one of this system; closed at the end
}

// A Runner runs one Workload.
type Runner struct {
	w       Workload
	sleeper Sleeper
	looks   atomic.Uint64 // readings of the engine's load

	mu      sync.Mutex
	changed sync.Cond // the builder waits here: a new row, bytes given back, a stop
	queue   queue
	idle    []*lane // free lanes; the last one used is the last in the slice, so its connection is the youngest
	held    int     // bytes of messages built and not yet sent
	buffers buffers
	stopped bool // no new work
	done    bool // nothing is left and nothing will come
	fed     bool // the feed has ended

	playing *loop         // the one that the pacer is in; nil before the first
	moved   chan struct{} // holds one: planned instants have moved on the monotonic clock
	told    time.Time     // the last time of queue.rejoined that was told
	news    []func()      // what the pacer is to say when it has the time
	astray  bool          // the feed is to look anew where the clock is
	until   time.Time     // planned instant from which on rows are another runner's; zero: none are
	endWork func()        // stops the taking of new work
	judged  uint64        // order of the latest reading that the guard was judged by
	large   bool          // it was told that a request is larger than the budget

	running sync.WaitGroup // lanes
}

// New prepares a runner; nothing is started and nothing is sent.
func New(w Workload) *Runner {
	r := &Runner{w: w, sleeper: w.Sleeper, moved: make(chan struct{}, 1)}
	r.changed.L = &r.mu
	r.queue = queue{
		loops: map[int64]*loop{}, free: w.Lanes, maxWait: w.MaxWait, dropLate: w.Overload == Drop, missed: missedAfter,
		paused: w.Paused, guard: newGuard(w.Guard), purse: newPurse(w.Budget),
		count: w.Count, dropped: r.forget, emptied: r.settle,
	}
	if w.After != nil {
		r.follow(w.After)
		r.w.After = nil // or runners would keep each other in memory, reload after reload
	}
	if p := r.queue.purse; p != nil {
		p.large, p.turned = r.tellLarge, r.tellBudget
	}
	w.Count.Paused(w.Paused)
	return r
}

// Run replays until the plan is over or ctx is cancelled; then what waits is dropped and what is in flight may
// end, for at most the drain time or until hard is cancelled. It returns when nothing of the runner runs any more:
// with nil after the plan's end or a stop, with an error when the trace could not be read to its end.
func (r *Runner) Run(ctx, hard context.Context) (err error) {
	defer r.close()
	if err := r.prepare(); err != nil {
		return err
	}
	hard, abort := context.WithCancel(hard)
	defer abort()
	work, stop := context.WithCancel(ctx)
	defer stop()
	r.mu.Lock()
	r.endWork = stop
	r.mu.Unlock()
	detach := context.AfterFunc(hard, stop)
	defer detach()

	var feedErr error
	var rooms, warmer sync.WaitGroup
	rooms.Go(func() { feedErr = r.feed(work) })
	rooms.Go(func() { r.build(hard) })
	rooms.Go(func() { r.pace(hard) })
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
		<-stopped // it may still be waking the sleeper
	}
	if errors.Is(feedErr, errRetired) ||
		work.Err() != nil && (errors.Is(feedErr, context.Canceled) || errors.Is(feedErr, context.DeadlineExceeded)) {
		return nil
	}
	return feedErr
}

// prepare takes the sleeper that the pacer will use.
func (r *Runner) prepare() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sleeper == nil {
		r.sleeper, err = NewSleeper()
	}
	return err
}

// close leaves no limit shown as open, and no sleeper that a Pause could still wake: its descriptor is somebody else's then.
func (r *Runner) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unguard()
	if r.sleeper != nil { // else it could not be had
		_ = r.sleeper.Close() // nobody waits in it
		r.sleeper = nil
	}
}

// stop ends the taking of new work.
func (r *Runner) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopped = true
	r.queue.stop()
	r.unguard()
	r.settle()
}

// settle finds out, with the lock held, whether anything is left, and wakes whoever waits for that.
func (r *Runner) settle() {
	open := 0
	for n, l := range r.queue.loops {
		open += l.open
		if l.read && l.open == 0 {
			delete(r.queue.loops, n)
			if !r.stopped && !l.cut {
				r.w.Count.LoopCompleted()
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
	if r.sleeper != nil { // it runs
		r.sleeper.Wake()
	}
}

// forget tells the observers of a dropped request and gives its bytes back. The lock is held.
func (r *Runner) forget(it *item, reason measure.DropReason) {
	r.giveBack(it)
	if r.w.Dropped != nil {
		r.w.Dropped(reason)
	}
}
