package replay

import (
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
)

// A purse is a workload's budget and what was spent of it; nil has no bound and keeps no count.
type purse struct {
	limits.Budget
	spent  *limits.Spending
	tell   func(*item)                      // hears of each request that alone is more than the whole budget
	turned func(limits.Spell, limits.Bound) // hears when the budget begins to refuse requests and for which bound, and when that is over
}

func newPurse(b limits.Budget) *purse {
	if b == (limits.Budget{}) {
		return nil
	}
	return &purse{Budget: b, spent: limits.NewSpending()}
}

// empty says whether an item would be refused now.
func (p *purse) empty(it *item, now time.Time) bool {
	return p != nil && it.err == nil && p.spent.Full(now, costOf(it), p.Budget)
}

func costOf(it *item) limits.Cost {
	return limits.Cost{Requests: 1, Prompt: int64(it.due.InputTokens), Output: int64(it.due.OutputTokens)}
}

// large says of an item whether it alone is more than the whole budget, and tells of it.
func (p *purse) large(it *item) bool {
	if p == nil || it.err != nil {
		return false
	}
	if !p.Exceeds(costOf(it)) {
		return false
	}
	p.tell(it)
	return true
}

// pay charges an item that a lane is to send; false: it does not fit. One without a message costs nothing: nothing is sent.
func (p *purse) pay(it *item, now time.Time) bool {
	if p == nil || it.err != nil {
		return true
	}
	if p.large(it) {
		return false
	}
	charged, full := p.spent.Charge(now, costOf(it), p.Budget)
	if s, turned := p.spent.Turn(now, full != ""); turned {
		p.turned(s, full)
	}
	if full != "" {
		return false
	}
	it.charged, it.cost = now, charged
	return true
}

// refund gives back what an item was charged that is not sent.
func (p *purse) refund(it *item) {
	if p == nil || it.charged.IsZero() {
		return
	}
	p.spent.Amend(it.charged, limits.Cost{Requests: -it.cost.Requests, Prompt: -it.cost.Prompt, Output: -it.cost.Output})
	it.charged = time.Time{}
}

// correct puts what the server says that a request has cost in the place of what was charged. Chunks that were counted
// for want of anything better are a lower bound, and a prompt of no tokens is none that the server has counted.
func (p *purse) correct(it *item, req *measure.Request) {
	if p == nil || it.charged.IsZero() || req.Outcome != measure.OK {
		return
	}
	used := limits.Cost{Prompt: int64(req.Usage.Prompt), Output: int64(req.Usage.Output)}
	if req.Usage.Source == measure.UsageCounted && it.due.OutputTokens > 0 {
		used.Output = max(used.Output, it.cost.Output)
	}
	if used.Prompt == 0 {
		used.Prompt = it.cost.Prompt
	}
	p.spent.Amend(it.charged, limits.Cost{Prompt: used.Prompt - it.cost.Prompt, Output: used.Output - it.cost.Output})
	var unplanned limits.Cost
	if it.due.InputTokens == 0 {
		unplanned.Prompt = int64(req.Usage.Prompt)
	}
	if it.due.OutputTokens == 0 {
		unplanned.Output = int64(req.Usage.Output)
	}
	p.spent.Learn(unplanned)
}
