package dispatch

import (
	"time"

	"replayd/internal/measure"
)

// filter counts a row that exceeds the length limits.
func (d *Dispatcher) filter(r *Row) {
	d.do(Action{Kind: Filter, Row: r})
	d.forget(r)
}

// expect counts a row as due.
func (d *Dispatcher) expect(r *Row) {
	if !r.expected {
		r.expected = true
		d.weight -= r.Weight
		d.count(r)
		d.do(Action{Kind: Expect, Row: r})
	}
}

// drop ends a row that was due and is not sent.
func (d *Dispatcher) drop(r *Row, reason measure.DropReason) {
	r.state = gone
	d.uncount(r)
	d.endTrial(r, false)
	d.refund(r)
	d.do(Action{Kind: Drop, Row: r, Reason: reason})
	d.giveBack(r)
	d.detach(r)
}

// forget removes a row that never came due.
func (d *Dispatcher) forget(r *Row) {
	r.state = gone
	d.weight -= r.Weight
	d.giveBack(r)
	d.detach(r)
}

// detach removes a row that has ended from its loop and session.
func (d *Dispatcher) detach(r *Row) {
	r.loop.open--
	d.part(r)
	d.unsettled = d.unsettled || r.loop.Over()
}

// hasEnded reports whether the plan has ended at an instant.
func (d *Dispatcher) hasEnded(at time.Time) bool { return !d.ends.IsZero() && !at.Before(d.ends) }

// giveUp drops a row that has just come due, and the later turns of its session.
func (d *Dispatcher) giveUp(r *Row, reason measure.DropReason) {
	d.expect(r)
	d.drop(r, reason)
	if r.session != nil {
		r.session.over = reason
	}
}

// forgetUpcoming removes rows that are not due yet from the end of the list.
func (d *Dispatcher) forgetUpcoming(which func(*Row) bool) {
	for r := d.upcoming.back(); r != nil && which(r); r = d.upcoming.back() {
		d.upcoming.popBack()
		r.loop.cut = true
		d.forget(r)
	}
}
