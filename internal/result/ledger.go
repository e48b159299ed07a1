package result

import (
	"fmt"
	"slices"
	"time"

	"replayd/internal/measure"
)

// mostCounted is the largest count of a ledger that is accepted from a file. It keeps sums of counts from overflowing.
const mostCounted = 1 << 50

// mostSessionTime likewise bounds the time of all sessions in one part: 50 years.
const mostSessionTime = 50 * 366 * 24 * time.Hour

// balanced checks a ledger from a file.
func balanced(l measure.Ledger) error {
	if max(l.Expected, l.Filtered) > mostCounted {
		return fmt.Errorf("ledger: want counts of at most %d, got %d expected and %d filtered", int64(mostCounted), l.Expected, l.Filtered)
	}
	for o, n := range l.Outcomes {
		if !slices.Contains(measure.Outcomes(), o) || n > mostCounted {
			return fmt.Errorf("ledger: outcomes: want those of %v, at most %d each, got %q: %d", measure.Outcomes(), int64(mostCounted), o, n)
		}
	}
	for why, n := range l.Dropped {
		if !slices.Contains(measure.DropReasons(), why) || why == measure.Filtered || n > mostCounted {
			return fmt.Errorf("ledger: dropped: want those of %v, at most %d each, got %q: %d", measure.DropReasons(), int64(mostCounted), why, n)
		}
	}
	for o, n := range l.Sessions.Outcomes {
		if !slices.Contains(measure.SessionOutcomes(), o) || n > mostCounted {
			return fmt.Errorf("ledger: sessions: outcomes: want those of %v, at most %d each, got %q: %d", measure.SessionOutcomes(), int64(mostCounted), o, n)
		}
	}
	if s := l.Sessions; max(s.Begun, s.Requests, s.Prompt) > mostCounted || slices.Max(s.Time[:]) > mostSessionTime {
		return fmt.Errorf("ledger: sessions: want counts of at most %d and times of at most %v, got more", int64(mostCounted), mostSessionTime)
	}
	return l.Balance()
}

// Statistics returns the figures of the run, including those of its ledger.
func (r Run) Statistics() Statistics {
	f := Aggregate(r.Rows, r.Settings)
	l := r.Ledger
	if l == nil {
		f.addSessions(r.Sessions, measure.Sessions{})
		return f
	}
	f.single("expected_request_count", "Expected Request Count", "requests", float64(l.Expected))
	f.single("dropped_request_count", "Dropped Request Count", "requests", float64(l.Unsent()))
	if share, ok := l.Attainment(); ok {
		f.single("attainment", "Attainment", "ratio", share)
	}
	if share, ok := l.ServiceAttainment(); ok {
		f.single("service_attainment", "Service Attainment", "ratio", share)
	}
	f.addSessions(r.Sessions, l.Sessions)
	return f
}
