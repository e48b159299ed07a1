package dispatch

import (
	"container/heap"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
)

const (
	// lookAgain is how soon a closed loop tries again what a guard's trial or a budget did not let through.
	lookAgain = time.Second

	// restFor is how long a lane rests whose request could not connect. A refusal takes microseconds: without a rest a
	// server that is down would be dialled as fast as this machine can.
	restFor = time.Second
)

// PoolBytes bounds what the rows at hand may take, together with the turns that wait for an earlier one: of long
// conversations as many are read as are needed to keep all lanes busy, unless that is too much.
const PoolBytes = 256 << 20

// full says whether the plan is to be read no further for now.
func (d *Dispatcher) full() bool { return d.upcoming.len() >= d.closed.pool || d.weight >= PoolBytes }

// join puts a row of a closed loop in its place: behind the turn before it, or among those that a lane may take.
func (d *Dispatcher) join(r *Row) {
	r.Ready = time.Time{} // the instants of a plan that is warmed up for are not those of its turns here
	s := r.session
	if s == nil || !r.follows || s.over != "" {
		d.upcoming.push(r)
		d.unbuilt.push(r)
		return
	}
	r.state = blocked
	if s.busy && s.first() == r {
		d.prebuild(r)
	}
}

// prebuild has the message of a conversation's next turn built while the one before is on its way.
func (d *Dispatcher) prebuild(r *Row) {
	if !r.late {
		d.behind.push(r)
	}
}

// next tells of the instants at which fireClosed has something to do.
func (c *circuit) next(earlier func(time.Time)) {
	if c.opens.After(c.fired) {
		earlier(c.opens)
	}
	if !c.again.IsZero() {
		earlier(c.again)
	}
	if len(c.resting) > 0 {
		earlier(c.resting[0])
	}
}

func (d *Dispatcher) fireClosed(now time.Time) {
	c := d.closed
	c.fired = now
	for len(c.resting) > 0 && !c.resting[0].After(now) {
		c.resting = c.resting[1:]
		d.free++
	}
	for turn := d.delayed.front(); turn != nil && !turn.Ready.After(now); turn = d.delayed.front() {
		heap.Pop(&d.delayed)
		turn.state = called
		d.called.push(turn)
	}
	d.draw(now)
}

// rest takes a free lane of a closed loop out of use for a while.
func (d *Dispatcher) rest(now time.Time) {
	d.free--
	d.closed.resting = append(d.closed.resting, now.Add(restFor))
}

// tryAgain looks for a permission to send a trial soon, where one may be had: a trial in flight must end, or its second be
// over. Of everything else that the guard holds back judge tells.
func (d *Dispatcher) tryAgain(now time.Time) {
	if d.Breaker.State() == limits.HalfOpen {
		d.closed.again = now.Add(lookAgain)
	}
}

// draw lets a row come due for each lane that is free and has none yet.
func (d *Dispatcher) draw(now time.Time) {
	c := d.closed
	c.again = time.Time{}
	for d.drawn(now) {
	}
	if d.upcoming.len() <= c.pool/2 {
		d.do(Action{Kind: ReadOn})
	}
}

// drawn takes one row from the plan: it comes due, or is dropped, or waits for its turn. False: there is none, or none may.
func (d *Dispatcher) drawn(now time.Time) bool {
	c, before := d.closed, d.waiting.len()
	if now.Before(c.opens) || d.over(now) || !d.until.IsZero() && !now.Before(d.retiresAt) || d.Slots.taken >= d.Lanes {
		return false
	}
	list := &d.called
	if list.len() == 0 {
		if d.HoldLanes && d.free <= before+len(d.delayed) {
			return false // the rest are those of conversations that pause
		}
		list = &d.upcoming
	}
	r := list.front()
	if r == nil || d.free <= before || d.paused {
		return false
	}
	s := r.session
	switch {
	case r.Filtered:
		list.pop()
		d.filter(r)
		return true
	case s != nil && s.over != "":
		list.pop()
		d.giveUp(r, s.over)
		return true
	case s != nil && s.soonest(r).After(now): // it was read when the turn before had long ended
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
		d.tryAgain(now)
		return false
	case tooLarge:
		list.pop()
		d.refused(r, why, now)
		d.giveUp(r, measure.Budget)
		d.endTurn(r, measure.Budget, now)
		c.opens = now.Add(lookAgain) // where all rows are like this one, they are not gone in no time
		return false
	case spent:
		d.refused(r, why, now)
		c.again = now.Add(lookAgain)
		return false
	default: // with its message or without: it comes due, and waits for that
		list.pop()
		d.pay(r, now)
		d.comeUp(r, now)
		return true
	}
}

// comeUp lets a row of a closed loop come due.
func (d *Dispatcher) comeUp(r *Row, now time.Time) {
	d.enter(r.loop)
	r.dueNow(now)
	d.expect(r)
	if s := r.session; s != nil {
		if s.first() == r {
			s.turns = s.turns[1:]
		}
		s.busy, s.due = true, now
		if turn := s.first(); turn != nil {
			d.prebuild(turn)
		}
	}
	d.wait(r)
}

// dueNow lets a row have the instant at which it came due for the plan's.
func (r *Row) dueNow(now time.Time) {
	r.Offset += now.Sub(r.Planned)
	r.Planned, r.Due.At, r.Ready = now, now, now
}

// firstClosed is firstOpen of a closed loop: a row that has come due waits for its message only, or for the end of a pause or of a
// guard that came between. While single trials go through, the first waiting row is the trial, whichever row that is: one
// that waits already may hold the bytes that the message of a later one would need.
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

// holdOrResume notes that the rows which wait are held back, or lets those that were come due anew: their turn has come again.
func (d *Dispatcher) holdOrResume(now time.Time) {
	back := d.paused || d.Breaker.State() != limits.Closed
	for _, r := range d.waiting.all() {
		if !back && r.held {
			r.dueNow(now)
		}
		r.held = back
	}
}
