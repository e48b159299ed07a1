package replay

import (
	"time"

	"replayd/internal/measure"
)

// A bound is one of a budget's, by its key in the configuration; "" is none.
type bound string

const (
	requestsPerMinute   bound = "requests_per_minute"
	promptTokensPerHour bound = "prompt_tokens_per_hour"
	outputTokensPerDay  bound = "output_tokens_per_day"
)

// most is the amount of a bound.
func (b Budget) most(of bound) int64 {
	switch of {
	case requestsPerMinute:
		return b.RequestsPerMinute
	case promptTokensPerHour:
		return b.PromptTokensPerHour
	case outputTokensPerDay:
		return b.OutputTokensPerDay
	}
	return 0
}

// A purse is a workload's budget and what was spent of it; nil has no bound and keeps no count.
type purse struct {
	Budget
	spent  *ledger
	tell   func(*item)        // hears of each request that alone is more than the whole budget
	turned func(spell, bound) // hears when the budget begins to refuse requests and for which bound, and when that is over
}

func newPurse(b Budget) *purse {
	if b == (Budget{}) {
		return nil
	}
	return &purse{Budget: b, spent: newLedger()}
}

// empty says whether an item would be refused now.
func (p *purse) empty(it *item, now time.Time) bool {
	return p != nil && it.err == nil && p.spent.spent(now, costOf(it), p.Budget)
}

func costOf(it *item) cost { return cost{1, int64(it.due.InputTokens), int64(it.due.OutputTokens)} }

// large says of an item whether it alone is more than the whole budget, and tells of it.
func (p *purse) large(it *item) bool {
	if p == nil || it.err != nil {
		return false
	}
	c := costOf(it)
	if !over(c.prompt, p.PromptTokensPerHour) && !over(c.output, p.OutputTokensPerDay) {
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
	charged, full := p.spent.charge(now, costOf(it), p.Budget)
	if s, turned := p.spent.turn(now, full != ""); turned {
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
	p.spent.amend(it.charged, cost{-it.cost.requests, -it.cost.prompt, -it.cost.output})
	it.charged = time.Time{}
}

// correct puts what the server says that a request has cost in the place of what was charged. Chunks that were counted
// for want of anything better are a lower bound, and a prompt of no tokens is none that the server has counted.
func (p *purse) correct(it *item, req *measure.Request) {
	if p == nil || it.charged.IsZero() || req.Outcome != measure.OK {
		return
	}
	used := cost{prompt: int64(req.Usage.Prompt), output: int64(req.Usage.Output)}
	if req.Usage.Source == measure.UsageCounted && it.due.OutputTokens > 0 {
		used.output = max(used.output, it.cost.output)
	}
	if used.prompt == 0 {
		used.prompt = it.cost.prompt
	}
	p.spent.amend(it.charged, cost{prompt: used.prompt - it.cost.prompt, output: used.output - it.cost.output})
	var unplanned cost
	if it.due.InputTokens == 0 {
		unplanned.prompt = int64(req.Usage.Prompt)
	}
	if it.due.OutputTokens == 0 {
		unplanned.output = int64(req.Usage.Output)
	}
	p.spent.learn(unplanned)
}

// spellQuiet is how long a budget has refused nothing when its spell is over, so that it is not told of at the rate of rows.
const spellQuiet = time.Minute

// A spell is a time in which a budget refuses requests; the zero value is none.
type spell struct {
	from, last time.Time // when it refused the first and the latest
	refused    int
}

// turn notes that a request was refused or let through. It says whether the spell begins or is over by that, and which:
// the one that is over has refused nothing for a minute before this request went through.
func (s *spell) turn(now time.Time, refused bool) (of spell, turned bool) {
	switch {
	case refused:
		if s.refused == 0 {
			s.from, turned = now, true
		}
		s.last = now
		s.refused++
		return *s, turned
	case s.refused > 0 && now.Sub(s.last) >= spellQuiet:
		of, *s = *s, spell{}
		return of, true
	}
	return *s, false
}
