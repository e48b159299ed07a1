package analysis

import (
	"time"

	"replayd/internal/stats"
	"replayd/internal/trace"
)

// sessions counts the turns of each session and the time between them. Rows come in due order.
type sessions struct {
	open         map[string]session
	gaps, delays stats.DurationCounts
}

type session struct {
	turns int
	last  time.Duration // due time of its latest turn
}

func (s *sessions) add(r *trace.Record, timed bool) {
	if r.Session == "" {
		return
	}
	before := s.open[r.Session]
	switch {
	case before.turns == 0:
	case len(r.After) > 0: // it waits for its parents
	case r.Delay > 0:
		s.delays.Add(r.Delay)
	case timed:
		s.gaps.Add(r.Offset - before.last)
	}
	s.open[r.Session] = session{before.turns + 1, r.Offset}
}

// fill counts the turns of each session, after the last row.
func (s *sessions) fill(a *Analysis) {
	var turns stats.Counts
	for _, one := range s.open {
		turns.Add(min(one.turns, trace.MaxTokens))
	}
	a.Turns = turns.Summary()
	a.TurnGaps, a.Delays = s.gaps.Seconds().Summary(), s.delays.Seconds().Summary()
}
