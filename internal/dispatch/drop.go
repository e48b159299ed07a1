package dispatch

import (
	"time"

	"replayd/internal/measure"
)

// filter counts a row that exceeds the length limits. For the rows that come after it, it has ended as soon as it was due.
func (d *Dispatcher) filter(r *Row, now time.Time) {
	d.do(Action{Kind: Filter, Row: r})
	d.begin(r, latest(r.Ready, r.Due.At))
	d.forget(r)
	if t := r.turn; t != nil {
		if t.ended = r.Ready; d.closed != nil {
			t.ended = now
		}
		d.endTurn(r, t.over, now)
	}
}

// expect counts a row as due.
func (d *Dispatcher) expect(r *Row) {
	if !r.expected {
		r.expected = true
		d.weight -= r.Weight
		d.count(r)
		d.do(Action{Kind: Expect, Row: r})
		d.begin(r, r.Due.At)
	}
}

// drop ends a row that was due and is not sent.
func (d *Dispatcher) drop(r *Row, reason measure.DropReason) {
	r.state = gone
	d.uncount(r)
	d.endTrial(r, false)
	d.refund(r)
	d.do(Action{Kind: Drop, Row: r, Reason: reason})
	d.lose(r.session, reason)
	d.giveBack(r)
	d.sideEnded(r, time.Time{})
	d.detach(r)
}

// sideEnded tells the other side of a comparison that a row of a session has ended here; at is zero if no row comes after it.
func (d *Dispatcher) sideEnded(r *Row, at time.Time) {
	if d.Coupled && r.turn != nil {
		d.do(Action{Kind: SideEnded, Row: r, At: at})
	}
}

// forget removes a row that never came due.
func (d *Dispatcher) forget(r *Row) {
	r.state = gone
	d.weight -= r.Weight
	if r.session != nil && !r.Filtered {
		r.session.cut = true
	}
	d.sideEnded(r, time.Time{})
	d.giveBack(r)
	d.detach(r)
}

// detach removes a row that has ended from its loop and session.
func (d *Dispatcher) detach(r *Row) {
	r.loop.open--
	if r.placed {
		r.placed = false
		d.vacate(false)
	}
	d.part(r)
	d.unsettled = d.unsettled || r.loop.Over()
}

// hasEnded reports whether the plan has ended at an instant.
func (d *Dispatcher) hasEnded(at time.Time) bool { return !d.ends.IsZero() && !at.Before(d.ends) }

// giveUp drops a row that has just come due, and the rows that come after it.
func (d *Dispatcher) giveUp(r *Row, reason measure.DropReason, now time.Time) {
	d.expect(r)
	d.dropTurn(r, reason, now)
}

// forgetUpcoming removes rows that are not due yet from the end of the list.
func (d *Dispatcher) forgetUpcoming(which func(*Row) bool) {
	for r := d.upcoming.back(); r != nil && which(r); r = d.upcoming.back() {
		d.upcoming.popBack()
		r.loop.cut = true
		d.forget(r)
	}
}
