package replay

import (
	"context"
	"log/slog"
	"runtime"
	"time"
)

// pace lets items come due at their instants until nothing is left.
func (r *Runner) pace(hard context.Context) {
	var given []*lane
	for {
		var at time.Time
		var done bool
		at, given, done = r.step(hard, given)
		if done {
			r.tellNews()
			return
		}
		if len(given) > 0 {
			// A thread asleep in a system call keeps its place in Go's scheduler, and with it the lanes that it has just
			// woken, until somebody takes them away. Yielding first lets them run now.
			runtime.Gosched()
		}
		r.tellNews() // now that what was due is on its way: a log may be slow
		r.sleeper.Until(at)
	}
}

// step lets what is due by now come due, and gives the instant of the next. given are the lanes that have work now, in the
// slice that was handed in.
func (r *Runner) step(hard context.Context, given []*lane) (at time.Time, _ []*lane, done bool) {
	seen := r.look()
	r.mu.Lock()
	if r.done {
		r.mu.Unlock()
		return at, given, true
	}
	now := r.align()
	r.judge(now, seen)
	r.queue.fire(now)
	r.tellStop()
	if l := r.queue.current; l != nil {
		r.enter(l)
	}
	given = r.assign(hard, now, given[:0])
	at, _ = r.queue.next()
	at = r.untilRetired(now, r.untilOver(now, at))
	r.overdue.Store(r.overdueAt(at))
	r.sleepsTo = at
	r.mu.Unlock()
	// This thread is awake now, those of the lanes have yet to be woken: it writes what the kernel takes at once. Waking
	// takes as long as a write, so nobody is woken before the last of them.
	for _, l := range given {
		l.begin()
	}
	for _, l := range given {
		l.work <- struct{}{}
	}
	r.changed.Signal() // the builder: an item may wait for nothing but its message
	return at, given, false
}

// rouse wakes the pacer, with the lock held, where something is due before the instant that it sleeps to: the end of a request
// or of a build can bring that about.
func (r *Runner) rouse() {
	if at, ok := r.queue.next(); ok && (r.sleepsTo.IsZero() || at.Before(r.sleepsTo)) {
		r.sleepsTo = at
		r.sleeper.Wake()
	}
}

// grace is how long after an instant the pacer is left to come by itself.
const grace = 20 * time.Microsecond

// overdueAt is when a lane that is awake may step in for the pacer, in ns since the runner was made; 0: never.
func (r *Runner) overdueAt(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return max(1, int64(at.Add(grace).Sub(r.made)))
}

// relieve steps in for the pacer where it is overdue at now. A pacer that the kernel has woken waits until Go's scheduler has a
// processor for it, and while all of them are busy with lanes that may be as long as it takes to serve sixty of those: it
// looks for what came from outside only then (schedtick in findRunnable of Go's runtime/proc.go). Each of these lanes asks here.
// What there is to tell is left to the pacer.
func (r *Runner) relieve(hard context.Context, l *lane, now time.Time) {
	due := r.overdue.Load()
	if due == 0 || int64(now.Sub(r.made)) < due || !r.overdue.CompareAndSwap(due, 0) {
		return
	}
	_, l.given, _ = r.step(hard, l.given)
	r.mu.Lock()
	tell := len(r.news) > 0
	r.mu.Unlock()
	if tell {
		r.sleeper.Wake()
	}
}

// tellNews is the pacer's; who holds the lock must not tell.
func (r *Runner) tellNews() {
	r.mu.Lock()
	news := r.news
	r.news = nil
	r.mu.Unlock()
	for _, tell := range news {
		tell()
	}
}

// enter notes the loop that is played, with the lock held.
func (r *Runner) enter(l *loop) {
	if r.playing == l {
		return
	}
	if r.playing == nil {
		r.count.SetClock(r.gauges)
	}
	r.playing = l
	r.count.LoopStarted(l.Number, l.period)
	number, begins, period := l.Number, l.Start.UTC().Format(time.RFC3339Nano), l.period
	level := slog.LevelInfo
	if r.queue.closed != nil { // which may be over in no time
		level = slog.LevelDebug
	}
	r.news = append(r.news, func() {
		r.w.Log.Log(context.Background(), level, "entered loop", "workload", r.w.Name, "loop", number, "begins", begins, "period", period)
	})
}

// assign pairs waiting items with free lanes, with the lock held. Each lane has its item in next, not yet in work.
func (r *Runner) assign(hard context.Context, now time.Time, given []*lane) []*lane {
	for r.queue.free > 0 {
		it := r.queue.take(now)
		if it == nil {
			break
		}
		r.queue.free--
		var l *lane
		if n := len(r.idle); n > 0 {
			l, r.idle = r.idle[n-1], r.idle[:n-1]
		} else {
			l = r.startLane(hard)
		}
		l.next = handed{it, now}
		l.fill()
		given = append(given, l)
	}
	return given
}

// dispatch hands waiting items to free lanes, with the lock held.
func (r *Runner) dispatch(hard context.Context, now time.Time) {
	for _, l := range r.assign(hard, now, nil) {
		l.work <- struct{}{}
	}
}
