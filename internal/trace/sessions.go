package trace

import "time"

// sessions counts the turns of each session and the time between them. Rows come in due order.
type sessions struct {
	open         map[string]session
	turns        counts
	gaps, delays spread
}

type session struct {
	turns int
	last  time.Duration // when its last turn so far is due
}

func (s *sessions) add(r *Record, timed bool) {
	if r.Session == "" {
		return
	}
	before := s.open[r.Session]
	switch {
	case before.turns == 0:
	case r.Delay > 0:
		s.delays.add(r.Delay)
	case timed:
		s.gaps.add(r.Offset - before.last)
	}
	s.open[r.Session] = session{before.turns + 1, r.Offset}
}

// settle counts the sessions when all rows have come.
func (s *sessions) settle() {
	for _, one := range s.open {
		s.turns.add(min(one.turns, MaxTokens))
	}
}

func (s *sessions) fill(a *Analysis) {
	a.Turns, a.TurnShape = s.turns.distribution(), s.turns.weighted().shape()
	a.TurnGaps, a.Delays = s.gaps.seconds().summary(), s.delays.seconds().summary()
}
