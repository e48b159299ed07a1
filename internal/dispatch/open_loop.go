package dispatch

import (
	"time"

	"replayd/internal/measure"
)

// fireOpen makes rows due at their instants, and drops rows that have waited longer than MaxWait.
func (d *Dispatcher) fireOpen(now time.Time) {
	d.rejoin(now)
	for {
		d.visits++
		r, turn := d.upcoming.first, d.delayed.front()
		switch {
		case r != nil && !r.Due.At.After(now) && (turn == nil || !turn.Ready.Before(r.Due.At)):
			d.enter(r.loop)
			r.loop.played = true
			d.played = r.loop.clock.Planned(r.Due.At).Add(1)
			d.comeDue(r, now)
		case turn != nil && !turn.Ready.After(now):
			d.ready(turn, now)
		default:
			d.expire(now)
			return
		}
	}
}

// comeDue handles a row at its planned instant: the row waits for its parents, or is ready.
func (d *Dispatcher) comeDue(r *Row, now time.Time) {
	late := r.isLate()
	switch {
	case r.turn != nil && r.turn.lost:
		d.lose(r)
	case r.Filtered && (!late || r.over() != ""):
		d.filter(r, now)
	case r.over() != "":
		d.giveUp(r, r.over(), now)
	case d.isMissed(r.Due.At) && (!late || !r.namesParents()):
		d.giveUp(r, measure.Missed, now)
	case late && r.turn.pending > 0: // it is due when its parents and its gap allow
		d.to(r, blocked)
	case late:
		d.release(r, now)
	case d.paused:
		d.giveUp(r, measure.Paused, now)
	case d.Breaker.Refuses(now):
		d.giveUp(r, d.reason(guarded), now)
	case r.session == nil:
		d.ready(r, now)
	case r.turn.pending > 0:
		d.expect(r)
		if d.crowds(now) {
			d.giveUp(r, measure.Overload, now)
			return
		}
		d.to(r, blocked)
	default:
		d.expect(r)
		d.release(r, now)
	}
}

// firstOpen removes the first waiting row that may be sent, and drops the rows before it that exceed the rest of the budget.
func (d *Dispatcher) firstOpen(now time.Time) *Row {
	d.rejoin(now) // another event may come before the instant of the last WakeAt is noticed
	d.expire(now)
	for {
		r := d.nextInLine()
		if r == nil {
			return nil
		}
		why := d.may(r, 0, now)
		if why == nothing {
			d.pay(r, now)
			return r
		}
		if why == tooLarge || why == spent {
			d.refused(r, why, now)
		}
		d.dropQueued(r, d.reason(why), now)
	}
}
