package synth

import (
	"math"
	"time"

	"replayd/internal/fault"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// Synthetic are rows of drawn lengths without end: single requests, conversations one after the other, or the conversations
// of users who go on all the time. They are a function of this struct alone.
//
// A conversation's turn sends all that was said before: the system prompt, each message and its answer, and the turn's own
// message. The part of the system prompt has the same ID in every row, all others have IDs of their own. Rows that have
// neither turns nor a system prompt are plain lengths, without parts.
type Synthetic struct {
	Input  Normal // tokens of a message
	Output Normal // tokens of an answer; a mean of 0: rows do not say how long it is to be
	Pairs  []Pair // in place of the two above: each conversation draws one, and all its turns keep to it

	System int // tokens of the system prompt, the same in all rows; 0: none. It comes on top of Input, as with AIPerf

	Turns Normal        // of a conversation; a mean of 0 is 1
	Delay time.Duration // mean wait between an answer and the next turn
	// DelayStddev is the standard deviation of the waits.
	DelayStddev time.Duration

	Users int     // conversations under way at once, whose turns take rounds: rows i, i + Users, … are one user's; 0 is 1
	Rate  float64 // users' requests per second together: Gap is set, and users begin amid conversations; 0: neither

	Seed uint64
}

// Bounds of Synthetic.
const (
	MaxTurns = 10_000
	MaxUsers = 1 << 20
	MaxDelay = 24 * time.Hour
)

// Check returns every fault, with the field in lower case as its key.
func (s *Synthetic) Check() (f fault.List) {
	longest := s.Input.Mean + s.Output.Mean
	if len(s.Pairs) == 0 {
		s.Input.check(&f, "input", "input.stddev", 1, maxTokens)
		s.Output.check(&f, "output", "output.stddev", 0, maxTokens)
	} else {
		if s.Input != (Normal{}) || s.Output != (Normal{}) {
			f.Add("pairs", "want none beside input and output, got %d", len(s.Pairs))
		}
		var found fault.List
		longest, found = checkPairs(s.Pairs)
		for _, one := range found {
			f.Add("pairs", "%v", one)
		}
	}
	f.If(s.System < 0 || s.System > trace.MaxTokens, "system", "want 0 to %d tokens, got %d", trace.MaxTokens, s.System)
	s.Turns.check(&f, "turns", "turns.stddev", 0, MaxTurns)
	if n := float64(s.System) + max(1, s.Turns.Mean)*longest; len(f) == 0 && n > maxTokens {
		f.Add("turns", "want conversations of at most %d tokens, got about %.0f", trace.MaxTokens, n)
	}
	delay := "delay"
	if s.Delay >= 0 && s.Delay <= MaxDelay {
		delay = "delay_stddev"
	}
	switch {
	case s.Delay < 0 || s.DelayStddev < 0:
		f.Add(delay, "want 0s or more, got %v and a standard deviation of %v", s.Delay, s.DelayStddev)
	case max(s.Delay, s.DelayStddev) > MaxDelay:
		f.Add(delay, "want at most %v, got %v and a standard deviation of %v", MaxDelay, s.Delay, s.DelayStddev)
	}
	f.If(s.Users < 0 || s.Users > MaxUsers, "users", "want 0 to %d, got %d", MaxUsers, s.Users)
	switch {
	case !(s.Rate >= 0) || math.IsInf(s.Rate, 1):
		f.Add("rate", "want 0 or more requests per second, got %v", s.Rate)
	case s.Rate > 0 && s.Users == 0:
		f.Add("rate", "want users too, got none")
	case s.Rate > 0 && (s.Delay > 0 || s.DelayStddev > 0):
		f.Add("delay", "want none with a rate, which sets the time between turns, got %v", s.Delay)
	}
	return f
}

// Rows returns what gives the rows one after the other, from the first on. There is no last one. Memory grows with Users,
// and with the turns of the conversations that are under way.
func (s Synthetic) Rows() (next func() trace.Record) {
	users := make([]user, max(1, s.Users))
	var left []int
	if s.Rate > 0 {
		left = schedule.TurnsLeft(len(users), int(math.Round(s.Turns.Mean)))
	}
	number := 0
	return func() trace.Record {
		slot := number % len(users)
		r := users[slot].next(&s, slot, left)
		r.Number, r.Line = number, number+1
		number++
		return r
	}
}

func (s *Synthetic) plain() bool { return !s.talks() && s.System == 0 }

// talks reports whether conversations can have several turns.
func (s *Synthetic) talks() bool { return s.Turns.Mean > 1 || s.Turns.Stddev > 0 || s.Users > 0 }

func (s *Synthetic) gap() time.Duration {
	if s.Rate == 0 {
		return 0
	}
	return time.Duration(math.Round(min(float64(s.Users)/s.Rate*float64(time.Second), math.MaxInt64/2)))
}
