package dispatch

import (
	"slices"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
)

const (
	// retryAfter is the retry interval of a closed loop that the guard or the budget holds back.
	retryAfter = time.Second

	// connectPause is the pause of a lane after a failed connect. A refused connect takes microseconds: without a
	// pause a server that is down would be dialed in a busy loop.
	connectPause = time.Second

	// A server that fails every request alike, at once, would be asked in a busy loop. After alikeFree equal failures in
	// a row, of all lanes together, each further one keeps its lane out of use for alikeStep longer, up to connectPause
	// from the write.
	alikeFree = 32
	alikeStep = 10 * time.Millisecond
)

// PoolBytes bounds the memory of the rows that were read and are not due yet, those that wait for their parents included. Long
// conversations are read until all lanes of a closed loop are busy or this bound is reached.
const PoolBytes = 256 << 20

// full reports whether enough rows have been read ahead.
func (d *Dispatcher) full() bool { return d.upcoming.n >= d.closed.pool || d.weight >= PoolBytes }

// join queues a row of a closed loop: after the turn before it, or among the rows that a lane may take.
func (d *Dispatcher) join(r *Row) {
	r.Ready = time.Time{} // the instants of a plan that is warmed up for are not those of its turns here
	if !r.follows || r.over() != "" {
		d.to(r, upcoming)
		if r.Due.Since <= aheadTime {
			d.buildIn(&d.unbuilt, r)
		}
		return
	}
	d.to(r, blocked)
	d.prebuild(r)
}

// next returns the earliest instant at which fireClosed has work; zero: there is none.
func (c *closedLoop) next() (at time.Time) {
	if at = c.again; c.opens.After(c.fired) {
		at = earlier(at, c.opens)
	}
	if len(c.pausedLanes) > 0 {
		at = earlier(at, c.pausedLanes[0])
	}
	if len(c.vacant) > 0 {
		at = earlier(at, c.vacant[0])
	}
	return at
}

func (d *Dispatcher) fireClosed(now time.Time) {
	c := d.closed
	c.fired = now
	for len(c.pausedLanes) > 0 && !c.pausedLanes[0].After(now) {
		c.pausedLanes = c.pausedLanes[1:]
		d.free++
	}
	for len(c.vacant) > 0 && !c.vacant[0].After(now) {
		c.vacant = c.vacant[1:]
		d.takePlaces(-1)
	}
	for turn := d.delayed.front(); turn != nil && !turn.Ready.After(now); turn = d.delayed.front() {
		d.call(turn)
	}
	d.draw(now)
}

// call queues a row whose parents have ended for the next free lane.
func (d *Dispatcher) call(r *Row) {
	r.calledAt = d.now
	d.to(r, called)
}

// pauseLane keeps a free lane out of use until an instant.
func (d *Dispatcher) pauseLane(until time.Time) {
	d.free--
	c := d.closed
	i, _ := slices.BinarySearchFunc(c.pausedLanes, until, time.Time.Compare)
	c.pausedLanes = slices.Insert(c.pausedLanes, i, until)
}

// slowDown pauses the lane of a request that failed: at once if it could not connect, otherwise if many before it ended
// in the same way.
func (d *Dispatcher) slowDown(e Event, now time.Time) {
	c, o := d.closed, e.Outcome
	if o != c.latest {
		c.latest, c.alike = o, 0
	}
	c.alike++
	until, over := now, c.alike-alikeFree
	switch {
	case o.Unreached():
		until = now.Add(connectPause)
	case o.Failed() && o != measure.Aborted && over > 0:
		if over == 1 {
			d.do(Action{Kind: Slowed, Row: e.Row})
		}
		until = e.Write.Add(min(connectPause, time.Duration(over)*alikeStep))
	}
	if until.After(now) {
		d.pauseLane(until)
	}
}

// tryAgain schedules a retry while the guard is half open: a trial is possible once the one before has ended and a second has
// passed. A guard that closes is noticed by judge.
func (d *Dispatcher) tryAgain(now time.Time) {
	if d.Breaker.State() == limits.HalfOpen {
		d.closed.again = now.Add(retryAfter)
	}
}

// draw makes one row due for each free lane.
func (d *Dispatcher) draw(now time.Time) {
	c := d.closed
	c.again = time.Time{}
	for d.drawn(now) {
	}
	if d.upcoming.n <= c.pool/2 {
		d.do(Action{Kind: ReadOn})
	}
}

// drawn takes one row from the plan. The row comes due, is dropped, or waits for the turn before it. drawn returns false if no row may be
// sent now.
func (d *Dispatcher) drawn(now time.Time) bool {
	d.visits++
	c, before := d.closed, d.waiting.n
	if now.Before(c.opens) || d.hasEnded(now) || d.Slots.taken >= d.Lanes {
		return false
	}
	list := &d.called
	if list.n == 0 {
		if !d.until.IsZero() && !now.Before(d.until) {
			return false // new conversations are the successor's
		}
		if d.Slots.taken+d.Slots.called >= d.Lanes {
			return false // the other lanes belong to conversations of the predecessor
		}
		if d.HoldLanes && d.free <= before+d.delayed.Len() {
			return false // the other free lanes belong to conversations in a delay
		}
		list = &d.upcoming
	}
	r := list.first
	if r == nil || d.free <= before || d.paused || !d.admitSession(r) {
		return false
	}
	switch {
	case r.Filtered:
		d.filter(r, now)
		return true
	case r.over() != "":
		d.giveUp(r, r.over(), now)
		return true
	case r.session != nil && r.soonest().After(now): // its parents ended before this row was read
		d.release(r, now)
		return true
	case before > 0 && d.Breaker.State() == limits.HalfOpen: // the first of those that wait is the next trial
		return false
	}
	switch why := d.may(r, before, now); why {
	case paused, noLane:
		return false
	case guarded:
		c.suspended = true
		d.tryAgain(now)
		return false
	case tooLarge:
		d.refused(r, why, now)
		d.giveUp(r, measure.Budget, now)
		c.opens = now.Add(retryAfter) // or a trace of such rows would be dropped in a busy loop
		return false
	case spent:
		c.suspended = true
		d.refused(r, why, now)
		c.again = now.Add(retryAfter)
		return false
	default: // it comes due, and waits for its message if that is not built
		d.pay(r, now)
		d.comeUp(r, now)
		return true
	}
}

func (d *Dispatcher) comeUp(r *Row, now time.Time) {
	d.enter(r.loop)
	r.loop.played = true
	if d.closed.suspended {
		d.closed.suspended, d.closed.suspendedUntil = false, now
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
	at := latest(latest(r.soonest(), r.session.begun), d.closed.suspendedUntil)
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
		if d.waiting.n == 0 {
			return nil
		}
		switch d.may(d.waiting.first, 0, now) {
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
			d.dropQueued(r, measure.Invalid, now)
			d.pauseLane(now.Add(connectPause))
			continue
		}
		if r.order <= d.closed.back { // it is the trial
			r.dueNow(now)
		}
		d.tryOut(r, now)
		return r
	}
}

// holdOrResume marks waiting rows as held during a pause or guard. Afterwards held rows come due anew, at the present instant.
func (d *Dispatcher) holdOrResume(now time.Time) {
	if d.paused || d.Breaker.State() != limits.Closed {
		d.closed.back = d.order
		return
	}
	for r := d.waiting.first; r != nil && r.order <= d.closed.back; r = d.waiting.after(r) {
		d.visits++
		r.dueNow(now)
	}
	d.closed.back = 0
}
