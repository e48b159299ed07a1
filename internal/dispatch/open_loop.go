package dispatch

import (
	"container/heap"
	"time"

	"replayd/internal/measure"
)

// fireOpen makes rows due at their instants, and drops rows that have waited longer than MaxWait.
func (d *Dispatcher) fireOpen(now time.Time) {
	d.rejoin(now)
	for {
		r, turn := d.upcoming.front(), d.delayed.front()
		switch {
		case r != nil && !r.Due.At.After(now) && (turn == nil || !turn.Ready.Before(r.Due.At)):
			d.upcoming.pop()
			d.enter(r.loop)
			d.played = r.loop.clock.Planned(r.Due.At).Add(1)
			if r.Filtered {
				d.filter(r)
				continue
			}
			d.comeDue(r, now)
		case turn != nil && !turn.Ready.After(now):
			heap.Pop(&d.delayed)
			d.ready(turn, now)
		default:
			d.expire(now)
			return
		}
	}
}

// comeDue handles a row at its planned instant: the row waits for the turn before it, or is ready.
func (d *Dispatcher) comeDue(r *Row, now time.Time) {
	s := r.session
	switch {
	case s != nil && s.over != "":
		d.giveUp(r, s.over)
	case d.isMissed(r.Due.At):
		d.giveUp(r, measure.Missed)
	case s != nil && s.isLate(r): // it is due when its turn has come
		if s.busy {
			r.state = blocked
		} else {
			d.release(r, now)
		}
	case d.paused:
		d.giveUp(r, measure.Paused)
	case d.Breaker.Refuses(now):
		d.giveUp(r, measure.Guarded)
	case s == nil:
		d.ready(r, now)
	case s.busy:
		d.expect(r)
		if d.crowds(now) {
			d.giveUp(r, measure.Overload)
			return
		}
		r.state = blocked
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
		d.Slots.taken--
		if why == tooLarge || why == spent {
			d.refused(r, why, now)
		}
		d.dropTurn(r, why.reason(), now)
	}
}
