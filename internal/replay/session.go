package replay

import (
	"container/heap"
	"time"

	"replayd/internal/measure"
)

// A session is a conversation in one loop, and in one pass of it: its turns go out one after the other.
type session struct {
	open    int                // turns not gone
	busy    bool               // a turn is delayed, called, waiting or flying
	over    measure.DropReason // why later turns are not sent; "": they are
	due     time.Time          // of the latest turn that became ready; zero before the first
	ended   time.Time          // end of the last turn; zero before the first
	turns   []*item            // those that have not been let go, in order, some of them gone
	answers [][]byte           // what its turns were answered, nil where nothing came; only where they are carried
	bytes   int                // of answers
	rests   int                // how often it came to have no open turns
}

// A sessionKey tells the conversations of a loop apart.
type sessionKey struct {
	name string
	pass int64
}

// A rest is a session as it stood when it came to have no open turns.
type rest struct {
	key   sessionKey
	of    *session
	times int // of.rests then
}

// How much is kept of a loop's sessions without open turns; those longest at rest are forgotten first. A turn that comes
// all the same, behind as many other conversations, begins a session anew.
const (
	restingSessions = 1 << 16
	restingBytes    = 64 << 20 // of answers
)

// enroll makes an item a turn of its session.
func (q *queue) enroll(it *item) {
	if it.due.Session == "" {
		return
	}
	key := sessionKey{it.due.Session, it.due.Pass}
	s := it.loop.sessions[key]
	if s == nil {
		s = &session{}
		it.loop.sessions[key] = s
	}
	if s.open == 0 && s.rests > 0 {
		it.loop.atRest -= s.bytes
	}
	it.session = s
	it.follows = s.open > 0
	it.late = it.follows && q.carry
	s.open++
	if s.over == "" {
		s.turns = append(s.turns, it)
	}
}

// first is the earliest turn that has not been let go; nil when there is none.
func (s *session) first() *item {
	for len(s.turns) > 0 && s.turns[0].state == gone {
		s.turns = s.turns[1:]
	}
	if len(s.turns) == 0 {
		return nil
	}
	return s.turns[0]
}

// part ends an item's being a turn of its session.
func (q *queue) part(it *item) {
	s := it.session
	if s == nil {
		return
	}
	if s.open--; s.open > 0 {
		return
	}
	s.turns = nil
	s.rests++
	l := it.loop
	l.resting = append(l.resting, rest{sessionKey{it.due.Session, it.due.Pass}, s, s.rests})
	l.atRest += s.bytes
	for len(l.resting) > restingSessions || l.atRest > restingBytes {
		r := l.resting[0]
		l.resting[0] = rest{}
		l.resting = l.resting[1:]
		if r.of.open == 0 && r.of.rests == r.times {
			l.atRest -= r.of.bytes
			delete(l.sessions, r.key)
		}
	}
}

// release makes a session's turn ready, now or when its delay after the turn before, and its gap, are over.
func (q *queue) release(it *item, now time.Time) {
	s := it.session
	if s.first() == it {
		s.turns = s.turns[1:]
	}
	s.busy = true
	it.ready = s.soonest(it)
	switch {
	case it.ready.After(now):
		it.state = delayed
		heap.Push(&q.delayed, it)
	case q.closed != nil:
		it.state = called
		q.called.push(it)
	default:
		q.makeReady(it, now)
	}
}

// soonest is when a turn may go: by the plan, its delay after the end of the turn before, and its gap after that one's instant.
func (s *session) soonest(it *item) time.Time {
	at := it.ready
	if !s.ended.IsZero() {
		at = latest(at, s.ended.Add(it.due.Delay))
	}
	if it.due.Gap > 0 && !s.due.IsZero() {
		at = latest(at, s.due.Add(it.due.Gap))
	}
	return at
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// isLate says of a turn that waits its gap after the turn before, and is due no sooner, whether it comes later than planned.
func (s *session) isLate(it *item) bool {
	return it.due.Gap > 0 && (s.busy || !s.due.IsZero() && s.due.Add(it.due.Gap).After(it.due.At))
}

// endTurn lets the next turn of a session go, or drops the later turns for a reason: a conversation does not continue past an
// answer that did not come.
func (q *queue) endTurn(it *item, over measure.DropReason, now time.Time) {
	s := it.session
	if s == nil {
		return
	}
	s.busy = false
	if over != "" {
		s.over = over
		turns := s.turns
		s.turns = nil
		for _, turn := range turns {
			switch {
			case turn.state != blocked:
			case q.closed != nil: // it is dropped when its turn comes
				turn.state = called
				q.called.push(turn)
			case !turn.expected && q.over(now):
				q.forget(turn)
			default:
				q.expect(turn)
				q.drop(turn, over)
			}
		}
		return
	}
	switch turn := s.first(); {
	case turn == nil:
	case turn.state == blocked:
		q.release(turn, now)
	case turn.late: // its instant is yet to come, but now its message can be built
		turn.late = false
		q.building.push(turn)
	}
}
