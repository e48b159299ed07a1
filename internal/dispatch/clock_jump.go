package dispatch

import (
	"time"

	"replayd/internal/measure"
)

// missedAfter is how far the replay may be behind before it rejoins where the clock is: this process was stopped,
// suspended or starved, or the clock was set. Rows that fell due until then are missed: sending the backlog in one
// burst would be a load that the trace never had.
const missedAfter = time.Second

// rejoin detects that the process was not running for a while. Rows that were due meanwhile are missed.
func (d *Dispatcher) rejoin(now time.Time) {
	if at := d.next(); !at.IsZero() {
		d.rejoinAfter(at, now)
	}
}

// runs records that the process runs. The runner calls several times a second, so a longer time between two calls is a standstill, and
// likewise the time by which a Tick is late.
func (d *Dispatcher) runs(now time.Time) {
	since := d.ran
	if !d.wakes.IsZero() && !d.wakes.After(since) {
		since = d.wakes.Add(-1)
	}
	if !d.ran.IsZero() && now.Sub(since) > missedAfter {
		d.stood = [2]time.Time{since, now}
	}
	d.ran = now
}

// rejoinAfter detects by an instant that passed more than missedAfter ago, in a standstill of the process, that rows are missed. An
// instant that passed while the process ran is that of a row that was read late.
func (d *Dispatcher) rejoinAfter(at, now time.Time) {
	stood := at.After(d.stood[0]) && !at.After(d.stood[1])
	if lag := now.Sub(at); d.closed == nil && lag > missedAfter && stood && !d.isMissed(at) && at.After(d.heldUntil) {
		if d.Floats && !d.underWay && d.until.IsZero() { // a successor knows where the plan is
			d.postpone(lag)
			return
		}
		d.lag = max(d.lag, lag)
		d.miss(now)
	}
}

// postpone moves the begin of a plan that has not begun. Its instant was this process's own choice, so that a later one is as good, and
// nothing is missed.
func (d *Dispatcher) postpone(by time.Duration) {
	for r := d.upcoming.first; r != nil; r = d.upcoming.after(r) {
		d.visits++
		r.Due.At = r.Due.At.Add(by)
		r.Planned, r.Ready = r.Due.At, r.Due.At
	}
	for _, l := range d.loops {
		l.clock.Own = l.clock.Own.Add(by)
		if !l.ends.IsZero() {
			l.ends = l.ends.Add(by)
		}
	}
	if !d.ends.IsZero() {
		d.ends = d.ends.Add(by)
	}
	d.do(Action{Kind: Rejoined, Why: Postponed, Lag: by})
	d.do(Action{Kind: ReadOn}) // the feed waits for an instant that has moved
}

// miss drops the waiting rows, and rows due until now as soon as they are read.
func (d *Dispatcher) miss(now time.Time) {
	d.rejoined = now
	d.dropWaiting(measure.Missed, now)
}

// isMissed reports whether the process was not running at an instant.
func (d *Dispatcher) isMissed(at time.Time) bool {
	return !d.rejoined.IsZero() && !at.After(d.rejoined)
}

// Reached returns the planned instant at which a reader that is through with a loop goes on: loops that were over by
// then are left out. It is that of the wall clock if the plan's loops lie on it, else the end of the latest standstill;
// zero: there was none, or it moved the begin of the plan. It is no later than the end of the plan and the handover:
// what comes after them is nobody's, or another's.
func (d *Dispatcher) Reached(l *Loop, now Clock, onWall bool) time.Time {
	clock, at := l.clock, latest(d.rejoined, d.stood[1])
	switch {
	case onWall:
		clock, at = now, now.Own
	case at.IsZero(), d.Floats && !d.underWay:
		return time.Time{}
	}
	return clock.Planned(earlier(earlier(at, d.ends), d.retires(now)))
}

// align rejoins the plan where the wall clock is, when that has moved away by more than a second: it was set, or the system was
// suspended, in which the monotonic clock stands still. A plan that does not follow the wall clock continues unchanged. It returns false if the wall clock has not moved.
func (d *Dispatcher) align(now Clock) (moved bool) {
	if d.done || d.playing == nil || !d.FollowsWall {
		return false
	}
	skew := d.playing.clock.Skew(now)
	if skew.Abs() <= missedAfter {
		return false
	}
	for r := d.upcoming.first; r != nil; r = d.upcoming.after(r) {
		d.visits++
		r.Due.At = now.At(r.loop.clock.Planned(r.Due.At))
		r.Planned, r.Ready = r.Due.At, r.Due.At
	}
	for _, l := range d.loops {
		l.clock = now
		if !l.ends.IsZero() {
			l.ends = now.At(l.Start).Add(d.LoopTime)
		}
	}
	d.playing.clock = now
	why := SetBack
	switch {
	case skew > 0:
		why = Ahead
		d.miss(now.Own)
	case -skew > d.playing.Period:
		why = SetFarBack
		d.letGo()
		d.offPlan = true
		if !d.until.IsZero() { // which this clock would take long to come to, and the successor joins the same loop
			d.leave(now.Own)
		}
	}
	d.do(Action{Kind: Rejoined, Why: why, Lag: skew})
	d.do(Action{Kind: ReadOn}) // the feed waits for an instant that has moved
	return true
}

// letGo forgets rows that are not due yet. They were never expected, and their loops do not count as completed.
func (d *Dispatcher) letGo() {
	d.forgetUpcoming(func(*Row) bool { return true })
	for _, l := range d.loops {
		l.cut, l.read = l.cut || !l.read, true
	}
	d.unsettled = true
}

// A Clock is one instant read from two clocks: the process' monotonic clock and the wall clock. A plan's instants are wall clock
// times, and a Clock maps them to monotonic time. If the wall clock is set later, the mapping stays, and Skew reports
// the difference.
type Clock struct {
	Own  time.Time // has a monotonic reading
	Wall time.Time // has no monotonic reading
}

// At maps a planned instant to the monotonic clock.
func (c Clock) At(planned time.Time) time.Time { return c.Own.Add(planned.Round(0).Sub(c.Wall)) }

// Planned maps an instant of the monotonic clock back to planned time.
func (c Clock) Planned(own time.Time) time.Time { return c.Wall.Add(own.Sub(c.Own)) }

// Skew is how far the wall clock of a later reading is ahead of the time that this reading predicts.
func (c Clock) Skew(now Clock) time.Duration { return now.Wall.Sub(c.Planned(now.Own)) }
