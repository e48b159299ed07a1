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
			if charged, full := l.charge(now, c, b); full == "" {
				all = append(all, spent{now, charged})
			} else {
				refused++
				minute, hour, day := within(now.Add(-61*time.Second), now), within(now.Add(-61*time.Minute), now), within(now.Add(-61*24*time.Minute), now)
				if !over(minute.requests+1, b.RequestsPerMinute) && !over(hour.prompt+max(1, c.prompt), b.PromptTokensPerHour) &&
					!over(day.output+max(1, c.output), b.OutputTokensPerDay) {
					t.Fatalf("seed %d: %+v was refused after %v, with %+v, %+v and %+v spent of %+v", seed, c, now.Sub(epoch), minute, hour, day, b)
				}
			}
			if n := len(all); n > 0 && rnd.IntN(3) == 0 { // a request ends
				s := &all[n-1-rnd.IntN(min(n, 30))]
				less := cost{0, -rnd.Int64N(s.prompt + 1), -rnd.Int64N(s.output + 1)}
				l.amend(s.at, less)
				s.cost = cost{s.requests, s.prompt + less.prompt, s.output + less.output}
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
	q.purse.tell = func(it *item) { large = append(large, it.due.Number) }
	q.purse.turned = func(spell, bound) {}
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
	takeAll(q, at(0))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 1})
}

// What never comes to a lane costs nothing, whatever the reason.
func TestQueueBudgetIsOfWhatIsSent(t *testing.T) {
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
		drop(q)
		want(t, "dropped", c.dropped, map[measure.DropReason]int{reason: 1})
		q.maxWait, q.free = 0, 1
		q.add(q.loops[0], costs(planned(1, 10, "", 0), 7, 3))
		q.fire(at(10))
		rows, _ := takeAll(q, at(10))
		want(t, fmt.Sprint(reason, ": sent after it"), rows, []int{1})
	}
}

// A backlog is charged when it goes out: rows that came due in an earlier minute are of the minute in which a lane has them.
func TestQueueBudgetOfABacklog(t *testing.T) {
	q, c, _ := newPurseQueue(0, Budget{RequestsPerMinute: 2})
	for i := range 9 {
		q.add(q.loops[0], planned(i, 60_000*i, "", 0))
	}
	for i := range 9 {
		q.fire(at(60_000 * i))
	}
	want(t, "waiting", q.waiting.len(), 9)
	q.free = 1
	rows, _ := takeAll(q, at(480_500))
	want(t, "sent", rows, []int{0})
	q.free = 9
	rows, _ = takeAll(q, at(480_600))
	want(t, "sent", rows, []int{1})
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 7})
	want(t, "balance", c.balance(), error(nil))
}

// A turn that does not fit ends its session.
func TestQueueBudgetAndSessions(t *testing.T) {
	q, c, _ := newPurseQueue(9, Budget{RequestsPerMinute: 2})
	for i, session := range []string{"s", "s", "", "s", ""} { // due at 0, 10, 20, 30, 40 ms
		q.add(q.loops[0], planned(i, 10*i, session, 0))
	}
	q.fire(at(30))
	rows, flying := takeAll(q, at(30))
	want(t, "sent", rows, []int{0, 2})
	c.end(q, flying[0], true, at(35))
	rows, _ = takeAll(q, at(35))
	want(t, "sent", rows, []int(nil))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 2}) // and the turn after it
	q.add(q.loops[0], planned(5, 38, "s", 0))
	q.fire(at(40))
	takeAll(q, at(40))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 4})
	for i, ms := range []int{61_029, 61_030} { // both were sent at 30 ms, when the pacer came
		q.add(q.loops[0], planned(6+i, ms, "", 0))
		q.fire(at(ms))
		rows, _ = takeAll(q, at(ms))
		want(t, fmt.Sprint("sent at ", ms, " ms"), len(rows), i) // when the minute and its slot are over
	}
	want(t, "balance", c.balance(), error(nil))
}

