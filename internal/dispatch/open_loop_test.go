package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
)

func TestQueueKeepsDueOrder(t *testing.T) {
	q, c := newQueue(10)
	for i, ms := range []int{0, 0, 5, 5, 9} {
		q.add(q.loops[0], planned(i, ms, "", 0))
	}
	q.fire(at(5))
	rows, _ := takeAll(q, at(5))
	want(t, "rows sent by 5 ms", rows, []int{0, 1, 2, 3})
	next, _ := q.next()
	want(t, "next instant", next, at(9))
	want(t, "expected", c.expected, 4)
}

func TestQueueSessionTurns(t *testing.T) {
	q, c := newQueue(10)
	q.add(q.loops[0], planned(0, 0, "s", 0))
	q.add(q.loops[0], planned(1, 10, "s", 0))                   // due while the first is in flight
	q.add(q.loops[0], planned(2, 20, "s", 7*time.Millisecond))  // waits 7 ms after the end of the second
	q.add(q.loops[0], planned(3, 500, "s", 7*time.Millisecond)) // planned later than that
	q.fire(at(20))
	_, first := takeAll(q, at(20))
	want(t, "turns in flight", len(first), 1)
	want(t, "waiting", c.waiting, 2)

	c.end(q, first[0], true, at(100))
	rows, second := takeAll(q, at(100))
	want(t, "sent at the end of the turn before", rows, []int{1})
	want(t, "ready", second[0].Ready, at(100))

	c.end(q, second[0], true, at(200))
	rows, _ = takeAll(q, at(200))
	want(t, "sent before the delay is over", len(rows), 0)
	next, _ := q.next()
	want(t, "next instant", next, at(207))
	q.fire(at(207))
	_, third := takeAll(q, at(207))
	want(t, "ready after the delay", third[0].Ready, at(207))
	c.end(q, third[0], true, at(300))

	q.fire(at(500))
	_, fourth := takeAll(q, at(500))
	want(t, "ready at the planned instant", fourth[0].Ready, at(500))
	want(t, "balance", c.balance(), error(nil))
}

func TestQueueFailedTurnEndsItsSession(t *testing.T) {
	q, c := newQueue(10)
	for i := range 3 {
		q.add(q.loops[0], planned(i, i*10, "s", 0))
	}
	q.fire(at(10))
	_, first := takeAll(q, at(10))
	c.end(q, first[0], false, at(15))
	want(t, "dropped with the failure", c.dropped, map[measure.DropReason]int{measure.SessionFailed: 1})
	q.fire(at(20))
	want(t, "dropped at its own instant", c.dropped, map[measure.DropReason]int{measure.SessionFailed: 2})
	want(t, "balance", c.balance(), error(nil))
}

func TestQueueOverload(t *testing.T) {
	q, c := newQueue(1)
	q.DropLate = true
	q.add(q.loops[0], planned(0, 0, "", 0))
	q.add(q.loops[0], planned(1, 0, "", 0))
	q.fire(at(0))
	rows, _ := takeAll(q, at(0))
	want(t, "sent", rows, []int{0})
	want(t, "dropped at once", c.dropped[measure.Overload], 1)

	q, c = newQueue(0)
	q.MaxWait = 100 * time.Millisecond
	q.add(q.loops[0], planned(0, 0, "", 0))
	q.fire(at(0))
	next, _ := q.next()
	want(t, "next instant", next, at(100))
	q.fire(at(99))
	want(t, "dropped before max_wait", c.dropped[measure.Overload], 0)
	q.fire(at(100))
	want(t, "dropped at max_wait", c.dropped[measure.Overload], 1)
	want(t, "balance", c.balance(), error(nil))
}

func TestQueueMissed(t *testing.T) {
	q, c := newQueue(10)
	q.add(q.loops[0], planned(0, 0, "", 0))
	q.add(q.loops[0], planned(1, 500, "", 0))
	q.add(q.loops[0], planned(2, 1001, "", 0))
	q.add(q.loops[0], planned(3, 1002, "", 0))
	q.fire(at(1001)) // the pacer is more than 1 s late for the first row: no row due by now is sent
	rows, _ := takeAll(q, at(1001))
	want(t, "sent", rows, []int(nil))
	want(t, "missed", c.dropped, map[measure.DropReason]int{measure.Missed: 3})
	q.fire(at(1002))
	rows, _ = takeAll(q, at(1002))
	want(t, "sent on time", rows, []int{3})
}

