package replay

import (
	"fmt"
	"time"
)

// missedAfter is how far the replay may be behind before it rejoins where the clock is: this process was stopped,
// suspended or starved, or the clock was set. Rows that fell due until then are missed: sending the backlog in one
// burst would be a load that the trace never had.
const missedAfter = time.Second

// align rejoins the plan where the wall clock is, with the lock held, when that has moved away by more than a second:
// it was set, or the system was suspended, in which the monotonic clock stands still. A plan that the wall clock does
// not rule goes on as it was. It gives the instant that it read.
func (r *Runner) align() time.Time {
	now := readClock(r.w.Wall)
	if r.done || r.playing == nil || !r.followsWall() {
		return now.own
	}
	skew := r.playing.clock.skew(now)
	if skew.Abs() <= missedAfter {
		return now.own
	}
	for _, it := range r.queue.upcoming.items[r.queue.upcoming.head:] {
		it.due.At = now.at(it.loop.clock.planned(it.due.At))
		it.planned, it.ready = it.due.At, it.due.At
	}
	for _, l := range r.queue.loops {
		l.clock = now
	}
	r.playing.clock = now
	switch {
	case skew > 0:
		r.tell("the wall clock is ahead: it was set, or the system slept; rows due until now are missed", skew)
		r.queue.miss(now.own)
		r.told = r.queue.rejoined
	case -skew <= r.playing.period:
		r.tell("the wall clock was set back: no row goes out twice, the replay waits until the clock comes to the next one", skew)
	default:
		r.tell("the wall clock was set back by more than a loop: the replay joins the loop where it is now", skew)
		r.forgetUpcoming(func(*item) bool { return true })
		for _, l := range r.queue.loops {
			l.cut, l.read = l.cut || !l.read, true
		}
		r.astray = true
		r.settle()
		if !r.until.IsZero() { // which this clock would take long to come to, and the successor joins the same loop
			r.endWork()
		}
	}
	r.alarm.want()
	r.move() // the feed waits for an instant that has moved
	return now.own
}

// move has the feed look again whether there is room.
func (r *Runner) move() {
	select {
	case r.moved <- struct{}{}:
	default:
	}
}

// tell says that the replay rejoins, and by how much. The lock is held.
func (r *Runner) tell(text string, by time.Duration) {
	r.say(func() {
		r.w.Log.Warn(text, "workload", r.w.Name, "by", by)
		if r.w.Rejoined != nil {
			r.w.Rejoined(fmt.Sprintf("%s (%s, by %v)", text, r.w.Name, by.Round(time.Millisecond)))
		}
	})
}

// tellStop says once, with the lock held, that this process did not run for a while, however many found that out before the
// pacer came back.
func (r *Runner) tellStop() {
	if at := r.queue.rejoined; !at.Equal(r.told) {
		r.told = at
		r.tell("this process did not run for a while: rows due until now are missed", r.queue.lag)
	}
}

// forgetUpcoming takes rows that have not come due off the end of the list, with the lock held. They were never expected,
// and their loops do not count as completed.
func (r *Runner) forgetUpcoming(which func(*item) bool) {
	for it := r.queue.upcoming.back(); it != nil && which(it); it = r.queue.upcoming.back() {
		r.queue.upcoming.popBack()
		it.loop.cut = true
		r.queue.forget(it)
	}
}
