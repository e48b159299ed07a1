package replay

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
)

var errScrape = errors.New("http://engine/metrics: connection refused")

// A guard that only errors have opened lets single trials through: one at a time, one a second.
func TestTrials(t *testing.T) {
	q, c := newQueue(9)
	q.guard = limits.NewBreaker(limits.Guard{Waiting: 8, ErrorRatio: 0.5})
	for range 5 {
		q.guard.Health.Ended(at(0), true)
	}
	for i := range 60 {
		q.add(q.loops[0], planned(i, 100*i, "", 0))
	}
	var flying []*item
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
		play(ms, limits.Load{}) // the second is not yet a second ago
	}
	play(2500, limits.Load{Waiting: 8}) // another limit is open too
	play(2600, limits.Load{}, 26)
	q.free = 0
	c.end(q, flying[2], true, at(2700))
	q.free = 0
	play(3600, limits.Load{})
	want(t, "trials that wait for a lane", q.waiting.len(), 1)
	play(3700, limits.Load{Waiting: 8})
	want(t, "trials that wait for a lane", q.waiting.len(), 0)
	q.free = 9
	play(3800, limits.Load{}, 38) // the one that was never sent was none
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 39 - 4})
	want(t, "balance", c.balance(), error(nil))
}

// A message that cannot be built is no trial: the next row is one.
func TestTrialWithoutAMessage(t *testing.T) {
	q, c := newQueue(9)
	q.guard = limits.NewBreaker(limits.Guard{ErrorRatio: 0.5})
	for range 5 {
		q.guard.Health.Ended(at(0), true)
	}
	q.judge(at(0), limits.Load{}, nil)
	for i := range 2 {
		q.add(q.loops[0], planned(i, 100*i, "", 0))
	}
	q.upcoming.front().body, q.upcoming.front().err = nil, errScrape
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
	q.guard = limits.NewBreaker(limits.Guard{Waiting: 1})
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
	c.end(q, flying[0], true, at(60)) // now it may go, and the guard is open
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 4})

	q.judge(at(65), limits.Load{}, nil)
	q.add(q.loops[0], planned(6, 70, "u", 0))
	q.add(q.loops[0], planned(7, 80, "u", 0))
	q.fire(at(70))
	_, flying = takeAll(q, at(70))
	q.judge(at(75), limits.Load{Waiting: 1}, nil)
	q.fire(at(80)) // as in a pause, what counts of a turn behind another is its own instant too
	q.judge(at(85), limits.Load{}, nil)
	c.end(q, flying[0], true, at(90))
	rows, _ = takeAll(q, at(90))
	want(t, "sent after", rows, []int(nil))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 5})
	want(t, "balance", c.balance(), error(nil))
}

// A pause names the reason, whatever the guard does.
func TestPauseInGuard(t *testing.T) {
	q, c := newQueue(1)
	q.guard = limits.NewBreaker(limits.Guard{Waiting: 1})
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

// What happens at each row allocates nothing, whether it is sent, held back or over the budget.
func TestGuardAndBudgetAllocateNothing(t *testing.T) {
	q, _ := newQueue(9)
	g := limits.NewBreaker(limits.Guard{Waiting: 8, KVCacheUsage: 0.9, ErrorRatio: 0.5, ResumeAfter: time.Second})
	for range 5 {
		g.Health.Ended(at(0), true)
	}
	q.guard = g
	p := newPurse(limits.Budget{RequestsPerMinute: 10, PromptTokensPerHour: 1000, OutputTokensPerDay: 1000})
	p.turned = func(limits.Spell, limits.Bound) {}
	it := costs(planned(0, 0, "", 0), 4, 3)
	req := &measure.Request{Outcome: measure.OK, Usage: measure.Usage{Prompt: 5, Output: 3, Source: measure.UsageFinal}}
	ms, paid := 0, 0
	if n := testing.AllocsPerRun(5000, func() {
		ms += 40
		now := at(ms)
		g.Step(now, limits.Load{Waiting: float64(ms / 1000 % 9)}, []error{nil, errScrape}[ms/4000%2])
		it.due.OutputTokens = ms / 40 % 2 // some do not say
		if q.admit(it, now) && p.pay(it, now) {
			paid++
			p.correct(it, req)
			g.Health.Ended(now, false)
			q.endTrial(it, true)
		}
		q.endTrial(it, false)
		_ = g.Wait(now)
	}); n != 0 {
		t.Errorf("%v allocations a row, want none", n)
	}
	if paid == 0 {
		t.Error("nothing was let through")
	}
}

// What a goroutine saw before another's look, and judges after it, changes nothing: a start would end in a blindness that
// is held for the whole ResumeAfter.
func TestGuardGoesByTheLatestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.say(0, errors.New("not scraped yet"))
		b := newBench(t, every(1, time.Second), once, &fake{}, func(w *Workload) {
			w.Guard, w.Load = limits.Guard{Waiting: 8, ResumeAfter: time.Minute}, e.now
		})
		slow := b.look()
		e.say(0, nil)
		fast := b.look()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.judge(time.Now(), fast)
		b.judge(time.Now(), slow)
		want(t, "held back", b.queue.guard.State(), limits.Closed)
	})
}

// A Load that takes the runner's own lock, and one that a scrape waits for: no lock is held while it is asked.
func TestLoadMayAskTheRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		var asked atomic.Int64
		b = newBench(t, every(20, 100*time.Millisecond), minutes, &fake{ttft: 70 * time.Millisecond}, func(w *Workload) {
			w.Guard = limits.Guard{Waiting: 8}
			w.Load = func() (limits.Load, error) {
				b.State()
				asked.Add(1)
				return limits.Load{}, nil
			}
		})
		b.run(t, until(t, 30*time.Second), t.Context())
		want(t, "sent", len(b.kept.all), 20)
		if n := asked.Load(); n < 40 {
			t.Errorf("asked %d times in 30 s of 20 rows, want 2 times a row at least", n)
		}
	})
}