// A time in which the process did not run is detected once. Rows of that time that are read later are missed too. Rows
// that came due since keep waiting.
func TestQueueMissedOnce(t *testing.T) {
	q, c := newQueue(0)
	q.add(q.loops[0], planned(0, 0, "", 0))
	q.miss(at(20_000)) // the clock was set, and the pacer has not fired yet
	q.fire(at(20_001))
	want(t, "rejoined", q.rejoined, at(20_000))
	q.add(q.loops[0], planned(1, 20_010, "", 0))
	q.fire(at(20_010))
	q.add(q.loops[0], planned(2, 15_000, "", 0))
	q.fire(at(20_020))
	want(t, "rejoined", q.rejoined, at(20_000))
	want(t, "waiting", q.waiting.n, 1)
	want(t, "missed", c.dropped, map[measure.DropReason]int{measure.Missed: 2})
}

// After a stop of the process, a lane that is freed before the pacer runs takes neither a waiting row nor the next turn
// of its session, although the answer ended long before.
func TestQueueMissedSeenByALane(t *testing.T) {
	q, c := newQueue(1)
	q.add(q.loops[0], planned(0, 0, "s", 0))
	q.add(q.loops[0], planned(1, 10, "s", 0))
	q.add(q.loops[0], planned(2, 10, "", 0))
	q.add(q.loops[0], planned(3, 5000, "", 0))
	q.fire(at(10))
	_, first := takeAll(q, at(10))
	c.inFlight--
	c.finished++
	q.runs(at(20_000))
	q.ended(at(20_000), Event{Kind: Ended, Row: first[0], Outcome: measure.OK, At: at(100)}) // kernel timestamp 100 ms
	q.count()
	want(t, "taken", q.take(at(20_000)), (*Row)(nil))
	q.fire(at(20_000))
	want(t, "missed", c.dropped, map[measure.DropReason]int{measure.Missed: 3})
	if err := c.balance(); err != nil {
		t.Error(err)
	}
}

func TestQueuePause(t *testing.T) {
	q, c := newQueue(1)
	for i, session := range []string{"", "", "s", "s", "t", ""} { // due at 0, 10, 20, 30, 40, 50 ms
		q.add(q.loops[0], planned(i, 10*i, session, 0))
	}
	q.fire(at(10))
	rows, flying := takeAll(q, at(10))
	want(t, "sent before", rows, []int{0})
	q.pause(true, at(15)) // row 1 waits
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Paused: 1})
	c.end(q, flying[0], true, at(16))
	q.fire(at(20))
	q.pause(false, at(25))
	q.fire(at(50))
	rows, _ = takeAll(q, at(50))
	want(t, "sent after", rows, []int{4})
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Paused: 3}) // includes the session's next turn
}

func TestQueueWaitsForTheMessage(t *testing.T) {
	q, _ := newQueue(1)
	it := planned(0, 0, "", 0)
	it.Message.Body = nil
	q.add(q.loops[0], it)
	q.fire(at(0))
	want(t, "taken without a message", q.take(at(0)), (*Row)(nil))
	q.built(it, Message{Body: []byte("x")})
	want(t, "taken with it", q.take(at(1)), it)
}

