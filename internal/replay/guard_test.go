package replay

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

var errScrape = errors.New("http://engine/metrics: connection refused")

// Each limit opens at its value and closes when it was not reached for as long as is asked, by its last instant.
func TestGuardSteps(t *testing.T) {
	none := math.NaN()
	type step struct {
		ms    int
		load  Load
		err   error
		holds hold
		words string
	}
	for name, c := range map[string]struct {
		limits Guard
		steps  []step
	}{
		"waiting": {Guard{Waiting: 8, ResumeAfter: 2 * time.Second}, []step{
			{0, Load{Waiting: 7, KVCacheUsage: none}, nil, nothing, ""},
			{1, Load{Waiting: 8, KVCacheUsage: none}, nil, all, "waiting 8 ≥ 8"},
			{1000, Load{Waiting: 9.5, KVCacheUsage: none}, nil, all, "waiting 9.5 ≥ 8"},
			{1001, Load{Waiting: 7, KVCacheUsage: none}, nil, all, "waiting 9.5 ≥ 8"},
			{2999, Load{Waiting: 0, KVCacheUsage: none}, nil, all, "waiting 9.5 ≥ 8 until 2s ago"},
			{3000, Load{Waiting: 0, KVCacheUsage: none}, nil, nothing, ""},
			{3001, Load{Waiting: 8, KVCacheUsage: none}, nil, all, "waiting 8 ≥ 8"},
			{4000, Load{Waiting: 8, KVCacheUsage: none}, nil, all, "waiting 8 ≥ 8"},
			{6000, Load{Waiting: 8, KVCacheUsage: none}, nil, all, "waiting 8 ≥ 8"}, // it counts from the last instant, not from the first
			{7999, Load{}, nil, all, "waiting 8 ≥ 8 until 2s ago"},
			{8000, Load{}, nil, nothing, ""},
		}},
		"at once": {Guard{KVCacheUsage: 0.9}, []step{
			{0, Load{Waiting: none, KVCacheUsage: 0.8999}, nil, nothing, ""},
			{1, Load{Waiting: none, KVCacheUsage: 0.9}, nil, all, "kv_cache_usage 0.9 ≥ 0.9"},
			{2, Load{Waiting: none, KVCacheUsage: 0.8999}, nil, nothing, ""},
		}},
		"two": {Guard{Waiting: 8, KVCacheUsage: 0.9, ResumeAfter: time.Second}, []step{
			{0, Load{Waiting: 8, KVCacheUsage: 0.5}, nil, all, "waiting 8 ≥ 8"},
			{500, Load{Waiting: 0, KVCacheUsage: 0.95}, nil, all, "waiting 8 ≥ 8 until 1s ago, kv_cache_usage 0.95 ≥ 0.9"},
			{1000, Load{}, nil, all, "kv_cache_usage 0.95 ≥ 0.9 until 1s ago"},
			{1500, Load{}, nil, nothing, ""},
		}},
		"blind": {Guard{Waiting: 8, ResumeAfter: time.Second}, []step{
			{0, Load{}, errScrape, all, "blind: http://engine/metrics: connection refused"},
			{10, Load{}, nil, nothing, ""}, // that of the start ends with the first figures
			{20, Load{}, errScrape, all, "blind: http://engine/metrics: connection refused"},
			{1019, Load{}, nil, all, "blind: http://engine/metrics: connection refused until 1s ago"},
			{1020, Load{}, nil, nothing, ""},
		}},
		"blind at the start, then over the limit": {Guard{Waiting: 8}, []step{
			{0, Load{}, errScrape, all, "blind: http://engine/metrics: connection refused"},
			{10, Load{Waiting: 8, KVCacheUsage: none}, nil, all, "waiting 8 ≥ 8"},
		}},
		"no such figure": {Guard{Waiting: 8, KVCacheUsage: 0.9}, []step{
			{0, Load{Waiting: none, KVCacheUsage: 0.95}, nil, all, "kv_cache_usage 0.95 ≥ 0.9, blind: the engine's page does not say how many requests wait"},
			{1, Load{Waiting: 9, KVCacheUsage: none}, nil, all, "waiting 9 ≥ 8, blind: the engine's page does not say how full the KV cache is"},
			{2, Load{Waiting: 1, KVCacheUsage: 0.1}, nil, nothing, ""},
		}},
		"go": {Guard{Waiting: 8, KVCacheUsage: 0.9, Blind: BlindGo}, []step{
			{0, Load{}, errScrape, nothing, ""},
			{1, Load{Waiting: 9, KVCacheUsage: 1}, errScrape, nothing, ""}, // what comes with an error is no figure
			{2, Load{Waiting: 9, KVCacheUsage: none}, nil, all, "waiting 9 ≥ 8"},
			{3, Load{Waiting: none, KVCacheUsage: none}, nil, nothing, ""},
		}},
		"unsupported": {Guard{KVCacheUsage: 0.9, ResumeAfter: time.Minute}, []step{
			{0, Load{}, errScrape, all, "blind: http://engine/metrics: connection refused"},
			{10, Load{Waiting: 2, KVCacheUsage: none, Engine: "llama.cpp", Pages: 2}, nil, all, "blind: the engine's page does not say how full the KV cache is"},
			{20, Load{Waiting: 2, KVCacheUsage: none, Engine: "llama.cpp", Pages: 3}, nil, all, "unsupported: llama.cpp has not shown kv_cache_usage on 3 pages; it shows waiting"},
			{30, Load{}, errScrape, all, "blind: http://engine/metrics: connection refused, unsupported: llama.cpp has not shown kv_cache_usage on 3 pages; it shows waiting"},
			{60_040, Load{KVCacheUsage: 0.1, Pages: 3}, nil, nothing, ""}, // another version of the engine has it
		}},
		"unsupported and ignored": {Guard{Waiting: 8, KVCacheUsage: 0.9, Blind: BlindGo}, []step{
			{0, Load{Waiting: 2, KVCacheUsage: none, Pages: 3}, nil, nothing, ""},
			{1, Load{Waiting: 8, KVCacheUsage: none, Pages: 3}, nil, all, "waiting 8 ≥ 8"},
		}},
		"no figure is needed": {Guard{ErrorRatio: 0.5}, []step{{0, Load{Waiting: none, KVCacheUsage: none}, errScrape, nothing, ""}}},
	} {
		g := newGuard(c.limits)
		for _, s := range c.steps {
			before := g.open
			changed := g.step(at(s.ms), s.load, s.err)
			at := fmt.Sprintf("%s at %d ms", name, s.ms)
			want(t, at, g.holds(), s.holds)
			want(t, at, g.words(epoch.Add(time.Duration(s.ms)*time.Millisecond)), s.words)
			want(t, at+": changed", changed, g.open != before)
		}
	}
}

