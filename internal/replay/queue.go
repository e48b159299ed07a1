package replay

import (
	"container/heap"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// A queue holds every item between the plan and the end of its request. It is a plain state machine: each
// step takes the instant it happens at, and the caller holds the runner's lock.
type queue struct {
	upcoming fifo // in order of due
	waiting  fifo // in order of ready
	delayed  turns
	loops    map[int64]*loop
	current  *loop // of the row that came due last
	building fifo  // items whose bodies are to be built, in plan order
	behind   fifo  // the same for turns that wait for an earlier one
	free     int   // lanes that would take an item now
	maxWait  time.Duration
	dropLate bool          // overload: drop
	missed   time.Duration // how far behind this process may be before it rejoins; 0: any
	rejoined time.Time     // what fell due until this instant is missed
	lag      time.Duration // how far behind the queue was when it found that out by itself
	paused   bool          // what falls due is dropped
	guard    *guard
	purse    *purse
	count    counter
	dropped  func(*item, measure.DropReason)
	emptied  func() // a loop whose rows all came has none left
}

// counter is the part of measure.Workload that the queue's steps are counted on.
type counter interface {
	Expected(n int)
	Filtered(n int)
	Sent()
	Dropped(reason measure.DropReason)
}

// begin makes room for the rows of a loop. One that was left may be entered again.
func (q *queue) begin(l schedule.Loop, c clock) *loop {
	lp := q.loops[l.Number]
	if lp == nil {
		lp = &loop{sessions: map[string]*session{}}
		q.loops[l.Number] = lp
	}
	lp.Loop, lp.clock, lp.read = l, c, false
	return lp
}

// add takes a row of a loop from the plan.
func (q *queue) add(l *loop, it *item) {
	l.open++
	it.due.At = l.clock.at(it.due.At)
	it.loop, it.ready = l, it.due.At
	if it.filtered {
		q.upcoming.push(it)
		return
	}
	if s := it.due.Session; s != "" {
		if l.sessions[s] == nil {
			l.sessions[s] = &session{}
		}
		it.session = l.sessions[s]
		it.follows = it.session.open > 0
		it.session.open++
	}
	q.upcoming.push(it)
	if it.follows {
		q.behind.push(it)
	} else {
		q.building.push(it)
	}
}

// next is the earliest instant at which fire has something to do; false when nothing is on the calendar.
func (q *queue) next() (time.Time, bool) {
	var at time.Time
	earlier := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if it := q.upcoming.front(); it != nil {
		earlier(it.due.At)
	}
	if len(q.delayed) > 0 {
		earlier(q.delayed[0].ready)
	}
	if it := q.waiting.front(); it != nil && q.maxWait > 0 {
		earlier(it.ready.Add(q.maxWait))
	}
	return at, !at.IsZero()
}

// fire moves everything whose instant has come by now, and drops what has waited too long.
func (q *queue) fire(now time.Time) {
	q.rejoin(now)
	for {
		up, turn := q.upcoming.front(), q.delayed.front()
		switch {
		case up != nil && !up.due.At.After(now) && (turn == nil || !turn.ready.Before(up.due.At)):
			q.upcoming.pop()
			q.current = up.loop
			if up.filtered {
				q.count.Filtered(1)
				up.state = gone
				q.leave(up)
				continue
			}
			q.count.Expected(1)
			q.comeDue(up, now)
		case turn != nil && !turn.ready.After(now):
			heap.Pop(&q.delayed)
			q.makeReady(turn, now)
		default:
			q.expire(now)
			return
		}
	}
}

// rejoin finds out whether this process did not run for a while: then what was to happen meanwhile is missed.
func (q *queue) rejoin(now time.Time) {
	if at, ok := q.next(); ok {
		q.rejoinAfter(at, now)
	}
}

// rejoinAfter does so by an instant that has come, unless it lies in a time that is known to be missed.
func (q *queue) rejoinAfter(at, now time.Time) {
	if q.missed > 0 && now.Sub(at) > q.missed && !q.isMissed(at) {
		q.lag = now.Sub(at)
		q.miss(now)
	}
}

// miss drops what waits, and lets whatever fell due until now be dropped when it comes.
func (q *queue) miss(now time.Time) {
	q.rejoined = now
	q.dropWaiting(measure.Missed, now)
}

func (q *queue) dropWaiting(reason measure.DropReason, now time.Time) {
	for it := q.waiting.pop(); it != nil; it = q.waiting.pop() {
		q.drop(it, reason)
		q.endTurn(it, false, now)
	}
}

// isMissed says of an instant whether it lies in a time in which this process did not run.
func (q *queue) isMissed(at time.Time) bool { return !q.rejoined.IsZero() && !at.After(q.rejoined) }

// pause drops what waits and what falls due until the pause is over; what is in flight goes on.
func (q *queue) pause(paused bool, now time.Time) {
	q.paused = paused
	if paused {
		q.dropWaiting(measure.Paused, now)
	}
}

// judge steps the guard, and drops what waits where that holds more back than before. False: nothing has changed.
func (q *queue) judge(now time.Time, l Load, err error) bool {
	before := q.guard.holds()
	changed := q.guard.step(now, l, err)
	if q.guard.holds() > before {
		q.dropWaiting(measure.Guarded, now)
	}
	return changed
}

// comeDue takes an item at its planned instant: behind the turn before it, or ready.
func (q *queue) comeDue(it *item, now time.Time) {
	s := it.session
	switch {
	case q.isMissed(it.due.At) || s != nil && s.failed:
		q.giveUp(it, measure.Missed)
	case q.paused:
		q.giveUp(it, measure.Paused)
	case q.guard.refuses(now):
		q.giveUp(it, measure.Guarded)
	case s == nil:
		q.makeReady(it, now)
	case s.busy:
		it.state = blocked
		s.turns = append(s.turns, it)
	default:
		s.busy = true
		q.release(it, now)
	}
}

// giveUp drops an item that has just come due, and with it the rest of its session: later turns would be sent without
// this one.
func (q *queue) giveUp(it *item, reason measure.DropReason) {
	q.drop(it, reason)
	if it.session != nil {
		it.session.failed = true
	}
}

// release makes a session's turn ready, now or when its delay after the turn before is over.
func (q *queue) release(it *item, now time.Time) {
	if s := it.session; !s.ended.IsZero() {
		if from := s.ended.Add(it.due.Delay); from.After(it.ready) {
			it.ready = from
		}
	}
	if it.ready.After(now) {
		it.state = delayed
		heap.Push(&q.delayed, it)
		return
	}
	q.makeReady(it, now)
}

// makeReady lets an item wait for a lane from the instant at which it may be sent, which is hardly before now.
func (q *queue) makeReady(it *item, now time.Time) {
	q.rejoinAfter(it.ready, now) // the turn before may have ended while this process did not run
	it.state = waiting
	it.waited = q.waiting.len() >= q.free
	var why measure.DropReason
	switch {
	case q.isMissed(it.ready):
		why = measure.Missed
	case q.paused:
		why = measure.Paused
	case !q.guard.admit(it, now):
		why = measure.Guarded
	case it.waited && q.dropLate && q.purse.empty(it, now): // those before it will be refused, and lanes are free
		why = measure.Budget
	case it.waited && q.dropLate:
		why = measure.Overload
	default:
		q.waiting.push(it)
		return
	}
	q.drop(it, why)
	q.endTurn(it, false, now)
}

// expire drops items that no lane took within max_wait.
func (q *queue) expire(now time.Time) {
	if q.maxWait <= 0 {
		return
	}
	for it := q.waiting.front(); it != nil && now.Sub(it.ready) >= q.maxWait; it = q.waiting.front() {
		q.waiting.pop()
		q.drop(it, measure.Overload)
		q.endTurn(it, false, now)
	}
}

// take hands the first waiting item to a lane for which the budget has enough left, and drops those before it. Nil: there
// is none, or its body is not built yet.
func (q *queue) take(now time.Time) *item {
	q.rejoin(now) // a lane may come back before the pacer does
	q.expire(now)
	for it := q.waiting.front(); it != nil && (it.body != nil || it.err != nil); it = q.waiting.front() {
		q.waiting.pop()
		if q.purse.pay(it, now) {
			it.state = flying
			q.count.Sent()
			return it
		}
		q.drop(it, measure.Budget)
		q.endTurn(it, false, now)
	}
	return nil
}

// finish ends an item that a lane had; its answer ended at an instant before now.
func (q *queue) finish(it *item, ok bool, end, now time.Time) {
	it.state = gone
	q.guard.over(it, it.err == nil)
	q.leave(it)
	if it.session != nil {
		it.session.ended = end
	}
	q.endTurn(it, ok, now)
}

// endTurn lets the next turn of a session go, or gives the session up: a conversation is not continued past
// an answer that did not come.
func (q *queue) endTurn(it *item, ok bool, now time.Time) {
	s := it.session
	if s == nil {
		return
	}
	s.busy = false
	if !ok {
		s.failed = true
		for _, turn := range s.turns {
			q.drop(turn, measure.Missed)
		}
		s.turns = nil
		return
	}
	if len(s.turns) > 0 {
		turn := s.turns[0]
		s.turns = s.turns[1:]
		s.busy = true
		q.release(turn, now)
	}
}

// drop ends an item that was due and is not sent.
func (q *queue) drop(it *item, reason measure.DropReason) {
	it.state = gone
	q.guard.over(it, false)
	q.count.Dropped(reason)
	q.dropped(it, reason)
	q.leave(it)
}

func (q *queue) leave(it *item) {
	it.loop.open--
	if it.session != nil {
		it.session.open--
	}
	if it.loop.read && it.loop.open == 0 {
		q.emptied()
	}
}

// stop drops whatever was due and not sent; what was not due yet was never expected and goes silently.
func (q *queue) stop() {
	for it := q.upcoming.pop(); it != nil; it = q.upcoming.pop() {
		it.state = gone
		q.leave(it)
	}
	for it := q.waiting.pop(); it != nil; it = q.waiting.pop() {
		q.drop(it, measure.Shutdown)
	}
	for _, it := range q.delayed {
		q.drop(it, measure.Shutdown)
	}
	q.delayed = nil
	for _, l := range q.loops {
		for _, s := range l.sessions {
			for _, it := range s.turns {
				q.drop(it, measure.Shutdown)
			}
			s.turns = nil
		}
		l.read = true
	}
}
