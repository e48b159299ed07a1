package limits

import (
	"math"
	"time"
)

// A Budget bounds the requests and tokens of a workload. A bound of 0 is none, and the zero value has none.
//
// Each bound holds for every minute, hour or day, wherever it begins: it is a sliding window of 60 slots and the running slot, so it
// is stricter by up to a sixtieth. A request is charged when a lane takes it, and dropped if it does not fit; a request that no lane
// takes costs nothing. The charge is the length in the trace. A row without lengths reserves the mean of such requests: 1 token until
// the first has ended, and at most the whole bound. A request that ends ok is corrected to the server's usage; a failed one keeps its
// charge. So a budget can be exceeded only by usage above plan or mean, of at most as many requests as there are lanes.
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
	return exceeds(c.Prompt, b.PromptTokensPerHour) || exceeds(c.Output, b.OutputTokensPerDay)
}

// A Cost is the charge of requests: their number and tokens.
type Cost struct{ Requests, Prompt, Output int64 }

// Spending is the sum of charges in the last minute, hour and day. It is kept over reloads, so that a reload does not reset a budget.
type Spending struct {
	requests, prompt, output window
	input, answer            mean // of requests without lengths in the trace
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

// Charge adds a cost, unless it exceeds a bound: then full names it. A length of 0 is charged by the mean. charged is the whole
// charge, for a later refund.
func (s *Spending) Charge(now time.Time, c Cost, b Budget) (charged Cost, full Bound) {
	if c, full = s.fit(now, c, b); full != "" {
		return Cost{}, full
	}
	s.Amend(now, c)
	return c, ""
}

// Full is the bound that a cost would exceed now; "": it fits.
func (s *Spending) Full(now time.Time, c Cost, b Budget) Bound {
	_, full := s.fit(now, c, b)
	return full
}

// fit fills unknown lengths of a cost by the mean, and gives the first bound that it would exceed.
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

// Learn adds lengths that the trace lacks to the means; 0 is ignored.
func (s *Spending) Learn(c Cost) {
	s.input.learn(c.Prompt)
	s.answer.learn(c.Output)
}

// Turn notes that a request was refused or let through, and says whether a spell has begun or is over by that.
func (s *Spending) Turn(now time.Time, refused bool) (Spell, bool) {
	return s.spell.Turn(now, refused)
}

// exceeds says whether an amount is more than a bound; 0 is none.
func exceeds(n, bound int64) bool { return bound > 0 && n > bound }

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

// reserve is the charge of an unknown length: at least 1, at most the bound.
func (m *mean) reserve(bound int64) int64 {
	n := max(1, int64(math.Ceil(m.value)))
	if bound > 0 {
		n = min(n, bound)
	}
	return n
}

// spellQuiet is how long a bound refuses nothing until its spell is over. It limits log lines to two a spell.
const spellQuiet = time.Minute

// A Spell is a period in which a bound refuses requests; the zero value is none.
type Spell struct {
	From, Last time.Time // when it refused the first and the latest
	Refused    int
}

// Turn records that a request was refused or admitted. turned: a spell begins, or is over, since nothing was refused for a minute
// before this request. of is that spell.
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