// For random plans, failures, lanes, engine loads, budgets and times of a stop: the ledger balances at every step,
// turns of a session never overlap and keep their order, no row passes the guard or the budget, and no row is left in
// the end.
func TestQueueProperties(t *testing.T) {
	all := map[measure.DropReason]int{}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		q, c := newQueue(1 + rnd.IntN(4))
		q.DropLate = rnd.IntN(3) == 0
		if rnd.IntN(2) == 0 {
			q.MaxWait = time.Duration(1+rnd.IntN(50)) * time.Millisecond
		}
		w := newWeather(rnd, q)
		ms, rows := 0, 1+rnd.IntN(60)
		for i := range rows {
			ms += rnd.IntN(3) * rnd.IntN(30)
			session := ""
			if k := rnd.IntN(6); k < 3 {
				session = fmt.Sprint("s", k)
			}
			q.add(q.loops[0], planned(i, ms, session, time.Duration(rnd.IntN(3)*rnd.IntN(20))*time.Millisecond))
		}
		stopAt := -1
		if rnd.IntN(4) == 0 {
			stopAt = rnd.IntN(ms + 1)
		}
		flying, last, stalled := []*Row{}, map[string]int{}, at(-1)
		for now := 0; now < ms+100_000; now++ {
			switch next, ok := q.next(); {
			case rnd.IntN(200) == 0:
				q.pause(!q.paused, at(now))
			case rnd.IntN(500) == 0 && ok: // the process is stopped for a while
				now += 1001 + rnd.IntN(500) + max(0, int(next.Sub(at(now)).Milliseconds()))
				stalled = at(now)
				if q.take(stalled) != nil {
					t.Fatalf("seed %d at %d ms: a lane took what waited while the process did not run", seed, now)
				}
			}
			if now == stopAt {
				q.stop()
			}
			w.change(q, at(now))
			q.fire(at(now))
			_, taken := takeAll(q, at(now))
			if err := w.judge(q, taken, at(now)); err != nil {
				t.Fatalf("seed %d at %d ms: %v", seed, now, err)
			}
			for _, it := range taken {
				if !it.Ready.After(stalled) {
					t.Fatalf("seed %d at %d ms: row %d sent late", seed, now, it.Due.Number)
				}
				s := it.Due.Session
				if s == "" {
					continue
				}
				if n, sent := last[s]; sent && n > it.Due.Number {
					t.Fatalf("seed %d: turn %d of %s sent after turn %d", seed, it.Due.Number, s, n)
				}
				last[s] = it.Due.Number
				if it.Ready.Before(it.Due.At) || slices.ContainsFunc(flying, func(o *Row) bool { return o.Due.Session == s }) {
					t.Fatalf("seed %d: turn %d of %s sent too early", seed, it.Due.Number, s)
				}
			}
			flying = append(flying, taken...)
			for i := 0; i < len(flying); {
				if rnd.IntN(20) > 0 {
					i++
					continue
				}
				w.end(q, c, flying[i], rnd.IntN(10) > 0, at(now))
				flying = slices.Delete(flying, i, i+1)
			}
			if err := c.balance(); err != nil {
				t.Fatalf("seed %d at %d ms: %v", seed, now, err)
			}
			if _, more := q.next(); !more && len(flying) == 0 && q.waiting.n == 0 {
				break
			}
		}
		if left := c.waiting + c.inFlight + q.loops[0].open; left != 0 {
			t.Fatalf("seed %d: %d left", seed, left)
		}
		if stopAt < 0 && c.expected != rows {
			t.Fatalf("seed %d: want %d expected, got %d", seed, rows, c.expected)
		}
		if err := trialLeft(q.Breaker); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for reason, n := range c.dropped {
			all[reason] += n
		}
	}
	for _, reason := range []measure.DropReason{measure.Overload, measure.Guarded, measure.Budget, measure.Paused, measure.Missed, measure.Shutdown} {
		if all[reason] == 0 {
			t.Errorf("nothing was ever dropped for %s: the property was not put to the test", reason)
		}
	}
}

// Rows that the reader brings late are late, not missed: of a burst there are more than are read ahead. The reader goes on as soon as half
// of those have come due.
func TestRowsThatAreReadLate(t *testing.T) {
	const rows = 3 * aheadRows
	d := New(Config{Lanes: 1})
	verbs := map[Verb]int{}
	step := func(now int, e Event) {
		for _, a := range d.Step(Clock{at(now), at(now)}, e) {
			verbs[a.Kind]++
		}
	}
	step(0, Event{Kind: LoopBegun, Plan: schedule.Loop{Start: epoch}})
	read, now := 0, 0
	for ; read < rows; now += 10 {
		for room := Free; room == Free && read < rows; read++ {
			if room, _ = d.Room(d.Loop(0), at(1000), at(now)); room != Free {
				break
			}
			step(now, Event{Kind: RowRead, Loop: d.Loop(0), Row: planned(read, 1000, "", 0)})
		}
		if read == aheadRows {
			want(t, "told to read on before", verbs[ReadOn], 0)
			step(1000, Event{Kind: Tick})
			want(t, "told to read on when the rows have come due", verbs[ReadOn], 1)
			now = 2500 // the reader is slow, and the process runs meanwhile
			for ms := 1100; ms < now; ms += 500 {
				step(ms, Event{Kind: Poll})
			}
		}
	}
	want(t, "due", verbs[Expect], rows)
	want(t, "dropped", verbs[Drop], 0)
	want(t, "rejoined", verbs[Rejoined], 0)
	step(now, Event{Kind: Poll})
	step(60_000, Event{Kind: RowRead, Loop: d.Loop(0), Row: planned(read, 50_000, "", 0)}) // after a standstill
	want(t, "missed, with those that wait", verbs[Drop] > rows/2, true)
}

// A row may be due when a stop comes, and not be noticed yet. The stop counts the row as dropped. A row that is due at the
// instant of the stop was never expected.
func TestStopCountsWhatWasDue(t *testing.T) {
	s := &setting{Dispatcher: New(Config{Lanes: 1})}
	l := s.begin(0, false)
	for _, at := range []time.Duration{0, 5 * time.Millisecond, 10 * time.Millisecond} {
		s.read(l, at)
	}
	s.own = 10 * time.Millisecond
	kinds := map[Verb]int{}
	for _, a := range s.step(Event{Kind: Stop}) {
		kinds[a.Kind]++
	}
	want(t, "expected then", kinds[Expect], 1)
	want(t, "dropped", kinds[Drop], 2)
}
