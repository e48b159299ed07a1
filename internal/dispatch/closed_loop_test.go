package dispatch

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
)

func newClosedQueue(lanes int) (*queue, *tally) {
	return newQueueOf(Config{Lanes: lanes, Closed: true, MaxWait: time.Millisecond}) // MaxWait has no effect here
}

// The next turn of a session takes the free lane before new sessions. While a turn is in flight, the later turns of its
// session are skipped and delay no other rows.
func TestClosedQueueConversations(t *testing.T) {
	q, c := newClosedQueue(2)
	for i, session := range []string{"s", "s", "s", "", "t", "t", ""} {
		q.add(q.loops[0], planned(i, 0, session, 0))
	}
	q.fire(at(0))
	rows, flying := takeAll(q, at(0))
	want(t, "sent first", rows, []int{0, 3})
	c.end(q, flying[1], true, at(10))
	rows, taken := takeAll(q, at(10))
	want(t, "after the single row", rows, []int{4})
	c.end(q, flying[0], true, at(20))
	rows, next := takeAll(q, at(20))
	want(t, "after the turn", rows, []int{1})
	want(t, "due", next[0].Due.At, at(20))
	c.end(q, taken[0], true, at(30))
	rows, taken = takeAll(q, at(30))
	want(t, "after the other's", rows, []int{5})
	c.end(q, taken[0], true, at(40))
	rows, _ = takeAll(q, at(40))
	want(t, "after a conversation", rows, []int{6})
	want(t, "expected", c.expected, 6)
	want(t, "waiting", c.waiting, 0)
	want(t, "balance", c.balance(), error(nil))
}

// During the delay of a turn, its lane takes another row. The turn then takes the first lane that becomes free.
func TestClosedQueueDelay(t *testing.T) {
	q, c := newClosedQueue(1)
	for i, session := range []string{"s", "s", "", ""} {
		q.add(q.loops[0], planned(i, 0, session, time.Duration(i)*15*time.Millisecond))
	}
	q.fire(at(0))
	_, flying := takeAll(q, at(0))
	c.end(q, flying[0], true, at(10))
	rows, flying := takeAll(q, at(10))
	want(t, "in the pause", rows, []int{2})
	next, _ := q.next()
	want(t, "next instant", next, at(25))
	q.fire(at(25))
	want(t, "expected before a lane is free", c.expected, 2)
	c.end(q, flying[0], true, at(30))
	rows, flying = takeAll(q, at(30))
	want(t, "when the delay is over", rows, []int{1})
	want(t, "due", flying[0].Due.At, at(30))
	c.end(q, flying[0], true, at(40))
	rows, _ = takeAll(q, at(40))
	want(t, "last", rows, []int{3})
}

// After a failed turn, each later turn of the session is dropped when it would have come due.
func TestClosedQueueFailedTurn(t *testing.T) {
	q, c := newClosedQueue(1)
	for i, session := range []string{"s", "s", "", "s"} {
		q.add(q.loops[0], planned(i, 0, session, 0))
	}
	q.fire(at(0))
	_, flying := takeAll(q, at(0))
	c.end(q, flying[0], false, at(10))
	want(t, "expected while no lane asks", c.expected, 1)
	rows, flying := takeAll(q, at(10))
	want(t, "sent", rows, []int{2})
	q.add(q.loops[0], planned(4, 0, "s", 0))
	c.end(q, flying[0], true, at(20))
	takeAll(q, at(20))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.SessionFailed: 3})
	want(t, "left", q.loops[0].open, 0)
	want(t, "balance", c.balance(), error(nil))
}

