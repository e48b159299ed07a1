package dispatch

import (
	"bytes"
	"time"

	"replayd/internal/measure"
)

// A session is a conversation in one pass of a loop. Its turns are sent one after the other.
type session struct {
	open    int                // turns that are not finished or dropped
	busy    bool               // a turn is delayed, called, waiting or flying
	over    measure.DropReason // why later turns are dropped; "": they are sent
	due     time.Time          // due instant of the latest turn that became ready; zero before the first
	ended   time.Time          // end of the last turn; zero before the first
	turns   []*Row             // turns that part has not removed, in order; some have ended
	answers [][]byte           // answers to the turns, nil for an empty one; only with History
	bytes   int                // bytes of answers
	rests   int                // how often r came to have no open turns
}

// A sessionKey identifies a conversation within a loop.
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

// enroll adds a row to its session.
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

// first returns the earliest turn that is still in the session; nil: there is none.
func (s *session) first() *Row {
	for len(s.turns) > 0 && s.turns[0].state == gone {
		s.turns = s.turns[1:]
	}
	if len(s.turns) == 0 {
		return nil
	}
	return s.turns[0]
}

// part removes a row from its session.
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

// soonest returns when a turn may be sent: at its planned instant, its delay after the end of the turn before, and its gap after the due
// instant of the turn before, whichever is latest.
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
