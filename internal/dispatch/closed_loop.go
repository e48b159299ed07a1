package dispatch

import (
	"container/heap"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
)

const (
	// lookAgain is the retry interval of a closed loop that the guard or the budget holds back.
	lookAgain = time.Second

	// restFor is the pause of a lane after a failed connect. A refused connect takes microseconds: without a pause a server that
	// is down would be dialled in a busy loop.
	restFor = time.Second
)

// PoolBytes bounds the memory of the rows that were read and are not due yet, those that wait for their parents included. Long
// conversations are read until all lanes of a closed loop are busy or this bound is reached.
const PoolBytes = 256 << 20

// full reports whether enough rows have been read ahead.
func (d *Dispatcher) full() bool { return d.upcoming.len() >= d.closed.pool || d.weight >= PoolBytes }

// join queues a row of a closed loop: after the turn before it, or among the rows that a lane may take.
func (d *Dispatcher) join(r *Row) {
	r.Ready = time.Time{} // the instants of a plan that is warmed up for are not those of its turns here
	if !r.follows || r.over() != "" {
		d.upcoming.push(r)
		if r.Due.Since <= aheadTime {
			d.unbuilt.push(r)
		}
		return
	}
	r.state = blocked
	d.prebuild(r)
}

// next reports the instants at which fireClosed has work.
func (c *closedLoop) next(earlier func(time.Time)) {
	if c.opens.After(c.fired) {
		earlier(c.opens)
	}
	if !c.again.IsZero() {
		earlier(c.again)
	}
	if len(c.resting) > 0 {
		earlier(c.resting[0])
	}
	if len(c.vacant) > 0 {
		earlier(c.vacant[0])
	}
}

func (d *Dispatcher) fireClosed(now time.Time) {
	c := d.closed
	c.fired = now
	for len(c.resting) > 0 && !c.resting[0].After(now) {
		c.resting = c.resting[1:]
		d.free++
	}
	for len(c.vacant) > 0 && !c.vacant[0].After(now) {
		c.vacant = c.vacant[1:]
		c.active--
	}
	for turn := d.delayed.front(); turn != nil && !turn.Ready.After(now); turn = d.delayed.front() {
		heap.Pop(&d.delayed)
		d.call(turn)
	}
	d.draw(now)
}

// call queues a row whose parents have ended for the next free lane.
func (d *Dispatcher) call(r *Row) {
	r.state, r.calledAt = called, d.now
	d.called.push(r)
}

// rest keeps a free lane out of use for restFor.
func (d *Dispatcher) rest(now time.Time) {
	d.free--
	d.closed.resting = append(d.closed.resting, now.Add(restFor))
}

// tryAgain schedules a retry while the guard is half open: a trial is possible once the one before has ended and a second has
// passed. A guard that closes is noticed by judge.
func (d *Dispatcher) tryAgain(now time.Time) {
	if d.Breaker.State() == limits.HalfOpen {
		d.closed.again = now.Add(lookAgain)
	}
}

// draw makes one row due for each free lane.
func (d *Dispatcher) draw(now time.Time) {
	c := d.closed
	c.again = time.Time{}
	for d.drawn(now) {
	}
	if d.upcoming.len() <= c.pool/2 {
		d.do(Action{Kind: ReadOn})
	}
}