// A row that does not say how long it is reserves what such rows have cost, and never passes where nothing is left.
func TestQueueBudgetOfUnknownLengths(t *testing.T) {
	q, c, large := newPurseQueue(1, Budget{PromptTokensPerHour: 1000, OutputTokensPerDay: 10_000})
	row := 0
	send := func(n int) (flying []*item) {
		q.free = n
		for range n {
			q.add(q.loops[0], planned(row, 10*row, "", 0))
			row++
		}
		q.fire(at(10 * row))
		_, flying = takeAll(q, at(10*row))
		return flying
	}
	end := func(flying []*item, prompt int) {
		for _, it := range flying {
			q.purse.correct(it, &measure.Request{Outcome: measure.OK, Usage: measure.Usage{Prompt: prompt, Output: 2, Source: measure.UsageFinal}})
			c.end(q, it, true, at(10*row))
		}
	}
	spent := func(prompt, output int64) {
		t.Helper()
		want(t, fmt.Sprint("spent after ", row), [2]int64{q.purse.spent.prompt.sum, q.purse.spent.output.sum}, [2]int64{prompt, output})
	}
	first := send(2)
	want(t, "sent before any has ended", len(first), 2)
	spent(2, 2)
	end(first[:1], 100)
	end(first[1:], 201)
	spent(301, 4)
	known := costs(planned(row, 0, "", 0), 301, 2)
	known.charged, known.cost = at(0), cost{1, 301, 2}
	q.purse.correct(known, &measure.Request{Outcome: measure.OK, Usage: measure.Usage{Prompt: 301, Output: 2}}) // teaches nothing
	some := send(9)
	want(t, "sent by the mean of 150.5", len(some), 4) // 604 of the 699 that are left
	spent(301+4*151, 4+4*2)
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 5})
	end(some, 301)
	spent(301+4*301, 12)
	want(t, "sent when nothing is left", len(send(9)), 0)
	for range 99 { // such rows are long now, though none is longer than all that there is
		q.purse.spent.learn(cost{prompt: 5000})
	}
	row = 400_000 // an hour later
	long := send(9)
	want(t, "sent of rows that cost more than all", len(long), 1)
	spent(1000, 14)
	want(t, "larger than the whole", *large, []int(nil))
	want(t, "balance", c.balance(), error(nil))
}

// A mean follows what comes: of the last hundred or so.
func TestMean(t *testing.T) {
	var m mean
	for _, step := range []struct {
		times          int
		tokens, expect int64
	}{
		{0, 0, 1},
		{1, 7, 7},
		{1, 8, 8},
		{1, 0, 8},
		{2, 10, 9},
		{10_000, 10, 10},
		{100, 1000, 638}, // 1000 − 990·0.99^100 = 637.6
	} {
		for range step.times {
			m.learn(step.tokens)
		}
		want(t, fmt.Sprint("after ", step), m.reserve(0), step.expect)
	}
	want(t, "within a bound", m.reserve(600), int64(600))
}

// Of a spell its begin is told and its end, which is a request that goes through a minute after the last that did not.
func TestSpell(t *testing.T) {
	var s spell
	for _, step := range []struct {
		ms      int
		refused bool
		turned  string
	}{
		{0, false, ""},
		{1000, true, "0s 1"},
		{1001, true, ""},
		{1002, false, ""}, // a small one fits
		{30_000, true, ""},
		{89_999, false, ""},
		{90_000, false, "29s 3"},
		{90_001, false, ""},
		{90_002, true, "0s 1"},
		{300_000, true, ""}, // nothing fell due meanwhile
		{300_001, false, ""},
		{400_000, false, "3m29.998s 2"},
	} {
		got := ""
		if of, turned := s.turn(at(step.ms), step.refused); turned {
			got = fmt.Sprint(of.last.Sub(of.from), " ", of.refused)
		}
		want(t, fmt.Sprint("told at ", step.ms, " ms"), got, step.turned)
	}
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
		"no prompt tokens":  {measure.Request{Outcome: measure.OK, Usage: final(0, 0, 9)}, 10, 9},
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
	full := func(what string, at time.Time, prompt int64, is bound) {
		t.Helper()
		_, got := l.charge(at, cost{1, prompt, 1}, b)
		want(t, what, got, is)
	}
	full("fits", at(0), 50, "")
	full("fits", at(0).Add(30*time.Minute), 50, "")
	l.amend(at(0), cost{0, 30, 0})
	want(t, "more than the budget", l.prompt.sum, int64(130))
	full("fits meanwhile", at(0).Add(61*time.Minute-1), 1, promptTokensPerHour)
	full("fits when the first is forgotten", at(0).Add(61*time.Minute), 50, "")
	l.amend(at(0), cost{0, -30, 0})
	want(t, "spent", l.prompt.sum, int64(100))
}
