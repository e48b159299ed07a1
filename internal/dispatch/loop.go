package dispatch

import (
	"slices"
	"time"

	"replayd/internal/schedule"
)

// beginLoop begins a loop, or enters a loop again that was left.
func (d *Dispatcher) beginLoop(l schedule.Loop, from time.Time, now Clock, period time.Duration, salt time.Time) {
	lp := d.loops[l.Number]
	if lp == nil {
		lp = &Loop{sessions: map[sessionKey]*session{}, Salt: l.Start, joined: from.After(l.Start)}
		d.loops[l.Number] = lp
	}
	lp.Loop, lp.clock, lp.Period, lp.read = l, d.planClock(now), period, false
	lp.endsReported = false
	if d.LoopTime > 0 && d.closed == nil {
		lp.ends = lp.clock.At(l.Start).Add(d.LoopTime)
		if !slices.Contains(d.bounded, lp) {
			d.bounded = append(d.bounded, lp)
		}
	}
	if !salt.IsZero() {
		lp.Salt = salt
	}
	if d.playing == nil {
		d.enter(lp)
	}
}

// planClock returns the clock that maps the plan's instants. A plan that does not follow the wall clock goes on as it
// began, whatever becomes of that.
func (d *Dispatcher) planClock(now Clock) Clock {
	switch {
	case d.FollowsWall:
	case d.playing != nil:
		return d.playing.clock
	case !d.Clock.Own.IsZero():
		return d.Clock
	}
	return now
}

// Planned returns the planned instant of now.
func (d *Dispatcher) Planned(now Clock) time.Time { return d.planClock(now).Planned(now.Own) }

// enter records the loop of the row that came due.
func (d *Dispatcher) enter(l *Loop) {
	if d.playing != l {
		d.playing = l
		d.do(Action{Kind: LoopEntered, Loop: l})
	}
}

// Loop returns the loop with a number, or nil if none of its rows is left and it is not being read.
func (d *Dispatcher) Loop(number int64) *Loop { return d.loops[number] }

// read adds a row of a loop that was read from the plan.
func (d *Dispatcher) read(l *Loop, r *Row) {
	l.open++
	r.Offset = r.Due.At.Sub(l.Start)
	r.Due.At = l.clock.At(r.Due.At)
	r.loop, r.Planned, r.Ready = l, r.Due.At, r.Due.At
	d.weight += r.Weight
	d.enroll(r)
	if r.Filtered && r.turn == nil {
		d.to(r, upcoming)
		return
	}
	if d.closed != nil {
		d.join(r)
		return
	}
	d.to(r, upcoming)
	switch {
	case r.namesParents():
		d.prebuild(r)
	case r.late: // when the turn before has ended
	case r.follows:
		d.buildIn(&d.behind, r)
	default:
		d.buildIn(&d.unbuilt, r)
	}
}