// The error ratio is that of the last 60 slots of a second, from 5 finished requests on, without those cut by us.
func TestErrorRatio(t *testing.T) {
	h := newHealth()
	f := func(ms int, share float64, finished int) {
		t.Helper()
		s, n := h.ratio(at(ms))
		want(t, fmt.Sprint("ratio at ", ms, " ms"), [2]any{s, n}, [2]any{share, finished})
	}
	f(0, 0, 0)
	for range 4 {
		h.ended(at(100), measure.HTTP5xx)
	}
	for range 9 {
		h.ended(at(100), measure.Aborted)
		h.ended(at(100), measure.Cancelled)
	}
	f(100, 1, 4)
	h.ended(at(1500), measure.OK)
	f(1500, 0.8, 5)
	for range 5 {
		h.ended(at(30_000), measure.OK)
	}
	f(59_999, 0.4, 10)
	f(60_000, 0, 6) // the slot of the failures has left
	f(89_999, 0, 5)
	f(90_000, 0, 0)
}

// The limit opens by 5 finished requests. Once open, it needs only one to be judged, and none to stay as it was judged last.
func TestErrorRatioOpensAndCloses(t *testing.T) {
	g := newGuard(Guard{ErrorRatio: 0.5, ResumeAfter: 150 * time.Second})
	f := func(s int, ended string, holds hold, words string) {
		t.Helper()
		now := at(1000 * s)
		for _, o := range ended {
			g.health.ended(now, map[rune]measure.Outcome{'o': measure.OK, 'x': measure.HTTP5xx, 'c': measure.Cancelled}[o])
		}
		g.step(now, Load{}, nil)
		want(t, fmt.Sprint("holds at ", s, " s"), g.holds(), holds)
		want(t, fmt.Sprint("words at ", s, " s"), g.words(now), words)
	}
	f(0, "xxxx", nothing, "")
	f(59, "", nothing, "")
	f(60, "xxxx", nothing, "") // the first four have left
	f(61, "o", allButOne, "error_ratio 0.8 ≥ 0.5")
	f(90, "x", allButOne, "error_ratio 0.833 ≥ 0.5")
	f(130, "", allButOne, "error_ratio 1 ≥ 0.5") // by one
	f(150, "", allButOne, "error_ratio 1 ≥ 0.5") // by none: as it was
	f(5000, "ccc", allButOne, "error_ratio 1 ≥ 0.5")
	f(6000, "x", allButOne, "error_ratio 1 ≥ 0.5")
	f(6070, "o", allButOne, "error_ratio 1 ≥ 0.5 until 1m10s ago") // one good answer, and no failure in the minute
	f(6140, "", allButOne, "error_ratio 1 ≥ 0.5 until 2m20s ago")  // by none again
	f(6150, "", nothing, "")
	f(6151, "xxxx", nothing, "")
}

