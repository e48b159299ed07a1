package limits

import (
	"math"
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

// A Bound is one of a budget's, by its key in the configuration; "" is none.
type Bound string

// Bounds of a budget.
const (
	RequestsPerMinute   Bound = "requests_per_minute"
	PromptTokensPerHour Bound = "prompt_tokens_per_hour"
	OutputTokensPerDay  Bound = "output_tokens_per_day"
)

// Most is the amount of a bound.
func (b Budget) Most(of Bound) int64 {
	switch of {
	case RequestsPerMinute:
		return b.RequestsPerMinute
	case PromptTokensPerHour:
		return b.PromptTokensPerHour
	case OutputTokensPerDay:
		return b.OutputTokensPerDay
	}
	return 0
}

// Exceeds says whether a cost alone is more than the whole budget.
func (b Budget) Exceeds(c Cost) bool {
	return over(c.Prompt, b.PromptTokensPerHour) || over(c.Output, b.OutputTokensPerDay)
}

// A Cost is what a request takes from a budget: 1 request, and tokens.
type Cost struct{ Requests, Prompt, Output int64 }

// Spending is what was spent in the last minute, hour and day. It outlives a reload, so that a reload cannot be used to spend twice.
type Spending struct {
	requests, prompt, output window
	input, answer            mean // of those whose lengths the trace does not say
	spell                    Spell
}

// NewSpending gives a Spending of nothing.
func NewSpending() *Spending {
	return &Spending{
		requests: newWindow(budgetSlots, time.Second),
		prompt:   newWindow(budgetSlots, time.Minute),
		output:   newWindow(budgetSlots, 24*time.Minute),
	}
}

// Charge takes a cost, unless that is more than a budget has left. Lengths of 0 are reserved by the mean, and given back
// with the rest of what was charged.
func (s *Spending) Charge(now time.Time, c Cost, b Budget) (charged Cost, full Bound) {
	if c, full = s.fit(now, c, b); full != "" {
		return Cost{}, full
	}
	s.Amend(now, c)
	return c, ""
}

// Full is the bound of a budget that a cost would pass now; "": it fits.
func (s *Spending) Full(now time.Time, c Cost, b Budget) Bound {
	_, full := s.fit(now, c, b)
	return full
}

// fit gives what a cost is with what is not known of it, and the first bound that it would pass.
func (s *Spending) fit(now time.Time, c Cost, b Budget) (whole Cost, full Bound) {
	spent := s.Spent(now)
	if c.Prompt == 0 {
		c.Prompt = s.input.reserve(b.PromptTokensPerHour)
	}
	if c.Output == 0 {
		c.Output = s.answer.reserve(b.OutputTokensPerDay)
	}
	switch {
	case over(spent.Requests+c.Requests, b.RequestsPerMinute):
		return c, RequestsPerMinute
	case over(spent.Prompt+c.Prompt, b.PromptTokensPerHour):
		return c, PromptTokensPerHour
	case over(spent.Output+c.Output, b.OutputTokensPerDay):
		return c, OutputTokensPerDay
	}
	return c, ""
}

// Spent is the sum over the last minute of requests, over the last hour of prompt tokens, and over the last day of output tokens.
func (s *Spending) Spent(now time.Time) Cost {
	s.requests.advance(now)
	s.prompt.advance(now)
	s.output.advance(now)
	return Cost{s.requests.sum, s.prompt.sum, s.output.sum}
}

// Amend adds to the cost of a request that was charged at an instant.
func (s *Spending) Amend(at time.Time, c Cost) {
	s.requests.add(at, c.Requests)
	s.prompt.add(at, c.Prompt)
	s.output.add(at, c.Output)
}

// Learn takes note of the lengths that a request had and the trace does not say; 0 is none to be learnt.
func (s *Spending) Learn(c Cost) {
	s.input.learn(c.Prompt)
	s.answer.learn(c.Output)
}

// Turn notes that a request was refused or let through, and says whether a spell has begun or is over by that.
func (s *Spending) Turn(now time.Time, refused bool) (Spell, bool) {
	return s.spell.Turn(now, refused)
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

// spellQuiet is how long a budget has refused nothing when its spell is over, so that it is not told of at the rate of rows.
const spellQuiet = time.Minute

// A Spell is a time in which a budget refuses requests; the zero value is none.
type Spell struct {
	From, Last time.Time // when it refused the first and the latest
	Refused    int
}

// Turn notes that a request was refused or let through. It says whether the spell begins or is over by that, and which:
// the one that is over has refused nothing for a minute before this request went through.
func (s *Spell) Turn(now time.Time, refused bool) (of Spell, turned bool) {
	switch {
	case refused:
		if s.Refused == 0 {
			s.From, turned = now, true
		}
		s.Last = now
		s.Refused++
		return *s, turned
	case s.Refused > 0 && now.Sub(s.Last) >= spellQuiet:
		of, *s = *s, Spell{}
		return of, true
	}
	return *s, false
}
