package dispatch

import (
	"fmt"
	"testing"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
)

// costs sets the planned tokens of a row.
func costs(it *Row, input, output int) *Row {
	it.Due.InputTokens, it.Due.OutputTokens = input, output
	return it
}

func newBudgetQueue(lanes int, b limits.Budget) (*queue, *tally) {
	return newQueueOf(Config{Lanes: lanes, Budget: b, Spending: limits.NewSpending()})
}

func TestQueueBudget(t *testing.T) {
	q, c := newBudgetQueue(9, limits.Budget{PromptTokensPerHour: 100, OutputTokensPerDay: 50})
	for i, tokens := range [][2]int{{60, 10}, {50, 10}, {40, 10}, {1, 51}, {0, 20}, {200, 1}} {
		q.add(q.loops[0], costs(planned(i, 10*i, "", 0), tokens[0], tokens[1]))
	}
	q.fire(at(50))
	rows, _ := takeAll(q, at(50))
	want(t, "sent", rows, []int{0, 2}) // then no tokens are left, not even for a row without lengths
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 4})
	want(t, "larger than the whole", c.large, []int{3, 5})
	want(t, "balance", c.balance(), error(nil))

	q, c = newBudgetQueue(9, limits.Budget{OutputTokensPerDay: 50})
	q.add(q.loops[0], costs(planned(0, 0, "", 0), 4, 50))
	q.add(q.loops[0], costs(planned(1, 0, "", 0), 4, 0))
	q.fire(at(0))
	takeAll(q, at(0))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 1})
}

// A row that never gets a lane costs nothing, whatever the drop reason.
func TestQueueBudgetIsOfWhatIsSent(t *testing.T) {
	for reason, drop := range map[measure.DropReason]func(q *queue){
		measure.Paused:   func(q *queue) { q.pause(true, at(5)); q.pause(false, at(6)) },
		measure.Overload: func(q *queue) { q.MaxWait = 5 * time.Millisecond; q.fire(at(5)) },
		measure.Missed:   func(q *queue) { q.miss(at(5)) },
		measure.Shutdown: func(q *queue) { q.stop() },
		measure.Guarded: func(q *queue) {
			q.Breaker = limits.NewBreaker(limits.Guard{Waiting: 1})
			q.judge(at(5), limits.Load{Waiting: 1}, nil)
			q.judge(at(6), limits.Load{}, nil)
		},
	} {
		q, c := newBudgetQueue(0, limits.Budget{RequestsPerMinute: 1, PromptTokensPerHour: 7, OutputTokensPerDay: 3})
		q.add(q.loops[0], costs(planned(0, 0, "", 0), 7, 3))
		q.fire(at(0))
		drop(q)
		want(t, "dropped", c.dropped, map[measure.DropReason]int{reason: 1})
		q.MaxWait, q.free = 0, 1
		q.add(q.loops[0], costs(planned(1, 10, "", 0), 7, 3))
		q.fire(at(10))
		rows, _ := takeAll(q, at(10))
		want(t, fmt.Sprint(reason, ": sent after it"), rows, []int{1})
	}
}

// A row of a backlog is charged in the minute in which it gets a lane, not in the minute in which it came due.
func TestQueueBudgetOfABacklog(t *testing.T) {
	q, c := newBudgetQueue(0, limits.Budget{RequestsPerMinute: 2})
	for i := range 9 {
		q.add(q.loops[0], planned(i, 60_000*i, "", 0))
	}
	for i := range 9 {
		q.fire(at(60_000 * i))
	}
	want(t, "waiting", q.waiting.n, 9)
	q.free = 1
	rows, _ := takeAll(q, at(480_500))
	want(t, "sent", rows, []int{0})
	q.free = 9
	rows, _ = takeAll(q, at(480_600))
	want(t, "sent", rows, []int{1})
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 7})
	want(t, "balance", c.balance(), error(nil))
}

// A turn that exceeds the budget ends its session.
func TestQueueBudgetAndSessions(t *testing.T) {
	q, c := newBudgetQueue(9, limits.Budget{RequestsPerMinute: 2})
	for i, session := range []string{"s", "s", "", "s", ""} { // due at 0, 10, 20, 30, 40 ms
		q.add(q.loops[0], planned(i, 10*i, session, 0))
	}
	q.fire(at(30))
	rows, flying := takeAll(q, at(30))
	want(t, "sent", rows, []int{0, 2})
	c.end(q, flying[0], true, at(35))
	rows, _ = takeAll(q, at(35))
	want(t, "sent", rows, []int(nil))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 2}) // the turn and the turn after it
	q.add(q.loops[0], planned(5, 38, "s", 0))
	q.fire(at(40))
	takeAll(q, at(40))
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 4})
	for i, ms := range []int{61_029, 61_030} { // both requests were sent at 30 ms, when the pacer ran
		q.add(q.loops[0], planned(6+i, ms, "", 0))
		q.fire(at(ms))
		rows, _ = takeAll(q, at(ms))
		want(t, fmt.Sprint("sent at ", ms, " ms"), len(rows), i) // none until the minute and its slot are over
	}
	want(t, "balance", c.balance(), error(nil))
}