// drawn takes one row from the plan. The row comes due, is dropped, or waits for the turn before it. drawn returns false if no row may be
// sent now.
func (d *Dispatcher) drawn(now time.Time) bool {
	c, before := d.closed, d.waiting.len()
	if now.Before(c.opens) || d.hasEnded(now) || !d.until.IsZero() && !now.Before(d.retiresAt) || d.Slots.taken >= d.Lanes {
		return false
	}
	list := &d.called
	if list.len() == 0 {
		if d.HoldLanes && d.free <= before+len(d.delayed) {
			return false // the other free lanes belong to conversations in a delay
		}
		list = &d.upcoming
	}
	r := list.front()
	if r == nil || d.free <= before || d.paused || !d.place(r) {
		return false
	}
	switch {
	case r.Filtered:
		list.pop()
		d.filter(r, now)
		return true
	case r.over() != "":
		list.pop()
		d.giveUp(r, r.over(), now)
		return true
	case r.session != nil && r.soonest().After(now): // its parents ended before this row was read
		list.pop()
		d.release(r, now)
		return true
	case before > 0 && d.Breaker.State() == limits.HalfOpen: // the first of those that wait is the next trial
		return false
	}
	switch why := d.may(r, before, now); why {
	case paused, noLane:
		return false
	case guarded:
		c.holds = true
		d.tryAgain(now)
		return false
	case tooLarge:
		list.pop()
		d.refused(r, why, now)
		d.giveUp(r, measure.Budget, now)
		c.opens = now.Add(lookAgain) // or a trace of such rows would be dropped in a busy loop
		return false
	case spent:
		c.holds = true
		d.refused(r, why, now)
		c.again = now.Add(lookAgain)
		return false
	default: // it comes due, and waits for its message if that is not built
		list.pop()
		d.pay(r, now)
		d.comeUp(r, now)
		return true
	}
}

// comeUp makes a row of a closed loop due.
func (d *Dispatcher) comeUp(r *Row, now time.Time) {
	d.enter(r.loop)
	if d.closed.holds {
		d.closed.holds, d.closed.held = false, now
	}
	at := d.dueAt(r, now)
	r.dueNow(at)
	r.Waited = at.Before(now) && r.calledAt.Before(now)
	d.expect(r)
	if r.session != nil {
		r.session.due = now
	}
	d.prebuildNext(r)
	d.enqueue(r)
}

// dueAt returns when a row of a closed loop comes due that a lane takes now. In a loop of sessions the rows after the first are due
// when their parents allow, and a wait for a lane is measured. A pause, the guard and the budget put them off.
func (d *Dispatcher) dueAt(r *Row, now time.Time) time.Time {
	if d.Sessions == 0 || r.session == nil || r.session.begun.IsZero() {
		return now
	}
	at := latest(latest(r.soonest(), r.session.begun), d.closed.held)
	if at.After(now) {
		return now
	}
	return at
}

// dueNow makes now the planned, due and ready instant of a row: rows of a closed loop have no planned instant of their own.
func (r *Row) dueNow(now time.Time) {
	r.Offset += now.Sub(r.Planned)
	r.Planned, r.Due.At, r.Ready = now, now, now
}

// firstClosed is firstOpen for a closed loop. A row that has come due waits for its message only, or for the end of a pause or guard.
// While the guard is half open, the first waiting row is the trial: it may hold the bytes that a later row's message would need.
func (d *Dispatcher) firstClosed(now time.Time) *Row {
	for {
		d.draw(now)
		d.holdOrResume(now)
		if d.waiting.len() == 0 {
			return nil
		}
		switch d.may(d.waiting.front(), 0, now) {
		case paused:
			return nil
		case guarded:
			d.tryAgain(now)
			return nil
		}
		r := d.nextInLine()
		if r == nil {
			return nil
		}
		if r.Message.Err != nil {
			d.Slots.taken--
			d.dropTurn(r, measure.Invalid, now)
			d.rest(now)
			continue
		}
		if r.held { // it is the trial
			r.held = false
			r.dueNow(now)
		}
		d.tryOut(r, now)
		return r
	}
}

// holdOrResume marks waiting rows as held during a pause or guard. Afterwards held rows come due anew, at the present instant.
func (d *Dispatcher) holdOrResume(now time.Time) {
	back := d.paused || d.Breaker.State() != limits.Closed
	for _, r := range d.waiting.all() {
		if !back && r.held {
			r.dueNow(now)
		}
		r.held = back
	}
}
