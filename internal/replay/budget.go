package replay

import (
	"sync"
	"time"

	"replayd/internal/measure"
)

// A Budget bounds what a workload may cost its target, whatever its plan says. 0 is no bound, the zero value has none.
//
// No minute, hour or day, wherever it begins, has more than the budget let through: each is a sliding window of 60 slots
// and the running one beside them, which makes a budget stricter than it says by a sixtieth at most. A request counts
// from the instant at which it is let through to wait for a lane. It costs what the trace says, tokens that it does not
// say cost nothing at first; when it has ended ok, it costs what the server says, and a server that takes more tokens
// than were planned is the one way past a budget. What is dropped later costs nothing, what fails keeps its cost.
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
}

func newLedger() *ledger {
	return &ledger{
		requests: newWindow(budgetSlots, time.Second),
		prompt:   newWindow(budgetSlots, time.Minute),
		output:   newWindow(budgetSlots, 24*time.Minute),
	}
}

// charge takes a cost, unless that is more than a budget has left.
func (l *ledger) charge(now time.Time, c cost, b Budget) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests.advance(now)
	l.prompt.advance(now)
	l.output.advance(now)
	// A request of unknown length takes a token at least: it does not fit where nothing is left.
	if over(l.requests.sum+c.requests, b.RequestsPerMinute) || over(l.prompt.sum+max(1, c.prompt), b.PromptTokensPerHour) ||
		over(l.output.sum+max(1, c.output), b.OutputTokensPerDay) {
		return false
	}
	l.add(now, c)
	return true
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

// over says whether an amount is more than a bound; 0 is none.
func over(n, bound int64) bool { return bound > 0 && n > bound }

// A purse is a workload's budget and what was spent of it; nil has no bound.
type purse struct {
	Budget
	spent *ledger
	large func(*item) // hears of each request that alone is more than the whole budget
}

func newPurse(b Budget) *purse {
	if b == (Budget{}) {
		return nil
	}
	return &purse{Budget: b, spent: newLedger()}
}

func planCost(it *item) cost { return cost{1, int64(it.due.InputTokens), int64(it.due.OutputTokens)} }

// pay charges an item that is let through; false: it does not fit.
func (p *purse) pay(it *item, now time.Time) bool {
	if p == nil {
		return true
	}
	c := planCost(it)
	if over(c.prompt, p.PromptTokensPerHour) || over(c.output, p.OutputTokensPerDay) {
		p.large(it)
		return false
	}
	if !p.spent.charge(now, c, p.Budget) {
		return false
	}
	it.charged = now
	return true
}

// refund gives back what an item was charged that is not sent.
func (p *purse) refund(it *item) {
	if p == nil || it.charged.IsZero() {
		return
	}
	c := planCost(it)
	p.spent.amend(it.charged, cost{-c.requests, -c.prompt, -c.output})
	it.charged = time.Time{}
}

// correct puts what the server says that a request has cost in the place of what was planned. Chunks that were counted
// for want of anything better are a lower bound.
func (p *purse) correct(it *item, req *measure.Request) {
	if p == nil || it.charged.IsZero() || req.Outcome != measure.OK {
		return
	}
	planned, used := planCost(it), req.Usage
	c := cost{prompt: int64(used.Prompt) - planned.prompt, output: int64(used.Output) - planned.output}
	if used.Source == measure.UsageCounted {
		c = cost{output: max(0, c.output)}
	}
	p.spent.amend(it.charged, c)
}