// A guard that only errors have opened lets single trials through: one at a time, one a second.
func TestTrials(t *testing.T) {
	q, c := newQueue(9)
	q.guard = newGuard(Guard{Waiting: 8, ErrorRatio: 0.5})
	for range 5 {
		q.guard.health.ended(at(0), measure.HTTP5xx)
	}
	for i := range 60 {
		q.add(q.loops[0], planned(i, 100*i, "", 0))
	}
	var flying []*item
	play := func(ms int, l Load, sent ...int) {
		t.Helper()
		q.judge(at(ms), l, nil)
		q.fire(at(ms))
		rows, taken := takeAll(q, at(ms))
		flying = append(flying, taken...)
		want(t, fmt.Sprint("sent at ", ms, " ms"), rows, sent)
	}
	play(0, Load{}, 0)
	for ms := 100; ms < 1500; ms += 100 {
		play(ms, Load{}) // the first trial is in flight
	}
	c.end(q, flying[0], false, at(1450))
	play(1500, Load{}, 15)
	c.end(q, flying[1], true, at(1510))
	for ms := 1600; ms < 2500; ms += 100 {
		play(ms, Load{}) // the second is not yet a second ago
	}
	play(2500, Load{Waiting: 8}) // another limit is open too
	play(2600, Load{}, 26)
	q.free = 0
	c.end(q, flying[2], true, at(2700))
	q.free = 0
	play(3600, Load{})
	want(t, "trials that wait for a lane", q.waiting.len(), 1)
	play(3700, Load{Waiting: 8})
	want(t, "trials that wait for a lane", q.waiting.len(), 0)
	q.free = 9
	play(3800, Load{}, 38) // the one that was never sent was none
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 39 - 4})
	want(t, "balance", c.balance(), error(nil))
}

