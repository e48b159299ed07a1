package replay

import (
	"context"
	"log/slog"
	"time"
)

// step lets what is due by now come due, and sets the alarm to the next instant. It never waits, whoever calls it: the pacer, a lane
// in its place, or the goroutine that kept them from it. False: somebody else has the lock, and does it.
func (r *Runner) step(hard context.Context) (done bool) {
	seen := r.look()
	if !r.alarm.enter() {
		return false
	}
	if r.done {
		r.mu.release()
		return true
	}
	now := r.align()
	r.judge(now, seen)
	r.queue.fire(now)
	r.tellStop()
	if l := r.queue.current; l != nil {
		r.enter(l)
	}
	var room [16]*lane // on the stack, as long as it is enough
	given := r.assign(hard, now, room[:0])
	at, _ := r.queue.next()
	r.sleepsTo = r.untilRetired(now, r.untilOver(now, at))
	r.alarm.set(r.sleepsTo)
	r.mu.release()
	// This thread is awake now, those of the lanes have yet to be woken: it writes what the kernel takes at once. Waking
	// takes as long as a write, so nobody is woken before the last of them.
	for _, l := range given {
		l.begin()
	}
	for _, l := range given {
		l.work <- struct{}{}
	}
	r.changed.Signal() // the builder: an item may wait for nothing but its message
	return true
}

// rouse sets the alarm earlier, with the lock held, where something is due before its instant: the end of a request or of a build
// can bring that about.
func (r *Runner) rouse() {
	if at, ok := r.queue.next(); ok && (r.sleepsTo.IsZero() || at.Before(r.sleepsTo)) {
		r.sleepsTo = at
		r.alarm.set(at)
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
	r.say(func() {
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
