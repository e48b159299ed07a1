package dispatch

import (
	"fmt"
	"testing"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// A guard that is open only because of errors admits single trials: one in flight at a time and one per second.
func TestTrials(t *testing.T) {
	q, c := newQueue(9)
	q.Breaker = limits.NewBreaker(limits.Guard{Waiting: 8, ErrorRatio: 0.5})
	for range 5 {
		q.Breaker.Health.Ended(at(0), true)
	}
	for i := range 60 {
		q.add(q.loops[0], planned(i, 100*i, "", 0))
	}
	var flying []*Row
	play := func(ms int, l limits.Load, sent ...int) {
		t.Helper()
		q.judge(at(ms), l, nil)
		q.fire(at(ms))
		rows, taken := takeAll(q, at(ms))
		flying = append(flying, taken...)
		want(t, fmt.Sprint("sent at ", ms, " ms"), rows, sent)
	}
	play(0, limits.Load{}, 0)
	for ms := 100; ms < 1500; ms += 100 {
		play(ms, limits.Load{}) // the first trial is in flight
	}
	c.end(q, flying[0], false, at(1450))
	play(1500, limits.Load{}, 15)
	c.end(q, flying[1], true, at(1510))
	for ms := 1600; ms < 2500; ms += 100 {
		play(ms, limits.Load{}) // less than 1 s after the second trial
	}
	play(2500, limits.Load{Waiting: 8}) // another limit is reached too
	play(2600, limits.Load{}, 26)
	q.free = 0
	c.end(q, flying[2], true, at(2700))
	q.free = 0
	play(3600, limits.Load{})
	want(t, "trials that wait for a lane", q.waiting.n, 1)
	play(3700, limits.Load{Waiting: 8})
	want(t, "trials that wait for a lane", q.waiting.n, 0)
	q.free = 9
	play(3800, limits.Load{}, 38) // a row that was never sent does not count as a trial
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 39 - 4})
	want(t, "balance", c.balance(), error(nil))
}

// A row whose message cannot be built is no trial. The next row becomes the trial.
func TestTrialWithoutAMessage(t *testing.T) {
	q, c := newQueue(9)
	q.Breaker = limits.NewBreaker(limits.Guard{ErrorRatio: 0.5})
	for range 5 {
		q.Breaker.Health.Ended(at(0), true)
	}
	q.judge(at(0), limits.Load{}, nil)
	for i := range 2 {
		q.add(q.loops[0], planned(i, 100*i, "", 0))
	}
	q.upcoming.first.Message.Body, q.upcoming.first.Message.Err = nil, errScrape
	q.fire(at(0))
	rows, _ := takeAll(q, at(0))
	want(t, "sent without a message", rows, []int(nil))
	q.fire(at(100))
	rows, _ = takeAll(q, at(100))
	want(t, "sent", rows, []int{1})
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Invalid: 1})
	want(t, "balance", c.balance(), error(nil))
}

func TestQueueGuardAndSessions(t *testing.T) {
	q, c := newQueue(1)
	q.Breaker = limits.NewBreaker(limits.Guard{Waiting: 1})
	for i, session := range []string{"", "", "s", "s", "t", "t"} { // due at 0, 10, 20, 30, 40, 50 ms
		q.add(q.loops[0], planned(i, 10*i, session, 0))
	}
	q.fire(at(10))
	rows, flying := takeAll(q, at(10))
	want(t, "sent before", rows, []int{0})
	q.judge(at(15), limits.Load{Waiting: 1}, nil) // row 1 waits
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 1})
	q.pause(true, at(16))
	q.pause(false, at(17))
	c.end(q, flying[0], true, at(18))
	q.fire(at(20)) // the first turn of s
	q.judge(at(25), limits.Load{}, nil)
	q.fire(at(40))
	rows, flying = takeAll(q, at(40))
	want(t, "sent after", rows, []int{4})
	q.fire(at(50)) // the second turn of t is due, and blocked
	q.judge(at(55), limits.Load{Waiting: 1}, nil)
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 3})
	c.end(q, flying[0], true, at(60)) // the turn is unblocked, and the guard is open
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 4})

	q.judge(at(65), limits.Load{}, nil)
	q.add(q.loops[0], planned(6, 70, "u", 0))
	q.add(q.loops[0], planned(7, 80, "u", 0))
	q.fire(at(70))
	_, flying = takeAll(q, at(70))
	q.judge(at(75), limits.Load{Waiting: 1}, nil)
	q.fire(at(80)) // as in a pause, a blocked turn falls under the guard at its own due time
	q.judge(at(85), limits.Load{}, nil)
	c.end(q, flying[0], true, at(90))
	rows, _ = takeAll(q, at(90))
	want(t, "sent after", rows, []int(nil))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 5})
	want(t, "balance", c.balance(), error(nil))
}