// During a pause or with an open guard no row comes due. A row that had come due and waited for its message comes due
// again afterwards.
func TestClosedQueueHeldBack(t *testing.T) {
	for name, hold := range map[string]func(q *queue, on bool, now time.Time){
		"paused": func(q *queue, on bool, now time.Time) { q.pause(on, now) },
		"guarded": func(q *queue, on bool, now time.Time) {
			q.judge(now, limits.Load{Waiting: map[bool]float64{true: 9}[on]}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			q, c := newClosedQueue(2)
			q.Breaker = limits.NewBreaker(limits.Guard{Waiting: 8})
			slow := planned(1, 0, "", 0)
			slow.Message.Body = nil
			for _, it := range []*Row{planned(0, 0, "", 0), slow, planned(2, 0, "", 0), planned(3, 0, "", 0)} {
				q.add(q.loops[0], it)
			}
			q.fire(at(0))
			_, flying := takeAll(q, at(0))
			want(t, "sent", len(flying), 1)
			hold(q, true, at(5))
			q.built(slow, Message{Body: []byte("x")})
			c.end(q, flying[0], true, at(10))
			rows, _ := takeAll(q, at(10))
			q.fire(at(20))
			want(t, "sent meanwhile", rows, []int(nil))
			want(t, "expected", c.expected, 2)
			_, more := q.next()
			want(t, "on the calendar", more, false)
			hold(q, false, at(30))
			q.fire(at(30))
			rows, flying = takeAll(q, at(30))
			want(t, "sent after", rows, []int{1, 2})
			want(t, "due", flying[0].Due.At, at(30))
			want(t, "dropped", len(c.dropped), 0)
			want(t, "balance", c.balance(), error(nil))
		})
	}
}

// With an exhausted budget no row comes due, and the budget is tried again every second. Only a row that alone exceeds
// the whole budget is dropped.
func TestClosedQueueBudget(t *testing.T) {
	q, c := newClosedQueue(1)
	q.Budget, q.Spending = limits.Budget{RequestsPerMinute: 2, PromptTokensPerHour: 100}, limits.NewSpending()
	for i, tokens := range []int{1, 200, 1, 1} {
		q.add(q.loops[0], costs(planned(i, 0, "", 0), tokens, 1))
	}
	sent := map[int]int{} // second of sending, by row
	for ms := 0; ms <= 70_000; ms += 100 {
		q.fire(at(ms))
		_, taken := takeAll(q, at(ms))
		for _, it := range taken {
			sent[it.Due.Number] = ms / 1000
			c.end(q, it, true, at(ms))
		}
	}
	want(t, "sent", sent, map[int]int{0: 0, 2: 1, 3: 61}) // the window has 60 slots and the current one
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 1})
	want(t, "larger than the whole", c.large, []int{1})
	want(t, "balance", c.balance(), error(nil))
}

// A row that gets no lane costs nothing. If the budget ends a session, its later turns are dropped as budget too.
func TestClosedQueueRefunds(t *testing.T) {
	q, c := newClosedQueue(1)
	q.Budget, q.Spending = limits.Budget{PromptTokensPerHour: 100}, limits.NewSpending()
	unbuilt := costs(planned(2, 0, "", 0), 50, 1)
	unbuilt.Message.Body = nil
	for _, it := range []*Row{costs(planned(0, 0, "s", 0), 200, 1), costs(planned(1, 0, "s", 0), 1, 1), unbuilt} {
		q.add(q.loops[0], it)
	}
	for ms := range 3000 {
		q.fire(at(ms))
	}
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 2})
	want(t, "waiting", c.waiting, 1)
	want(t, "spent", q.Spending.Spent(at(0)).Prompt, int64(50))
	q.stop()
	want(t, "spent", q.Spending.Spent(at(0)).Prompt, int64(0))
	want(t, "left", q.loops[0].open, 0)
	want(t, "balance", c.balance(), error(nil))
}

// While the error ratio keeps the guard open, one trial per second is admitted.
func TestClosedQueueTrials(t *testing.T) {
	q, c := newClosedQueue(3)
	q.Breaker = limits.NewBreaker(limits.Guard{ErrorRatio: 0.5})
	for i := range 20 {
		q.add(q.loops[0], planned(i, 0, "", 0))
	}
	for range 5 {
		q.Breaker.Health.Ended(at(0), true)
	}
	q.judge(at(0), limits.Load{}, nil)
	var sent []int
	for ms := 0; ms <= 5000; ms += 100 {
		q.fire(at(ms))
		rows, taken := takeAll(q, at(ms))
		if len(rows) > 1 {
			t.Fatalf("at %d ms: %d trials", ms, len(rows))
		}
		if next, ok := q.next(); len(rows) == 0 && (!ok || next.After(at(ms).Add(retryAfter))) {
			t.Fatalf("at %d ms: nothing wakes it for the next trial", ms)
		}
		for _, it := range taken {
			sent = append(sent, ms)
			q.Breaker.Health.Ended(at(ms), true)
			c.end(q, it, false, at(ms))
		}
	}
	want(t, "trials", sent, []int{0, 1000, 2000, 3000, 4000, 5000})
	want(t, "dropped", len(c.dropped), 0)
}

