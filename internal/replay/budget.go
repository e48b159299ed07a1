package replay

import (
	"math"
	"sync"
	"time"
)

// A Budget bounds what a workload may cost its target, whatever its plan says. 0 is no bound, the zero value has none.
//
// No minute, hour or day, wherever it begins, has more than the budget handed to lanes: each is a sliding window of 60
// slots and the running one beside them, which makes a budget stricter than it says by a sixtieth at most. A request is
// charged when a lane gets it, and dropped when it does not fit then; what never comes to a lane costs nothing. It costs
// what the trace says. Where that says no length, it reserves what such requests have cost lately, in the mean: 1 token
// until the first of them has ended, and no more than the whole bound. When a request has ended ok, it costs what the server
// says; what fails keeps its cost. So what goes past a budget is what a server takes beyond plan or mean, for no more
// requests than there are lanes.
type Budget struct {
	RequestsPerMinute   int64
	PromptTokensPerHour int64 // those that the server has in its cache count too
	OutputTokensPerDay  int64
}

// budgetSlots are those of a sliding window: 60, and one that is running.
const budgetSlots = 60 + 1

// A cost is what a request takes from a budget.
type cost struct{ requests, prompt, output int64 }

// A ledger is what was spent in the last minute, hour and day. A runner shares it with its successor, so that a reload
// cannot be used to spend twice. Its lock is taken with a runner's held, never the other way round.
type ledger struct {
	mu                       sync.Mutex
	requests, prompt, output window
	input, answer            mean // of those whose lengths the trace does not say
	spell                    spell
}

func newLedger() *ledger {
	return &ledger{
		requests: newWindow(budgetSlots, time.Second),
		prompt:   newWindow(budgetSlots, time.Minute),
		output:   newWindow(budgetSlots, 24*time.Minute),
	}
}

// charge takes a cost, unless that is more than a budget has left. Lengths of 0 are reserved by the mean, and given back
// with the rest of what was charged.
func (l *ledger) charge(now time.Time, c cost, b Budget) (charged cost, full bound) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c, full = l.fit(now, c, b); full != "" {
		return cost{}, full
	}
	l.add(now, c)
	return c, ""
}

// spent says whether a cost would not fit now.
func (l *ledger) spent(now time.Time, c cost, b Budget) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, full := l.fit(now, c, b)
	return full != ""
}

// fit gives what a cost is with what is not known of it, and the first bound that it would pass.
func (l *ledger) fit(now time.Time, c cost, b Budget) (whole cost, full bound) {
	l.requests.advance(now)
	l.prompt.advance(now)
	l.output.advance(now)
	if c.prompt == 0 {
		c.prompt = l.input.reserve(b.PromptTokensPerHour)
	}
	if c.output == 0 {
		c.output = l.answer.reserve(b.OutputTokensPerDay)
	}
	switch {
	case over(l.requests.sum+c.requests, b.RequestsPerMinute):
		return c, requestsPerMinute
	case over(l.prompt.sum+c.prompt, b.PromptTokensPerHour):
		return c, promptTokensPerHour
	case over(l.output.sum+c.output, b.OutputTokensPerDay):
		return c, outputTokensPerDay
	}
	return c, ""
}

// amend adds to the cost of a request that was charged at an instant.
func (l *ledger) amend(at time.Time, c cost) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(at, c)
}

func (l *ledger) add(at time.Time, c cost) {
	l.requests.add(at, c.requests)
	l.prompt.add(at, c.prompt)
	l.output.add(at, c.output)
}

// learn takes note of the lengths that a request had and the trace does not say; 0 is none to be learnt.
func (l *ledger) learn(c cost) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.input.learn(c.prompt)
	l.answer.learn(c.output)
}

// turn notes that a request was refused or let through, and says whether a spell has begun or is over by that.
func (l *ledger) turn(now time.Time, refused bool) (spell, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spell.turn(now, refused)
}

// over says whether an amount is more than a bound; 0 is none.
func over(n, bound int64) bool { return bound > 0 && n > bound }

// A mean is that of the latest lengths; the older one is, the less it weighs.
type mean struct{ n, value float64 }

// meanOver is of how many requests a mean is, about.
const meanOver = 100

func (m *mean) learn(tokens int64) {
	if tokens > 0 {
		m.n = min(m.n+1, meanOver)
		m.value += (float64(tokens) - m.value) / m.n
	}
}

// reserve is what a request of unknown length is taken to cost: something, and no more than could ever fit.
func (m *mean) reserve(bound int64) int64 {
	n := max(1, int64(math.Ceil(m.value)))
	if bound > 0 {
		n = min(n, bound)
	}
	return n
}
