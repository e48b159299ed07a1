package dispatch

import (
	"time"

	"replayd/internal/schedule"
)

// beginLoop makes room for the rows of a loop. One that was left may be entered again.
func (d *Dispatcher) beginLoop(l schedule.Loop, now Clock, period time.Duration, salt time.Time) {
	d.astray = false
	lp := d.loops[l.Number]
	if lp == nil {
		lp = &Loop{sessions: map[sessionKey]*session{}, Salt: l.Start}
		d.loops[l.Number] = lp
	}
	lp.Loop, lp.clock, lp.Period, lp.read = l, now, period, false
	if !salt.IsZero() {
		lp.Salt = salt
	}
	if d.playing == nil {
		d.enter(lp)
	}
}

// enter notes the loop that is played.
func (d *Dispatcher) enter(l *Loop) {
	if d.playing != l {
		d.playing = l
		d.do(Action{Kind: LoopEntered, Loop: l})
	}
}

// Loop is the one of a number; nil where none of its rows is on its way and it is not being read.
func (d *Dispatcher) Loop(number int64) *Loop { return d.loops[number] }

// read takes a row of a loop from the plan.
func (d *Dispatcher) read(l *Loop, r *Row) {
	l.open++
	r.Offset = r.Due.At.Sub(l.Start)
	r.Due.At = l.clock.At(r.Due.At)
	r.loop, r.Planned, r.Ready = l, r.Due.At, r.Due.At
	d.weight += r.Weight
	if r.Filtered {
		d.upcoming.push(r)
		return
	}
	d.enroll(r)
	if d.closed != nil {
		d.join(r)
		return
	}
	d.upcoming.push(r)
	switch {
	case r.late: // when the turn before has ended
	case r.follows:
		d.behind.push(r)
	default:
		d.unbuilt.push(r)
	}
}
