package dispatch

import (
	"fmt"
	"testing"
	"time"

	"replayd/internal/measure"
)

// A late turn with a gap is not due during a pause or at a stop.
func TestGapOfALateTurn(t *testing.T) {
	gap := func(i int) *Row {
		it := planned(i, 10*i, "u", 0)
		it.Due.Gap = 10 * time.Millisecond
		return it
	}
	q, c := newQueue(9)
	for i := range 3 {
		q.add(q.loops[0], gap(i))
	}
	q.fire(at(0))
	_, flying := takeAll(q, at(0))
	q.fire(at(20))
	want(t, "expected", c.expected, 1)
	q.pause(true, at(21))
	q.pause(false, at(24))
	c.end(q, flying[0], true, at(25))
	_, flying = takeAll(q, at(25))
	want(t, "due", flying[0].Due.At, at(25))
	c.end(q, flying[0], true, at(26))
	next, _ := q.next()
	want(t, "next", next, at(35))
	q.stop()
	want(t, "dropped", len(c.dropped), 0)
	want(t, "left", q.loops[0].open, 0)
	want(t, "balance", c.balance(), error(nil))

	q, c = newQueue(9)
	for i := range 3 {
		q.add(q.loops[0], gap(i))
	}
	q.fire(at(0))
	_, flying = takeAll(q, at(0))
	q.fire(at(20))
	c.end(q, flying[0], false, at(25))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.SessionFailed: 2})
	want(t, "balance", c.balance(), error(nil))
}

// A row of the plan goes before a turn that comes due at the same instant, so both sides of a comparison have one order.
func TestTurnAndRowAtOneInstant(t *testing.T) {
	q, c := newQueue(1)
	for _, r := range []*Row{planned(0, 0, "s", 0), planned(1, 0, "s", 20*time.Millisecond), planned(2, 20, "", 0)} {
		q.add(q.loops[0], r)
	}
	q.fire(at(0))
	_, flying := takeAll(q, at(0))
	c.end(q, flying[0], true, at(0))
	q.fire(at(20))
	rows, flying := takeAll(q, at(20))
	want(t, "first", rows, []int{2})
	c.end(q, flying[0], true, at(21))
	rows, _ = takeAll(q, at(21))
	want(t, "second", rows, []int{1})
}

// A turn whose due time falls at the end does not come due, whether the end of the turn before or the end of the plan
// is seen first.
func TestGapAtTheVeryEnd(t *testing.T) {
	q, c := newQueue(9)
	q.ends = at(25)
	for i := range 3 {
		it := planned(i, 10*i, "u", 0)
		it.Due.Gap = time.Millisecond
		q.add(q.loops[0], it)
	}
	q.fire(at(20))
	_, flying := takeAll(q, at(20))
	c.end(q, flying[0], true, at(25))
	want(t, "expected", c.expected, 1)
	q.forgetUndue()
	want(t, "left", q.loops[0].open, 0)
	want(t, "balance", c.balance(), error(nil))
}

// With History, the message of a turn cannot be built before the answer of the turn before has come. Meanwhile other
// rows are sent.
func TestCarriedTurnsAreBuiltLate(t *testing.T) {
	q, c := newQueue(2)
	q.History = true
	for i, session := range []string{"s", "s", ""} {
		it := planned(i, 10*i, session, 0)
		it.Message.Body = nil
		q.add(q.loops[0], it)
	}
	want(t, "to be built ahead", q.unbuilt.n+q.behind.n, 2)
	first := q.unbuilt.first
	first.unlink(toBuild)
	q.built(first, Message{Body: []byte("x")})
	q.fire(at(0))
	_, flying := takeAll(q, at(0))
	c.end(q, flying[0], true, at(5))
	want(t, "to be built ahead", q.unbuilt.n, 2) // the answer is known, and the turn is not due yet
	q.fire(at(20))
	want(t, "waiting", q.waiting.n, 2)
	wait := q.waiting.rows()
	q.built(wait[1], Message{Body: []byte("x")})
	want(t, "passed over", q.take(at(20)), (*Row)(nil)) // rows that can be built ahead keep their order
	wait[0].late = true
	wait[0].unlink(inLine) // as a row that was late when it began to wait
	rows, _ := takeAll(q, at(20))
	want(t, "sent", rows, []int{2})
}

// Answers that are too long or empty are not carried.
func TestWhatIsCarried(t *testing.T) {
	s, first := &session{}, &turn{}
	second := &turn{before: first}
	third, fork := &turn{before: second}, &turn{before: second}
	s.storeAnswer(first, []byte("a"))
	s.storeAnswer(second, nil)
	s.storeAnswer(fork, []byte("b"))
	s.bytes = carriedBytes
	s.storeAnswer(third, []byte("c"))
	want(t, "answers", fmt.Sprintf("%q", third.answers), `["a" "" ""]`)
	want(t, "answers of a fork", fmt.Sprintf("%q", fork.answers), `["a" "" "b"]`)
}