// A lane that could not connect rests for a second.
func TestClosedQueueRest(t *testing.T) {
	q, _ := newClosedQueue(1)
	q.add(q.loops[0], planned(0, 0, "", 0))
	q.add(q.loops[0], planned(1, 0, "", 0))
	q.fire(at(0))
	_, flying := takeAll(q, at(0))
	q.ended(at(1), Event{Kind: Ended, Row: flying[0], Outcome: measure.ConnectFailed, At: at(1)})
	want(t, "taken at once", q.take(at(1)), (*Row)(nil))
	next, _ := q.next()
	want(t, "next instant", next, at(1001))
	q.fire(at(1000))
	want(t, "free", q.free, 0)
	q.fire(at(1001))
	rows, _ := takeAll(q, at(1001))
	want(t, "taken then", rows, []int{1})
}

// The number and the bytes of sessions at rest are bounded: the session that has rested longest is forgotten first.
func TestRestingSessionsAreBounded(t *testing.T) {
	q, c := newClosedQueue(1)
	l := q.loops[0]
	turn := func(session string, bytes int) {
		q.add(l, planned(0, 0, session, 0))
		_, taken := takeAll(q, at(0))
		taken[0].session.bytes = bytes
		c.end(q, taken[0], true, at(0))
	}
	for i := range maxIdleSessions + 10 {
		turn(fmt.Sprint("s", i), 0)
	}
	turn("s10", 0) // rests anew
	turn("t", 0)
	want(t, "sessions", len(l.sessions), maxIdleSessions)
	for name, there := range map[string]bool{"s9": false, "s10": true, "s11": false, "s12": true} {
		want(t, name, l.sessions[sessionKey{name: name}] != nil, there)
	}
	for range 3 { // four sessions with twice the bytes of answers that are kept
		for i := range 4 {
			turn(fmt.Sprint("u", i), maxIdleBytes/2)
		}
	}
	want(t, "sessions with many answers", len(l.sessions), 2)
	want(t, "bytes of their answers", l.idleBytes, maxIdleBytes)
}

