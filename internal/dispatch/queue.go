package dispatch

import (
	"time"

	"replayd/internal/measure"
)

// ready queues a row for a lane, or drops it. Its Ready is normally now or slightly earlier.
func (d *Dispatcher) ready(r *Row, now time.Time) {
	if r.Filtered {
		d.filter(r, now)
		return
	}
	if !r.expected { // its parents or its gap allowed it later than planned
		if d.endsBefore(r, r.Ready) {
			d.forgetAfter(r)
			return
		}
		r.Due.At = r.Ready
		d.expect(r)
	}
	if r.session != nil {
		r.session.due = r.Due.At
	}
	d.rejoinAfter(r.Ready, now) // the turn before may have ended while this process did not run
	before := d.waiting.n
	r.Waited = before >= d.free
	switch why := d.may(r, before, now); {
	case r.Message.Err != nil:
		d.dropTurn(r, measure.Invalid, now)
	case d.isMissed(r.Ready):
		d.dropTurn(r, measure.Missed, now)
	case why == paused, why == guarded:
		d.dropTurn(r, d.reason(why), now)
	case r.Waited && d.DropLate && (why == spent || why == tooLarge): // those before it will be refused, and lanes are free
		d.dropTurn(r, measure.Budget, now)
	case r.Waited && (d.DropLate || r.state == upcoming && d.crowds(now)): // a turn that waits already is among those that do
		d.dropTurn(r, measure.Overload, now)
	default: // the row waits for a lane and its message; the budget is checked when it is sent
		d.tryOut(r, now)
		d.prebuildNext(r)
		d.enqueue(r)
	}
}

// enqueue adds a row to the end of the queue for a lane.
func (d *Dispatcher) enqueue(r *Row) {
	d.Slots.taken++
	d.to(r, waiting)
}

// dropQueued drops a row that waits for a lane, and the rows that come after it.
func (d *Dispatcher) dropQueued(r *Row, reason measure.DropReason, now time.Time) {
	d.Slots.taken--
	d.dropTurn(r, reason, now)
}

// dropTurn drops a row that is due, and the rows that come after it.
func (d *Dispatcher) dropTurn(r *Row, reason measure.DropReason, now time.Time) {
	d.drop(r, reason)
	d.endTurn(r, reason, now)
}

func (d *Dispatcher) dropWaiting(reason measure.DropReason, now time.Time) {
	for r := d.waiting.first; r != nil; r = d.waiting.first {
		d.visits++
		d.dropQueued(r, reason, now)
	}
}

// expire drops rows that have waited longer than MaxWait for a lane.
func (d *Dispatcher) expire(now time.Time) {
	if d.MaxWait <= 0 {
		return
	}
	for r := d.waiting.first; r != nil && now.Sub(r.Ready) >= d.MaxWait; r = d.waiting.first {
		d.visits++
		d.dropQueued(r, measure.Overload, now)
	}
}

// release makes a row of a session ready, now or after its waits and its gap.
func (d *Dispatcher) release(r *Row, now time.Time) {
	if !r.namesParents() {
		d.freeNext(r.turn)
	}
	r.Ready = r.soonest()
	switch {
	case r.Ready.After(now):
		d.to(r, delayed)
	case d.closed != nil:
		d.call(r)
	default:
		d.ready(r, now)
	}
}

// endTurn releases the rows whose last parent has ended, or strands all rows after r if over is set: a conversation does not continue
// past a failed or dropped row.
func (d *Dispatcher) endTurn(r *Row, over measure.DropReason, now time.Time) {
	if r.turn == nil {
		return
	}
	if over != "" && r.turn.over != over { // else the rows after it are stranded already
		r.turn.over = over
		d.strand(r.turn.next, over, now)
	}
	for ended := []*turn{r.turn}; len(ended) > 0; ended = ended[1:] {
		t := ended[0]
		d.visits++
		if t.pending > 0 { // the row was dropped
			continue
		}
		t.shorten()
		next := t.next
		t.next = nil
		for _, f := range next {
			d.visits++
			child := f.row.turn
			child.bind(t, f.wait)
			switch child.pending--; {
			case child.pending > 0:
			case child.gone:
				ended = append(ended, child)
			case child.over != "":
			case f.row.state == blocked:
				d.release(f.row, now)
			case f.row.state == upcoming && f.row.late: // its instant is yet to come, but now its message can be built
				f.row.late = false
				d.buildIn(&d.unbuilt, f.row)
			}
		}
	}
}

// strand drops the rows after one that failed or was dropped, each once however many ways lead to it. Rows that have not come to their
// instant are dropped then.
func (d *Dispatcher) strand(after []follower, over measure.DropReason, now time.Time) {
	var path [][]follower // those that are left of the rows after each row on the way to the present one
	for path = append(path, after); len(path) > 0; {
		d.visits++
		last := len(path) - 1
		if len(path[last]) == 0 {
			path = path[:last]
			continue
		}
		r := path[last][0].row
		path[last] = path[last][1:]
		if r.turn.over == over {
			continue
		}
		r.turn.over = over
		path = append(path, r.turn.next)
		switch {
		case r.state != blocked:
		case d.closed != nil: // it is dropped when its turn comes
			d.call(r)
		case r.Filtered:
			d.filter(r, now)
		case !r.expected && d.endsBefore(r, now):
			d.forget(r)
		default:
			d.expect(r)
			d.drop(r, over)
		}
	}
}

// pause begins or ends a pause. In an open loop waiting rows are dropped, and rows that come due until its end. In a closed loop no
// row comes due meanwhile. Requests in flight go on.
func (d *Dispatcher) pause(on bool, now time.Time) {
	d.paused = on
	if on && d.closed != nil {
		d.closed.suspended = true
	}
	if on && d.closed == nil {
		d.dropWaiting(measure.Paused, now)
	}
}

// next returns the earliest instant at which fire has work; zero: there is none.
func (d *Dispatcher) next() (at time.Time) {
	if d.closed != nil {
		at = d.closed.next()
	} else if r := d.upcoming.first; r != nil {
		at = r.Due.At
	}
	if r := d.delayed.front(); r != nil {
		at = earlier(at, r.Ready)
	}
	if r := d.waiting.first; r != nil && d.MaxWait > 0 {
		at = earlier(at, r.Ready.Add(d.MaxWait))
	}
	return at
}

// earlier returns the earlier one of two instants; a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
