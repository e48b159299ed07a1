package dispatch

import (
	"container/heap"
	"time"

	"replayd/internal/measure"
)

// fireOpen lets rows come due at their instants, and drops what has waited too long.
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

// filter counts a row that is too long.
func (d *Dispatcher) filter(r *Row) {
	d.do(Action{Kind: Filter, Row: r})
	d.forget(r)
}

// expect counts a row as due.
func (d *Dispatcher) expect(r *Row) {
	if !r.expected {
		r.expected = true
		d.weight -= r.Weight
		d.do(Action{Kind: Expect, Row: r})
	}
}

// comeDue takes a row at its planned instant: behind the turn before it, or ready.
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
		r.state = blocked
	default:
		d.expect(r)
		d.release(r, now)
	}
}

// giveUp drops a row that has just come due, and with it the rest of its session: later turns would be sent without
// this one.
func (d *Dispatcher) giveUp(r *Row, reason measure.DropReason) {
	d.expect(r)
	d.drop(r, reason)
	if r.session != nil {
		r.session.over = reason
	}
}

// ready lets a row wait for a lane from the instant at which it may be sent, which is hardly before now, or drops it.
func (d *Dispatcher) ready(r *Row, now time.Time) {
	if !r.expected { // its gap after the turn before was over later than planned
		if d.over(r.Ready) {
			d.forget(r)
			return
		}
		r.Due.At = r.Ready
		d.expect(r)
	}
	if r.session != nil {
		r.session.due = r.Due.At
	}
	d.rejoinAfter(r.Ready, now) // the turn before may have ended while this process did not run
	before := d.waiting.len()
	r.Waited = before >= d.free
	switch why := d.may(r, before, now); {
	case r.Message.Err != nil:
		d.dropTurn(r, measure.Invalid, now)
	case d.isMissed(r.Ready):
		d.dropTurn(r, measure.Missed, now)
	case why == paused, why == guarded:
		d.dropTurn(r, why.reason(), now)
	case r.Waited && d.DropLate && (why == spent || why == tooLarge): // those before it will be refused, and lanes are free
		d.dropTurn(r, measure.Budget, now)
	case r.Waited && d.DropLate:
		d.dropTurn(r, measure.Overload, now)
	default: // a lane and the message may still come, and the budget is asked when they have
		d.tryOut(r, now)
		d.wait(r)
	}
}

// wait puts a row at the end of the line.
func (d *Dispatcher) wait(r *Row) {
	r.state = waiting
	d.Slots.taken++
	d.waiting.push(r)
}

// unwait takes the first row of the line out of it; nil: there is none.
func (d *Dispatcher) unwait() *Row {
	r := d.waiting.pop()
	if r != nil {
		d.Slots.taken--
	}
	return r
}

// dropTurn drops a row that is due, and with it the later turns of its session.
func (d *Dispatcher) dropTurn(r *Row, reason measure.DropReason, now time.Time) {
	d.drop(r, reason)
	d.endTurn(r, reason, now)
}

func (d *Dispatcher) dropWaiting(reason measure.DropReason, now time.Time) {
	for r := d.unwait(); r != nil; r = d.unwait() {
		d.dropTurn(r, reason, now)
	}
}

// expire drops rows that no lane took within MaxWait.
func (d *Dispatcher) expire(now time.Time) {
	if d.MaxWait <= 0 {
		return
	}
	for r := d.waiting.front(); r != nil && now.Sub(r.Ready) >= d.MaxWait; r = d.waiting.front() {
		d.dropTurn(d.unwait(), measure.Overload, now)
	}
}

// firstOpen takes the first row of the line that may go, and drops those before it that the budget has too little for.
func (d *Dispatcher) firstOpen(now time.Time) *Row {
	d.rejoin(now) // somebody else may come before the instant of the last WakeAt is noticed
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

// nextInLine takes the first row of the line whose message is there, or cannot be. It passes over those that could not be built
// ahead of their time, and over no others: a prefix still goes out before the request that reuses it.
func (d *Dispatcher) nextInLine() *Row {
	for i, r := range d.waiting.all() {
		if r.Message.Body != nil || r.Message.Err != nil {
			d.waiting.remove(i)
			return r
		}
		if !r.late {
			break
		}
	}
	return nil
}

// pause drops what waits and what falls due until the pause is over; what is in flight goes on. Of a closed loop nothing is
// dropped: it waits.
func (d *Dispatcher) pause(on bool, now time.Time) {
	d.paused = on
	if on && d.closed == nil {
		d.dropWaiting(measure.Paused, now)
	}
}
