package dispatch

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"replayd/internal/measure"
)

// answer ends a row with what its answer says of the replica.
func answer(c *tally, q *queue, r *Row, token, replica string, now time.Time) {
	c.inFlight--
	c.finished++
	q.ended(now, Event{Kind: Ended, Row: r, Outcome: measure.OK, At: now, Token: []byte(token), Replica: replica})
	q.count()
}

// A row has the token of the answer of its session that ended last, also when its message was built long before. Rows of other
// sessions, and rows without one, have none.
func TestTokenOfTheLatestAnswer(t *testing.T) {
	q, c := newQueue(9)
	for i, session := range []string{"s", "s", "s", "s", "other", ""} {
		q.add(q.loops[0], planned(i, 10*i, session, 0))
	}
	q.fire(at(0))
	_, flying := takeAll(q, at(0))
	want(t, "first", string(flying[0].Token()), "")
	for i, said := range []struct{ token, replica, next string }{
		{"a", "one", "a"}, {"", "one", "a"}, {"bb", "two", "bb"}, // an answer without a token leaves the one before
	} {
		now := at(10*i + 5)
		answer(c, q, flying[0], said.token, said.replica, now)
		want(t, fmt.Sprint("moved at ", i), flying[0].Moved, i == 2)
		q.fire(at(10*i + 10))
		_, flying = takeAll(q, at(10*i+10))
		want(t, fmt.Sprint("row after ", i), flying[0].Due.Number, i+1)
		want(t, fmt.Sprint("token after ", i), string(flying[0].Token()), said.next)
	}
	q.fire(at(50))
	_, rest := takeAll(q, at(50))
	for _, r := range rest {
		want(t, "token of another session", string(r.Token()), "")
		answer(c, q, r, "x", "one", at(55))
		want(t, "moved without a row before", r.Moved, false)
	}
	want(t, "balance", c.balance(), error(nil))
}

// An answer that leaves nothing of the token, as one that deletes the only cookie, ends it.
func TestTokenIsGivenUp(t *testing.T) {
	l := &Loop{}
	r := &Row{entry: entry{session: &session{open: 1}}}
	for _, e := range []struct {
		event Event
		next  string
	}{
		{Event{Token: []byte("a"), Echo: measure.EchoKept}, "a"},
		{Event{Echo: measure.EchoMissing}, "a"},
		{Event{Echo: measure.EchoUnusable}, "a"},
		{Event{Echo: measure.EchoKept}, ""},
	} {
		l.updateAffinity(r, e.event)
		want(t, "token after "+e.event.Echo.String(), string(r.Token()), e.next)
		want(t, "bytes", l.tokens, len(e.next))
	}
}

// Tokens of a loop's sessions are bounded together, and sessions at rest make room. The count goes back with them.
func TestTokensAreBounded(t *testing.T) {
	q, c := newQueue(1)
	l := q.loops[0]
	const size = 4 << 10
	token := bytes.Repeat([]byte("x"), size)
	for i := range tokenBytes / size {
		r := planned(i, i, fmt.Sprint(i), 0)
		q.add(l, r)
		q.fire(at(i))
		_, flying := takeAll(q, at(i))
		answer(c, q, flying[0], string(token), "", at(i))
	}
	want(t, "bytes of sessions at rest", l.tokens, tokenBytes/2)
	want(t, "sessions kept", len(l.sessions), tokenBytes/2/size)

	open := &Loop{}
	for range tokenBytes / size {
		r := &Row{entry: entry{session: &session{open: 1}}}
		open.updateAffinity(r, Event{Token: token, Echo: measure.EchoKept})
		want(t, "kept", len(r.Token()), size)
		want(t, "its echo", r.Echo, measure.EchoKept)
	}
	r := &Row{entry: entry{session: &session{open: 1}}}
	open.updateAffinity(r, Event{Token: token, Echo: measure.EchoKept})
	want(t, "beyond the bound", len(r.Token()), 0)
	want(t, "its echo", r.Echo, measure.EchoUnusable)
	want(t, "bytes", open.tokens, tokenBytes)
}
