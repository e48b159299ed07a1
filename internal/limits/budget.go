package limits

import (
	"math"
	"time"

	"replayd/internal/fault"
)

// A Budget bounds the requests and tokens of a workload. A bound of 0 is off. The zero value has no bounds.
//
// A bound is a sliding window over a minute, an hour or a day. The window has 60 full slots and the current one, so the
// bound is stricter than its number by up to 1/60.
//
// A request is charged when a lane takes it. A request that does not fit is dropped and costs nothing. The charge is the
// length in the trace. A row without a length is charged the mean length of such requests: at least 1 token, at most the
// whole bound. When a request ends ok, its charge is corrected to the usage that the server reports. A failed request keeps
// its charge. So a budget can only be exceeded by usage above the charge, by at most as many requests as there are lanes.
type Budget struct {
	RequestsPerMinute   int64 `koanf:"requests_per_minute"`
	PromptTokensPerHour int64 `koanf:"prompt_tokens_per_hour"` // includes tokens that the server has cached
	OutputTokensPerDay  int64 `koanf:"output_tokens_per_day"`
}

// Check returns the faults of a budget.
func (b *Budget) Check() (f fault.List) {
	for _, bound := range []Bound{RequestsPerMinute, PromptTokensPerHour, OutputTokensPerDay} {
		f.AtLeast(string(bound), int(b.Most(bound)), 0)
	}
	return f
}

// budgetSlots is the number of slots in a sliding window: 60 full ones and the current one.
const budgetSlots = 60 + 1

// A Bound is a bound of a budget, named by its configuration key; "" is none.
type Bound string

// Bounds of a budget.
const (
	RequestsPerMinute   Bound = "requests_per_minute"
	PromptTokensPerHour Bound = "prompt_tokens_per_hour"
	OutputTokensPerDay  Bound = "output_tokens_per_day"
)

// Most returns the amount of a bound.
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

// Exceeds reports whether a cost alone exceeds the budget.
func (b Budget) Exceeds(c Cost) bool {
	return exceeds(c.Prompt, b.PromptTokensPerHour) || exceeds(c.Output, b.OutputTokensPerDay)
}

// A Cost is a number of requests and their tokens.
type Cost struct{ Requests, Prompt, Output int64 }

// Spending is the sum of charges in the last minute, hour and day. It survives reloads, so that a reload does not reset a
// budget.
type Spending struct {
	requests, prompt, output window
	input, answer            mean // mean lengths of requests whose rows have no length
	Spell                         // of refusals
}

// NewSpending returns a Spending without charges.
func NewSpending() *Spending {
	return &Spending{
		requests: newWindow(budgetSlots, time.Second),
		prompt:   newWindow(budgetSlots, time.Minute),
		output:   newWindow(budgetSlots, 24*time.Minute),
	}
}

// Charge adds a cost, unless the cost would exceed a bound: full is that bound. An unknown length (0) is charged the mean.
// charged is the complete charge, for a later correction by Amend.
func (s *Spending) Charge(now time.Time, c Cost, b Budget) (charged Cost, full Bound) {
	if c, full = s.fit(now, c, b); full != "" {
		return Cost{}, full
	}
	s.Amend(now, c)
	return c, ""
}

// Full returns the bound that a cost would exceed now; "": it fits.
func (s *Spending) Full(now time.Time, c Cost, b Budget) Bound {
	_, full := s.fit(now, c, b)
	return full
}

// fit replaces unknown lengths of a cost by the mean. It returns the first bound that the cost would exceed.
func (s *Spending) fit(now time.Time, c Cost, b Budget) (whole Cost, full Bound) {
	spent := s.Spent(now)
	if c.Prompt == 0 {
		c.Prompt = s.input.reserve(b.PromptTokensPerHour)
	}
	if c.Output == 0 {
		c.Output = s.answer.reserve(b.OutputTokensPerDay)
	}
	switch {
	case exceeds(spent.Requests+c.Requests, b.RequestsPerMinute):
		return c, RequestsPerMinute
	case exceeds(spent.Prompt+c.Prompt, b.PromptTokensPerHour):
		return c, PromptTokensPerHour
	case exceeds(spent.Output+c.Output, b.OutputTokensPerDay):
		return c, OutputTokensPerDay
	}
	return c, ""
}

// Spent returns the requests of the last minute, the prompt tokens of the last hour and the output tokens of the last day.
func (s *Spending) Spent(now time.Time) Cost {
	return Cost{s.requests.total(now), s.prompt.total(now), s.output.total(now)}
}

// Amend corrects the charge of a request that was charged at an instant: it adds c.
func (s *Spending) Amend(at time.Time, c Cost) {
	s.requests.add(at, c.Requests)
	s.prompt.add(at, c.Prompt)
	s.output.add(at, c.Output)
}

// Learn adds lengths that the trace lacks to the means. A length of 0 is ignored.
func (s *Spending) Learn(c Cost) {
	s.input.learn(c.Prompt)
	s.answer.learn(c.Output)
}

// exceeds reports whether an amount is more than a bound. A bound of 0 is off.
func exceeds(n, bound int64) bool { return bound > 0 && n > bound }

// A mean is a mean length. After meanOver values it is a moving average.
type mean struct{ n, value float64 }

// meanOver is the approximate number of requests in a mean.
const meanOver = 100

func (m *mean) learn(tokens int64) {
	if tokens > 0 {
		m.n = min(m.n+1, meanOver)
		m.value += (float64(tokens) - m.value) / m.n
	}
}

// reserve returns the charge of an unknown length: at least 1, at most the bound.
func (m *mean) reserve(bound int64) int64 {
	n := max(1, int64(math.Ceil(m.value)))
	if bound > 0 {
		n = min(n, bound)
	}
	return n
}

// spellQuiet is the time without a refusal after which a spell is over. It limits the log to two lines per spell.
const spellQuiet = time.Minute

// A Spell is a period in which a bound refuses requests. The zero value is no spell.
type Spell struct {
	From, Last time.Time // first and latest refusal
	Refused    int
}

// Turn records that a request was refused or admitted. turned reports whether a spell of refusals has begun or ended. A
// spell has ended if nothing was refused in the minute before this request. of is the spell.
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