// For random rows, failures, lanes, engine loads, budgets and times of a stop or an end:
//
//   - The ledger balances at every step.
//   - Turns never overlap, keep their order, and are sent only after their delays and gaps.
//   - All lanes are busy while there are rows, unless a pause, a guard or a budget holds rows back.
//   - No row passes the guard or the budget.
//   - Rows are dropped only by a stop, a failed turn or a budget that they can never fit.
//   - No row is left in the end.
func TestClosedQueueProperties(t *testing.T) {
	all, busy := map[measure.DropReason]int{}, 0
	seeds := uint64(300)
	if testing.Short() {
		seeds = 60
	}
	for seed := range seeds {
		rnd := rand.New(rand.NewPCG(seed, 2))
		lanes := 1 + rnd.IntN(4)
		q, c := newClosedQueue(lanes)
		w := newWeather(rnd, q)
		row, n := 0, 1+rnd.IntN(60)
		ends := -1
		switch rnd.IntN(6) {
		case 0:
			q.ends = at(1 + rnd.IntN(400))
			ends = int(q.ends.Sub(epoch).Milliseconds())
		case 1:
			q.closed.opens = at(rnd.IntN(100))
		}
		stopAt := -1
		if rnd.IntN(4) == 0 {
			stopAt = rnd.IntN(300)
		}
		flying, last := []*Row{}, map[string]int{}
		began, ended := map[string]time.Time{}, map[string]time.Time{} // by session, of its last turn
		stopped := false
		for now := 0; ; now++ {
			if now > 10_000_000 {
				t.Fatalf("seed %d: no end", seed)
			}
			for row < n && !q.full() && !stopped && rnd.IntN(3) > 0 {
				session := ""
				if k := rnd.IntN(6); k < 3 {
					session = fmt.Sprint("s", k)
				}
				it := planned(row, 0, session, time.Duration(rnd.IntN(3)*rnd.IntN(20))*time.Millisecond)
				it.Due.Gap = time.Duration(rnd.IntN(3)*rnd.IntN(20)) * time.Millisecond
				it.Seq = int64(row)
				q.add(q.loops[0], it)
				row++
			}
			if rnd.IntN(200) == 0 {
				q.pause(!q.paused, at(now))
			}
			if rnd.IntN(500) == 0 { // the process is stopped for a while, which must have no effect
				now += rnd.IntN(5000)
			}
			if now >= stopAt && stopAt >= 0 && !stopped || ends >= 0 && now >= ends && !stopped {
				if stopped = true; stopAt >= 0 {
					q.stop()
				} else {
					q.forgetUndue()
				}
			}
			w.change(q, at(now))
			q.fire(at(now))
			_, taken := takeAll(q, at(now))
			if err := w.judgeClosed(q, taken, at(now)); err != nil {
				t.Fatalf("seed %d at %d ms: %v", seed, now, err)
			}
			for _, it := range taken {
				if !it.Due.At.Equal(at(now)) || !it.Ready.Equal(at(now)) {
					t.Fatalf("seed %d at %d ms: row %d was due at %v, ready at %v", seed, now, it.Due.Number, it.Due.At, it.Ready)
				}
				s := it.Due.Session
				if s == "" {
					continue
				}
				if m, sent := last[s]; sent && m > it.Due.Number {
					t.Fatalf("seed %d: turn %d of %s sent after turn %d", seed, it.Due.Number, s, m)
				}
				if b, sent := began[s]; sent && (at(now).Before(ended[s].Add(it.Due.Delay)) || at(now).Before(b.Add(it.Due.Gap))) {
					t.Fatalf("seed %d at %d ms: turn %d of %s went before its delay of %v and its gap of %v were over", seed, now, it.Due.Number, s, it.Due.Delay, it.Due.Gap)
				}
				last[s], began[s] = it.Due.Number, it.Due.At
				if slices.ContainsFunc(flying, func(o *Row) bool { return o.Due.Session == s }) {
					t.Fatalf("seed %d: two turns of %s at once", seed, s)
				}
			}
			flying = append(flying, taken...)
			if len(flying) > lanes {
				t.Fatalf("seed %d: %d in flight on %d lanes", seed, len(flying), lanes)
			}
			held := q.paused || q.Breaker.State() != limits.Closed || q.Spending != nil || q.closed.opens.After(at(now))
			if !held && len(flying) < lanes && q.upcoming.n+q.called.n > 0 {
				t.Fatalf("seed %d at %d ms: %d in flight on %d lanes while there are rows", seed, now, len(flying), lanes)
			}
			if len(flying) == lanes {
				busy++
			}
			for i := 0; i < len(flying); {
				if rnd.IntN(20) > 0 {
					i++
					continue
				}
				w.end(q, c, flying[i], rnd.IntN(10) > 0, at(now))
				ended[flying[i].Due.Session] = at(now)
				flying = slices.Delete(flying, i, i+1)
			}
			if err := c.balance(); err != nil {
				t.Fatalf("seed %d at %d ms: %v", seed, now, err)
			}
			if q.loops[0].open == 0 && (row == n || stopped) {
				break
			}
		}
		if left := c.waiting + c.inFlight + q.weight + q.delayed.Len() + q.called.n; left != 0 {
			t.Fatalf("seed %d: %d left", seed, left)
		}
		if !stopped && c.expected != n {
			t.Fatalf("seed %d: want %d expected, got %d", seed, n, c.expected)
		}
		for reason, n := range c.dropped {
			all[reason] += n
		}
	}
	if busy == 0 {
		t.Error("the lanes were never all busy")
	}
	for reason, n := range all {
		if reason != measure.SessionFailed && reason != measure.Shutdown {
			t.Errorf("%d dropped for %s", n, reason)
		}
	}
	if all[measure.SessionFailed] == 0 {
		t.Error("no session ever failed: the property was not put to the test")
	}
}
