package replay

import (
	"slices"
	"time"

	"replayd/internal/dispatch"
)

// The two sides of a comparison answer at different speeds, so their sessions would drift apart, and no two requests of
// a row could be compared. So a row of a session comes after its parents on both sides: both send it at the same
// instant, the waits after the later end.

// bothEndedAfter is the time after the later end at which a row counts as ended on both sides. Within it both learn
// of it, so neither sends the next row first.
const bothEndedAfter = time.Millisecond

// has says that a side has read a row.
func (s *Sides) has(of side, id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.rows[id]
	if t == nil {
		t = &twin{}
		s.rows[id] = t
	}
	t.has[of-baseline] = true
}

// end says that a side's row has ended. If the other side has not read it, or has dropped it, this side goes on by
// itself.
func (s *Sides) end(of side, r *dispatch.Row, at, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.Due.ID()
	t, own := s.rows[id], of-baseline
	if t == nil {
		return
	}
	t.over[own], t.rows[own], t.at[own] = true, r, at
	waited := t.has[1-own]
	if waited && !t.over[1-own] {
		return
	}
	delete(s.rows, id)
	for k, row := range t.rows {
		end := t.at[k]
		switch other := t.at[1-k]; {
		case end.IsZero():
			continue
		case !other.IsZero():
			end = slices.MaxFunc([]time.Time{end, other}, time.Time.Compare).Add(bothEndedAfter)
		case waited: // the other side has failed by now
			end = slices.MaxFunc([]time.Time{end, now}, time.Time.Compare)
		}
		s.ended[k] = append(s.ended[k], bothEnded{row, end})
		wake(s.news[k])
	}
}

// popEnded returns the rows that have ended on both sides since the last call.
func (s *Sides) popEnded(of side) []bothEnded {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.ended[of-baseline]
	s.ended[of-baseline] = nil
	return all
}
