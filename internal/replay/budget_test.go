package replay

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"replayd/internal/measure"
)

// No minute, hour or day, wherever it begins, costs more than the budget, as long as nothing costs more than planned; and
// nothing is refused that would fit into the 61 slots of a window.
func TestBudgetHoldsWhereverItBegins(t *testing.T) {
	for seed := range uint64(100) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		b := Budget{int64(rnd.IntN(20)), int64(rnd.IntN(2000)), int64(rnd.IntN(2000))}
		l := newLedger()
		type spent struct {
			at time.Time
			cost
		}
		var all []spent
		within := func(from, to time.Time) (sum cost) { // both instants count
			for _, s := range all {
				if !s.at.Before(from) && !s.at.After(to) {
					sum.requests += s.requests
					sum.prompt += s.prompt
					sum.output += s.output
				}
			}
			return sum
		}
		step := []time.Duration{100 * time.Millisecond, 3 * time.Second, time.Minute, 30 * time.Minute}[rnd.IntN(4)]
		now, refused := epoch, 0
		for range 400 {
			now = now.Add(time.Duration(rnd.Int64N(int64(step))) * time.Duration(rnd.IntN(3)))
			c := cost{1, int64(rnd.IntN(100)), int64(rnd.IntN(100))}
			if l.charge(now, c, b) {
				all = append(all, spent{now, c})
			} else {
				refused++
				minute, hour, day := within(now.Add(-61*time.Second), now), within(now.Add(-61*time.Minute), now), within(now.Add(-61*24*time.Minute), now)
				if !over(minute.requests+1, b.RequestsPerMinute) && !over(hour.prompt+max(1, c.prompt), b.PromptTokensPerHour) &&
					!over(day.output+max(1, c.output), b.OutputTokensPerDay) {
					t.Fatalf("seed %d: %+v was refused after %v, with %+v, %+v and %+v spent of %+v", seed, c, now.Sub(epoch), minute, hour, day, b)
				}
			}
			if n := len(all); n > 0 && rnd.IntN(3) == 0 { // a request ends, or is dropped
				s := &all[n-1-rnd.IntN(min(n, 30))]
				less := cost{0, -rnd.Int64N(s.prompt + 1), -rnd.Int64N(s.output + 1)}
				if rnd.IntN(3) == 0 {
					less = cost{-s.requests, -s.prompt, -s.output}
				}
				l.amend(s.at, less)
				s.cost = cost{s.requests + less.requests, s.prompt + less.prompt, s.output + less.output}
			}
		}
		for _, s := range all {
			minute, hour, day := within(s.at, s.at.Add(time.Minute)), within(s.at, s.at.Add(time.Hour)), within(s.at, s.at.Add(24*time.Hour))
			if over(minute.requests, b.RequestsPerMinute) || over(hour.prompt, b.PromptTokensPerHour) || over(day.output, b.OutputTokensPerDay) {
				t.Fatalf("seed %d: from %v on: %+v, %+v, %+v, over the budget of %+v", seed, s.at.Sub(epoch), minute, hour, day, b)
			}
		}
		if b == (Budget{}) && refused > 0 {
			t.Errorf("seed %d: %d refused without a budget", seed, refused)
		}
	}
}

// costs plans a row of so many tokens.
func costs(it *item, input, output int) *item {
	it.due.InputTokens, it.due.OutputTokens = input, output
	return it
}

func newPurseQueue(lanes int, b Budget) (*queue, *tally, *[]int) {
	q, c := newQueue(lanes)
	q.purse = newPurse(b)
	var large []int
	q.purse.large = func(it *item) { large = append(large, it.due.Number) }
	return q, c, &large
}

func TestQueueBudget(t *testing.T) {
	q, c, large := newPurseQueue(9, Budget{PromptTokensPerHour: 100, OutputTokensPerDay: 50})
	for i, tokens := range [][2]int{{60, 10}, {50, 10}, {40, 10}, {1, 51}, {0, 20}, {200, 1}} {
		q.add(q.loops[0], costs(planned(i, 10*i, "", 0), tokens[0], tokens[1]))
	}
	q.fire(at(50))
	rows, _ := takeAll(q, at(50))
	want(t, "sent", rows, []int{0, 2}) // then nothing is left, not even for a row that does not say how long it is
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 4})
	want(t, "larger than the whole", *large, []int{3, 5})
	want(t, "balance", c.balance(), error(nil))

	q, c, _ = newPurseQueue(9, Budget{OutputTokensPerDay: 50})
	q.add(q.loops[0], costs(planned(0, 0, "", 0), 4, 50))
	q.add(q.loops[0], costs(planned(1, 0, "", 0), 4, 0))
	q.fire(at(0))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 1})
}