// A row without lengths reserves the mean cost of earlier such rows, and is not sent when no tokens are left.
func TestQueueBudgetOfUnknownLengths(t *testing.T) {
	q, c := newBudgetQueue(1, limits.Budget{PromptTokensPerHour: 1000, OutputTokensPerDay: 10_000})
	row := 0
	send := func(n int) (flying []*Row) {
		q.free = n
		for range n {
			q.add(q.loops[0], planned(row, 10*row, "", 0))
			row++
		}
		q.fire(at(10 * row))
		_, flying = takeAll(q, at(10*row))
		return flying
	}
	end := func(flying []*Row, prompt int) {
		for _, it := range flying {
			c.finish(q, it, measure.OK, measure.Usage{Prompt: prompt, Output: 2, Source: measure.UsageFinal}, at(10*row))
		}
	}
	spent := func(prompt, output int64) {
		t.Helper()
		now := q.Spending.Spent(at(10 * row))
		want(t, fmt.Sprint("spent after ", row), [2]int64{now.Prompt, now.Output}, [2]int64{prompt, output})
	}
	first := send(2)
	want(t, "sent before any has ended", len(first), 2)
	spent(2, 2)
	end(first[:1], 100)
	end(first[1:], 201)
	spent(301, 4)
	known := costs(planned(row, 0, "", 0), 301, 2)
	known.charged, known.cost = at(0), limits.Cost{Requests: 1, Prompt: 301, Output: 2}
	q.correct(known, measure.OK, measure.Usage{Prompt: 301, Output: 2}) // does not change the mean
	some := send(9)
	want(t, "sent by the mean of 150.5", len(some), 4) // 604 of the remaining 699 tokens
	spent(301+4*151, 4+4*2)
	want(t, "dropped", c.dropped, map[measure.DropReason]int{measure.Budget: 5})
	end(some, 301)
	spent(301+4*301, 12)
	want(t, "sent when nothing is left", len(send(9)), 0)
	for range 99 { // raises the mean cost; a reservation is capped at the whole budget
		q.Spending.Learn(limits.Cost{Prompt: 5000})
	}
	row = 400_000 // an hour later
	long := send(9)
	want(t, "sent of rows that cost more than all", len(long), 1)
	spent(1000, 14)
	want(t, "larger than the whole", c.large, []int(nil))
	want(t, "balance", c.balance(), error(nil))
}

// The usage of the server replaces the planned cost of a request.
func TestSpendingIsCorrected(t *testing.T) {
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
		q, _ := newBudgetQueue(1, limits.Budget{PromptTokensPerHour: 1000})
		it := costs(planned(0, 0, "", 0), 10, 4)
		q.pay(it, at(0))
		q.correct(it, c.req.Outcome, c.req.Usage)
		want(t, name, q.Spending.Spent(at(0)), limits.Cost{Requests: 1, Prompt: c.prompt, Output: c.output})
	}
}

// A second send costs what the first one cost, and does not happen where the budget has no room for it.
func TestSecondSendIsCharged(t *testing.T) {
	q, _ := newBudgetQueue(9, limits.Budget{RequestsPerMinute: 3, OutputTokensPerDay: 50})
	q.add(q.loops[0], costs(planned(0, 0, "", 0), 7, 20))
	q.fire(at(0))
	rows, _ := takeAll(q, at(0))
	want(t, "sent", rows, []int{0})
	row := costs(planned(0, 0, "", 0), 7, 20)
	row.charged = at(0)
	want(t, "forbidden by", q.SendAgain(row, at(5)), limits.Bound(""))
	want(t, "spent", q.Spending.Spent(at(5)), limits.Cost{Requests: 2, Prompt: 14, Output: 40})
	want(t, "forbidden by", q.SendAgain(row, at(5)), limits.OutputTokensPerDay)
	want(t, "spent", q.Spending.Spent(at(5)), limits.Cost{Requests: 2, Prompt: 14, Output: 40})
	free, _ := newQueue(9)
	want(t, "without a budget", free.SendAgain(row, at(5)), limits.Bound(""))
}