// A row that is due in a pause is dropped as paused, even if the guard is open.
func TestPauseInGuard(t *testing.T) {
	q, c := newQueue(1)
	q.Breaker = limits.NewBreaker(limits.Guard{Waiting: 1})
	for i := range 4 {
		q.add(q.loops[0], planned(i, 10*i, "", 0))
	}
	q.judge(at(0), limits.Load{Waiting: 1}, nil)
	q.fire(at(0))
	q.pause(true, at(5))
	q.fire(at(20))
	q.pause(false, at(25))
	q.fire(at(30))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 2, measure.Paused: 2})
}

// Steps for a row do not allocate, whether it is sent, held back or over the budget.
func TestStepAllocatesNothing(t *testing.T) {
	d := New(Config{
		Lanes: 9, Ahead: 1 << 20, Spending: limits.NewSpending(),
		Breaker: limits.NewBreaker(limits.Guard{Waiting: 8, KVCacheUsage: 0.9, ErrorRatio: 0.5, ResumeAfter: time.Second}),
		Budget:  limits.Budget{RequestsPerMinute: 10, PromptTokensPerHour: 1000, OutputTokensPerDay: 1000},
	})
	d.Step(Clock{epoch, epoch}, Event{Kind: LoopBegun, Plan: schedule.Loop{Start: epoch}})
	row, ms, order := new(Row), 0, uint64(0)
	message := Message{Body: []byte("x")}
	verbs := map[Verb]int{}
	step := func(e Event) (sent bool) {
		order++
		e.Seen = Reading{Order: order, Load: limits.Load{Waiting: float64(ms / 1000 % 9)}, Err: []error{nil, errScrape}[ms/4000%2]}
		for _, a := range d.Step(Clock{at(ms), at(ms)}, e) {
			verbs[a.Kind]++
			sent = sent || a.Kind == Send
		}
		return sent
	}
	if n := testing.AllocsPerRun(5000, func() {
		*row = Row{Due: schedule.Due{At: at(ms + 40), Loop: schedule.Loop{Start: epoch}}}
		row.Due.InputTokens, row.Due.OutputTokens = 4, ms/40%2 // some rows have no output length
		step(Event{Kind: RowRead, Loop: d.Loop(0), Row: row})
		step(Event{Kind: Built, Row: row, Message: message})
		ms += 40
		if step(Event{Kind: Tick}) {
			step(Event{Kind: Written, Row: row})
			step(Event{Kind: Ended, Row: row, Outcome: measure.OK, At: at(ms), Usage: measure.Usage{Prompt: 5, Output: 3, Source: measure.UsageFinal}})
		}
	}); n != 0 {
		t.Errorf("%v allocations a row, want none", n)
	}
	if verbs[Send] == 0 || verbs[Drop] == 0 || verbs[GuardMoved] == 0 {
		t.Errorf("want rows that are sent and held back, got %v", verbs)
	}
}

// Requests that replayd ends itself say nothing of the target, so they do not close the guard.
func TestOwnEndsAreNoFailures(t *testing.T) {
	for o, wantState := range map[measure.Outcome]limits.State{
		measure.HTTP5xx: limits.HalfOpen, measure.Cancelled: limits.Closed, measure.Aborted: limits.Closed,
	} {
		q, c := newQueue(9)
		q.Breaker = limits.NewBreaker(limits.Guard{ErrorRatio: 0.5})
		for i := range 9 {
			q.add(q.loops[0], planned(i, 0, "", 0))
		}
		q.fire(at(0))
		_, flying := takeAll(q, at(0))
		for _, r := range flying {
			c.finish(q, r, o, measure.Usage{}, at(1))
		}
		q.judge(at(2), limits.Load{}, nil)
		want(t, string(o), q.Breaker.State(), wantState)
	}
}