// What is dropped after it was let through is given back, whatever the reason.
func TestQueueBudgetIsRefunded(t *testing.T) {
	for reason, drop := range map[measure.DropReason]func(q *queue){
		measure.Paused:   func(q *queue) { q.pause(true, at(5)); q.pause(false, at(6)) },
		measure.Overload: func(q *queue) { q.maxWait = 5 * time.Millisecond; q.fire(at(5)) },
		measure.Missed:   func(q *queue) { q.miss(at(5)) },
		measure.Shutdown: func(q *queue) { q.stop() },
		measure.Guarded: func(q *queue) {
			q.guard = newGuard(Guard{Waiting: 1})
			q.judge(at(5), Load{Waiting: 1}, nil)
			q.judge(at(6), Load{}, nil)
		},
	} {
		q, c, _ := newPurseQueue(0, Budget{RequestsPerMinute: 1, PromptTokensPerHour: 7, OutputTokensPerDay: 3})
		q.add(q.loops[0], costs(planned(0, 0, "", 0), 7, 3))
		q.fire(at(0))
		want(t, "spent", q.purse.spent.prompt.sum, int64(7))
		drop(q)
		want(t, "dropped", c.dropped, map[measure.DropReason]int{reason: 1})
		want(t, fmt.Sprint(reason, ": spent"), [3]int64{q.purse.spent.requests.sum, q.purse.spent.prompt.sum, q.purse.spent.output.sum}, [3]int64{})
		q.maxWait = 0
		q.add(q.loops[0], costs(planned(1, 10, "", 0), 7, 3))
		q.fire(at(10))
		want(t, fmt.Sprint(reason, ": waiting after it"), q.waiting.len(), 1)
	}
}

// A turn that does not fit ends its session, and one that waits for the turn before costs nothing yet.
func TestQueueBudgetAndSessions(t *testing.T) {
	q, c, _ := newPurseQueue(9, Budget{RequestsPerMinute: 2})
	for i, session := range []string{"s", "s", "", "s", ""} { // due at 0, 10, 20, 30, 40 ms
		q.add(q.loops[0], planned(i, 10*i, session, 0))
	}
	q.fire(at(30))
	rows, flying := takeAll(q, at(30))
	want(t, "sent", rows, []int{0, 2})
	c.end(q, flying[0], true, at(35))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 1, measure.Missed: 1}) // and the turn after it
	q.fire(at(40))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 2, measure.Missed: 1})
	for i, ms := range []int{61_029, 61_030} { // both were let through at 30 ms, when the pacer came
		q.add(q.loops[0], planned(5+i, ms, "", 0))
		q.fire(at(ms))
	}
	rows, _ = takeAll(q, at(61_030))
	want(t, "sent when the minute and its slot are over", rows, []int{6})
	want(t, "balance", c.balance(), error(nil))
}

// What the server says that a request has cost takes the place of what was planned.
func TestPurseIsCorrected(t *testing.T) {
	final := func(prompt, cached, output int) measure.Usage {
		return measure.Usage{Prompt: prompt, Cached: cached, Output: output, Source: measure.UsageFinal}
	}
	for name, c := range map[string]struct {
		req            measure.Request
		prompt, output int64
	}{
		"as planned":        {measure.Request{Outcome: measure.OK, Usage: final(10, 0, 4)}, 10, 4},
		"more":              {measure.Request{Outcome: measure.OK, Usage: final(15, 8, 9)}, 15, 9},
		"fewer":             {measure.Request{Outcome: measure.OK, Usage: final(9, 9, 1)}, 9, 1},
		"failed":            {measure.Request{Outcome: measure.TimeoutStall, Usage: final(9, 0, 1)}, 10, 4},
		"never answered":    {measure.Request{Outcome: measure.ConnectFailed}, 10, 4},
		"counted chunks":    {measure.Request{Outcome: measure.OK, Usage: measure.Usage{Output: 2, Source: measure.UsageCounted}}, 10, 4},
		"many were counted": {measure.Request{Outcome: measure.OK, Usage: measure.Usage{Output: 6, Source: measure.UsageCounted}}, 10, 6},
	} {
		p := newPurse(Budget{PromptTokensPerHour: 1000})
		it := costs(planned(0, 0, "", 0), 10, 4)
		want(t, name+": fits", p.pay(it, at(0)), true)
		p.correct(it, &c.req)
		want(t, name, [3]int64{p.spent.requests.sum, p.spent.prompt.sum, p.spent.output.sum}, [3]int64{1, c.prompt, c.output})
	}
}

// A correction is counted where the charge was, and only as long as that is in the window.
func TestCorrectionGoesToItsSlot(t *testing.T) {
	l, b := newLedger(), Budget{RequestsPerMinute: 9, PromptTokensPerHour: 100}
	want(t, "fits", l.charge(at(0), cost{1, 50, 0}, b), true)
	want(t, "fits", l.charge(at(0).Add(30*time.Minute), cost{1, 50, 0}, b), true)
	l.amend(at(0), cost{0, 30, 0})
	want(t, "more than the budget", l.prompt.sum, int64(130))
	want(t, "fits meanwhile", l.charge(at(0).Add(61*time.Minute-1), cost{1, 1, 0}, b), false)
	want(t, "fits when the first is forgotten", l.charge(at(0).Add(61*time.Minute), cost{1, 50, 0}, b), true)
	l.amend(at(0), cost{0, -30, 0})
	want(t, "spent", l.prompt.sum, int64(100))
}
