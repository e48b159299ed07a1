package dispatch

import (
	"bytes"
	"time"

	"replayd/internal/measure"
)

// A session is a conversation in one loop, and in one pass of r: its turns go out one after the other.
type session struct {
	open    int                // turns not gone
	busy    bool               // a turn is delayed, called, waiting or flying
	over    measure.DropReason // why later turns are not sent; "": they are
	due     time.Time          // of the latest turn that became ready; zero before the first
	ended   time.Time          // end of the last turn; zero before the first
	turns   []*Row             // those that have not been let go, in order, some of them gone
	answers [][]byte           // to its turns, nil for an empty one; only where they are carried
	bytes   int                // of answers
	rests   int                // how often r came to have no open turns
}

// A sessionKey tells the conversations of a loop apart.
type sessionKey struct {
	name string
	pass int64
}

// A rest is a session as r stood when r came to have no open turns.
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

// enroll makes a row a turn of its session.
func (d *Dispatcher) enroll(r *Row) {
	if r.Due.Session == "" {
		return
	}
	key := sessionKey{r.Due.Session, r.Due.Pass}
	s := r.loop.sessions[key]
	if s == nil {
		s = &session{}
		r.loop.sessions[key] = s
	}
	if s.open == 0 && s.rests > 0 {
		r.loop.atRest -= s.bytes
	}
	r.session = s
	r.follows = s.open > 0
	r.late = r.follows && d.History
	s.open++
	if s.over == "" {
		s.turns = append(s.turns, r)
	}
}

// first is the earliest turn that has not been let go; nil when there is none.
func (s *session) first() *Row {
	for len(s.turns) > 0 && s.turns[0].state == gone {
		s.turns = s.turns[1:]
	}
	if len(s.turns) == 0 {
		return nil
	}
	return s.turns[0]
}

// part ends a row's being a turn of its session.
func (d *Dispatcher) part(r *Row) {
	s := r.session
	if s == nil {
		return
	}
	if s.open--; s.open > 0 {
		return
	}
	s.turns = nil
	s.rests++
	l := r.loop
	l.resting = append(l.resting, rest{sessionKey{r.Due.Session, r.Due.Pass}, s, s.rests})
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

// soonest is when a turn may go: by the plan, its delay after the end of the turn before, and its gap after that one's instant.
func (s *session) soonest(r *Row) time.Time {
	at := r.Ready
	if !s.ended.IsZero() {
		at = latest(at, s.ended.Add(r.Due.Delay))
	}
	if r.Due.Gap > 0 && !s.due.IsZero() {
		at = latest(at, s.due.Add(r.Due.Gap))
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
func (s *session) isLate(r *Row) bool {
	return r.Due.Gap > 0 && (s.busy || !s.due.IsZero() && s.due.Add(r.Due.Gap).After(r.Due.At))
}

// carriedBytes bounds the answers kept for one conversation. Beyond it, later turns have the history of their own rows.
const carriedBytes = 16 << 20

// keep stores the answer to a turn for the later turns; a cancelled answer as far as it came. An empty or too long answer is not
// carried: the row's own text stays.
func (s *session) keep(text []byte) {
	var answer []byte
	if len(text) > 0 && s.bytes+len(text) <= carriedBytes {
		answer = bytes.Clone(text)
	}
	s.bytes += len(answer)
	s.answers = append(s.answers, answer)
}
