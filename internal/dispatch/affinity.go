package dispatch

import (
	"bytes"

	"replayd/internal/measure"
)

// affinity is the token and the replica of the session's answer that ended last, for a router that keeps sessions on replicas.
type affinity struct {
	token   []byte // that later requests send back; empty: none
	replica string // that answered; "": not known
}

// tokenBytes bounds the tokens of a loop's sessions together. Above half of it, sessions without open rows are forgotten.
const tokenBytes = 64 << 20

// updateAffinity takes the token and the replica of an answer. An answer without a token leaves the token of an
// earlier one, unless what is kept of the answer is that there is none any more.
func (l *Loop) updateAffinity(r *Row, e Event) {
	a := &r.session.affinity
	r.Echo = e.Echo
	if (len(e.Token) > 0 || e.Echo == measure.EchoKept) && !bytes.Equal(e.Token, a.token) {
		l.tokens -= len(a.token)
		a.token = a.token[:0]
		if l.tokens+len(e.Token) <= tokenBytes {
			a.token = append(a.token, e.Token...)
			l.tokens += len(a.token)
		} else {
			r.Echo = measure.EchoUnusable
		}
	}
	if e.Replica != "" {
		r.Moved = a.replica != "" && a.replica != e.Replica
		a.replica = e.Replica
	}
}

// Token returns what the request of the row sends back to a router; empty: nothing. It is valid until the next Step.
func (r *Row) Token() []byte {
	if r.session == nil {
		return nil
	}
	return r.session.token
}
