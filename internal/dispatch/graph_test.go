package dispatch

import (
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/trace"
)

// For random graphs of rows, plans, lanes, ends of requests, pauses, standstills and stops:
//
//   - A row is sent when the last of its parents has ended and the wait after it is over, and not before its own instant. In an open
//     loop it is ready, and where it names parents due, at exactly that instant.
//   - Each row is sent, dropped or filtered at most once, and none is left in the end.
//   - What comes after a failed or dropped row is never sent. Rows are dropped as session_failed only after a row that failed.
//   - Edges to the row itself, to later rows, to other sessions and to rows that are not there hold nothing up: there is no cycle.
//   - The ledger balances at every step.
//   - Each session tells its begin and its end once. Its time by part is that along its critical path, and adds up to its makespan exactly.
func TestGraphProperties(t *testing.T) {
	seeds := uint64(4000)
	if testing.Short() {
		seeds = 400
	}
	fates := map[string]int{}
	for seed := range seeds {
		g := newGraphLife(seed)
		if err := g.run(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for _, s := range g.sessions {
			fates["session "+string(s.end.Outcome)]++
			if g.d.Sessions > 0 && s.end.Outcome == measure.SessionOK {
				fates["session at once"]++
			}
		}
		for _, row := range g.rows {
			switch {
			case row.sent == 1 && len(row.parents) > 1:
				fates["joined"]++
			case row.sent == 1:
				fates["sent"]++
			case row.filtered == 1:
				fates["filtered"]++
			case row.why != "":
				fates[string(row.why)]++
			}
		}
	}
	for _, fate := range []string{"session ok", "session failed", "session cut", "session at once", "sent", "joined", "filtered", string(measure.SessionFailed), string(measure.Paused), string(measure.Shutdown), string(measure.Overload), string(measure.Missed)} {
		if fates[fate] == 0 {
			t.Errorf("no row was %s: the property was not put to the test", fate)
		}
	}
	t.Log(fates)
}

// after returns a row of session s that names its parents.
func after(number, ms int, parents ...trace.Edge) *Row {
	r := planned(number, ms, "s", 0)
	r.Due.After, r.Due.Floating = append([]trace.Edge{}, parents...), len(parents) > 0
	return r
}

// A row whose parents come before the window, or whose session was forgotten, is due at its own instant. So is one whose parents ended
// early enough, and it is measured from there.
func TestParentsThatAreNotKnown(t *testing.T) {
	q, c := newQueue(9)
	q.add(q.loops[0], after(7, 10, trace.Edge{Row: 3, Wait: time.Hour}, trace.Edge{Row: 5}))
	q.add(q.loops[0], after(8, 40, trace.Edge{Row: 7, Wait: 5 * time.Millisecond}, trace.Edge{Row: 4}))
	q.fire(at(10))
	rows, flying := takeAll(q, at(10))
	want(t, "sent", rows, []int{7})
	c.end(q, flying[0], true, at(20))
	q.fire(at(40))
	rows, flying = takeAll(q, at(40))
	want(t, "sent", rows, []int{8})
	want(t, "due", flying[0].Due.At, at(40))
	c.end(q, flying[0], true, at(50))
	for key := range q.loops[0].sessions {
		delete(q.loops[0].sessions, key)
	}
	q.add(q.loops[0], after(9, 60, trace.Edge{Row: 8, Wait: time.Hour}))
	q.fire(at(60))
	rows, _ = takeAll(q, at(60))
	want(t, "sent", rows, []int{9})
	want(t, "balance", c.balance(), error(nil))
}

// Rows that wait for their parents hold the reader back once they are too many, and are not expected meanwhile.
func TestRowsBehindTheirParentsAreBounded(t *testing.T) {
	q, c := newQueue(9)
	l := q.loops[0]
	q.add(l, after(0, 0))
	room := func(ms int) Room {
		r, _ := q.Room(l, at(ms), at(ms))
		return r
	}
	for i := 1; i <= 4; i++ {
		want(t, "room", room(i), Free)
		r := after(i, i, trace.Edge{Row: i - 1})
		r.Weight = PoolBytes / 4
		q.add(l, r)
	}
	q.fire(at(10))
	_, flying := takeAll(q, at(10))
	want(t, "room", room(10), Crowd)
	want(t, "expected", c.expected, 1)
	c.end(q, flying[0], true, at(20))
	want(t, "room", room(20), Free)
	want(t, "expected", c.expected, 2)
	want(t, "balance", c.balance(), error(nil))
}

// The message of a row is built while the last of its parents is in flight, and not before: a session holds one message or few. After a
// long wait it is built when the wait is over. With History it needs the parents' answers.
func TestMessagesOfRowsWithParents(t *testing.T) {
	for _, history := range []bool{false, true} {
		q, c := newQueue(9)
		q.History = history
		l := q.loops[0]
		rows := []*Row{
			after(0, 0), after(1, 0, trace.Edge{Row: 0}), after(2, 0, trace.Edge{Row: 0}), after(3, 0, trace.Edge{Row: 1}, trace.Edge{Row: 2}),
			after(4, 7_200_000, trace.Edge{Row: 0, Wait: 2 * time.Hour}),
		}
		for _, r := range rows {
			r.Message.Body = nil
			q.add(l, r)
		}
		want(t, "the root", q.unbuilt.n, 1)
		rows[0].Message.Body = []byte("x")
		q.fire(at(0))
		_, flying := takeAll(q, at(0))
		want(t, "ahead", q.behind.n, map[bool]int{false: 2}[history])
		c.finish(q, flying[0], measure.OK, measure.Usage{}, at(10))
		want(t, "waiting", q.waiting.n, 2)
		q.build(at(10))
		want(t, "built first", q.builder, rows[1])
	}
}

// A turn that names no parents comes after the row before it, and not after other rows of its session that are still open.
func TestTurnAfterARowThatHasEnded(t *testing.T) {
	q, c := newClosedQueue(2)
	l := q.loops[0]
	q.add(l, after(0, 0))
	q.add(l, after(1, 0))
	q.fire(at(0))
	rows, flying := takeAll(q, at(0))
	want(t, "sent", rows, []int{0, 1})
	c.end(q, flying[1], true, at(10))
	q.add(l, planned(2, 0, "s", 0))
	q.fire(at(20))
	rows, _ = takeAll(q, at(20))
	want(t, "sent beside row 0", rows, []int{2})
	want(t, "balance", c.balance(), error(nil))
}

// edgesTo returns the edge to the row before; none of the first row.
func edgesTo(number int) []trace.Edge {
	if number == 0 {
		return []trace.Edge{}
	}
	return []trace.Edge{{Row: number - 1}}
}