// A message that cannot be built is no trial: the next row is one.
func TestTrialWithoutAMessage(t *testing.T) {
	q, c := newQueue(9)
	q.guard = newGuard(Guard{ErrorRatio: 0.5})
	for range 5 {
		q.guard.health.ended(at(0), measure.HTTP5xx)
	}
	q.judge(at(0), Load{}, nil)
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
	q.guard = newGuard(Guard{Waiting: 1})
	for i, session := range []string{"", "", "s", "s", "t", "t"} { // due at 0, 10, 20, 30, 40, 50 ms
		q.add(q.loops[0], planned(i, 10*i, session, 0))
	}
	q.fire(at(10))
	rows, flying := takeAll(q, at(10))
	want(t, "sent before", rows, []int{0})
	q.judge(at(15), Load{Waiting: 1}, nil) // row 1 waits
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 1})
	q.pause(true, at(16))
	q.pause(false, at(17))
	c.end(q, flying[0], true, at(18))
	q.fire(at(20)) // the first turn of s
	q.judge(at(25), Load{}, nil)
	q.fire(at(40))
	rows, flying = takeAll(q, at(40))
	want(t, "sent after", rows, []int{4})
	q.fire(at(50)) // the second turn of t is due, and blocked
	q.judge(at(55), Load{Waiting: 1}, nil)
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 3})
	c.end(q, flying[0], true, at(60)) // now it may go, and the guard is open
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 4})

	q.judge(at(65), Load{}, nil)
	q.add(q.loops[0], planned(6, 70, "u", 0))
	q.add(q.loops[0], planned(7, 80, "u", 0))
	q.fire(at(70))
	_, flying = takeAll(q, at(70))
	q.judge(at(75), Load{Waiting: 1}, nil)
	q.fire(at(80)) // as in a pause, what counts of a turn behind another is its own instant too
	q.judge(at(85), Load{}, nil)
	c.end(q, flying[0], true, at(90))
	rows, _ = takeAll(q, at(90))
	want(t, "sent after", rows, []int(nil))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 5})
	want(t, "balance", c.balance(), error(nil))
}

// A pause names the reason, whatever the guard does.
func TestPauseInGuard(t *testing.T) {
	q, c := newQueue(1)
	q.guard = newGuard(Guard{Waiting: 1})
	for i := range 4 {
		q.add(q.loops[0], planned(i, 10*i, "", 0))
	}
	q.judge(at(0), Load{Waiting: 1}, nil)
	q.fire(at(0))
	q.pause(true, at(5))
	q.fire(at(20))
	q.pause(false, at(25))
	q.fire(at(30))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Guarded: 2, measure.Paused: 2})
}

// What happens at each row allocates nothing, whether it is sent, held back or over the budget.
func TestGuardAndBudgetAllocateNothing(t *testing.T) {
	g := newGuard(Guard{Waiting: 8, KVCacheUsage: 0.9, ErrorRatio: 0.5, ResumeAfter: time.Second})
	for range 5 {
		g.health.ended(at(0), measure.HTTP5xx)
	}
	p := newPurse(Budget{RequestsPerMinute: 10, PromptTokensPerHour: 1000, OutputTokensPerDay: 1000})
	p.turned = func(spell, bound) {}
	it := costs(planned(0, 0, "", 0), 4, 3)
	req := &measure.Request{Outcome: measure.OK, Usage: measure.Usage{Prompt: 5, Output: 3, Source: measure.UsageFinal}}
	ms, paid := 0, 0
	if n := testing.AllocsPerRun(5000, func() {
		ms += 40
		now := at(ms)
		g.step(now, Load{Waiting: float64(ms / 1000 % 9)}, []error{nil, errScrape}[ms/4000%2])
		it.due.OutputTokens = ms / 40 % 2 // some do not say
		if g.admit(it, now) && p.pay(it, now) {
			paid++
			p.correct(it, req)
			g.health.ended(now, req.Outcome)
			g.over(it, true)
		}
		g.over(it, false)
		_ = g.wait(now)
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
			w.Guard, w.Load = Guard{Waiting: 8, ResumeAfter: time.Minute}, e.now
		})
		if err := b.prepare(); err != nil {
			t.Fatal(err)
		}
		defer b.close()
		slow := b.look()
		e.say(0, nil)
		fast := b.look()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.judge(time.Now(), fast)
		b.judge(time.Now(), slow)
		want(t, "held back", b.queue.guard.holds(), nothing)
	})
}
