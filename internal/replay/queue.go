package replay

import (
	"container/heap"
	"time"

	"replayd/internal/measure"
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
	dropLate bool // overload: drop
	missed   time.Duration
	count    counter
	dropped  func(*item, measure.DropReason)
}

// counter is the part of measure.Workload that the queue's steps are counted on.
type counter interface {
	Expected(n int)
	Sent()
	Dropped(reason measure.DropReason)
}

// add takes a row from the plan.
func (q *queue) add(it *item) {
	l := q.loops[it.due.Loop.Number]
	if l == nil {
		l = &loop{Loop: it.due.Loop, sessions: map[string]*session{}}
		q.loops[it.due.Loop.Number] = l
	}
	l.open++
	it.loop, it.ready = l, it.due.At
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
	for {
		up, turn := q.upcoming.front(), q.delayed.front()
		switch {
		case up != nil && !up.due.At.After(now) && (turn == nil || !turn.ready.Before(up.due.At)):
			q.upcoming.pop()
			q.count.Expected(1)
			q.current = up.loop
			q.comeDue(up, now)
		case turn != nil && !turn.ready.After(now):
			heap.Pop(&q.delayed)
			q.makeReady(turn)
		default:
			q.expire(now)
			return
		}
	}
}

// comeDue takes an item at its planned instant: behind the turn before it, or ready.
func (q *queue) comeDue(it *item, now time.Time) {
	s := it.session
	switch {
	case q.missed > 0 && now.Sub(it.due.At) > q.missed:
		q.drop(it, measure.Missed)
		if s != nil {
			s.failed = true // later turns would be sent without this one
		}
	case s == nil:
		q.makeReady(it)
	case s.failed:
		q.drop(it, measure.Missed)
	case s.busy:
		it.state = blocked
		s.turns = append(s.turns, it)
	default:
		s.busy = true
		q.release(it, now)
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
	q.makeReady(it)
}

func (q *queue) makeReady(it *item) {
	it.state = waiting
	it.waited = q.waiting.len() >= q.free
	if it.waited && q.dropLate {
		q.drop(it, measure.Overload)
		q.endTurn(it, false, it.ready)
		return
	}
	q.waiting.push(it)
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

// take hands the first waiting item to a lane, or nil: none waits, or its body is not built yet.
func (q *queue) take(now time.Time) *item {
	q.expire(now)
	it := q.waiting.front()
	if it == nil || it.body == nil && it.err == nil {
		return nil
	}
	q.waiting.pop()
	it.state = flying
	q.count.Sent()
	return it
}

// finish ends an item that a lane had, at the instant at which its answer ended.
func (q *queue) finish(it *item, ok bool, end time.Time) {
	it.state = gone
	q.leave(it)
	q.endTurn(it, ok, end)
}

// endTurn lets the next turn of a session go, or gives the session up: a conversation is not continued past
// an answer that did not come.
func (q *queue) endTurn(it *item, ok bool, end time.Time) {
	s := it.session
	if s == nil {
		return
	}
	s.busy, s.ended = false, end
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
		q.release(turn, end)
	}
}

// drop ends an item that was due and is not sent.
func (q *queue) drop(it *item, reason measure.DropReason) {
	it.state = gone
	q.count.Dropped(reason)
	q.dropped(it, reason)
	q.leave(it)
}

func (q *queue) leave(it *item) {
	it.loop.open--
	if it.session != nil {
		it.session.open--
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
