package dispatch

import (
	"time"

	"replayd/internal/measure"
)

// filter counts a row that exceeds the length limits. For the rows that come after it, it has ended as soon as it was due.
func (d *Dispatcher) filter(r *Row, now time.Time) {
	d.underWay = true
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

func (d *Dispatcher) expect(r *Row) {
	if !r.expected {
		r.expected, d.underWay = true, true
		d.weight -= r.Weight
		d.count(r)
		d.do(Action{Kind: Expect, Row: r})
		d.begin(r, r.Due.At)
	}
}

func (d *Dispatcher) drop(r *Row, reason measure.DropReason) {
	d.to(r, gone)
	d.uncount(r)
	d.endTrial(r, false)
	d.refund(r)
	d.do(Action{Kind: Drop, Row: r, Reason: reason})
	if r.session != nil {
		r.session.loses(r, reason.Eligible(d.DropLate))
	}
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
	d.to(r, gone)
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
	if r.admitted {
		r.admitted = false
		d.vacate(false)
	}
	d.part(r)
	d.unsettled = d.unsettled || r.loop.Over()
}

func (d *Dispatcher) hasEnded(at time.Time) bool { return !d.ends.IsZero() && !at.Before(d.ends) }

// endsBefore reports whether the plan or the row's loop has ended at an instant.
func (d *Dispatcher) endsBefore(r *Row, at time.Time) bool {
	return d.hasEnded(at) || !r.loop.ends.IsZero() && !at.Before(r.loop.ends)
}

// forgetAfter forgets a row that the end of the plan or of its loop came before, and with the end of its loop all that wait there.
func (d *Dispatcher) forgetAfter(r *Row) {
	d.lose(r)
	if !r.loop.ends.IsZero() && !d.now.Before(r.loop.ends) {
		d.overrun(r.loop)
	}
}

// overrun forgets the rows of a loop that are not due at its end.
func (d *Dispatcher) overrun(l *Loop) {
	for r := l.undue.first; r != nil; r = l.undue.first {
		d.visits++
		d.lose(r)
	}
}

func (d *Dispatcher) lose(r *Row) {
	if r.turn != nil {
		r.turn.lost = true
	}
	d.forget(r)
}

// giveUp drops a row that has just come due, and the rows that come after it.
func (d *Dispatcher) giveUp(r *Row, reason measure.DropReason, now time.Time) {
	d.expect(r)
	d.dropTurn(r, reason, now)
}

// forgetUpcoming removes rows that are not due yet from the end of the list.
func (d *Dispatcher) forgetUpcoming(which func(*Row) bool) {
	for r := d.upcoming.last; r != nil && which(r); r = d.upcoming.last {
		d.visits++
		r.loop.cut = true
		d.forget(r)
	}
}
