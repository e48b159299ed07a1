package replay

import (
	"context"
	"time"

	"replayd/internal/dispatch"
)

// The two sides of a comparison answer at different speeds, so their sessions would drift apart, and no two requests of a row could be
// compared. So a row of a session comes after its parents on both sides: both send it at the same instant, the waits after the later end.

// A twin is a row of a session on both sides, until it has ended on those that have it.
type twin struct {
	has  [2]bool // the side has read the row
	over [2]bool
	rows [2]*dispatch.Row
	at   [2]time.Time // end of the answer; zero: no row comes after it
}

// A bothEnded is a row for which its side has waited.
type bothEnded struct {
	row *dispatch.Row
	at  time.Time
}

// tellTime is the time after the later end at which a row counts as ended on both sides. Within it both are told, so neither sends
// the next row first.
const tellTime = time.Millisecond

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

// end says that a side's row has ended. If the other side has not read it, or has dropped it, this side goes on by itself.
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
			end = latest(end, other).Add(tellTime)
		case waited: // the other side has failed by now
			end = latest(end, now)
		}
		s.ended[k] = append(s.ended[k], bothEnded{row, end})
		select {
		case s.news[k] <- struct{}{}:
		default:
		}
	}
}

// take returns the rows that have ended on both sides since the last call.
func (s *Sides) take(of side) []bothEnded {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.ended[of-baseline]
	s.ended[of-baseline] = nil
	return all
}

// hear tells the dispatcher of rows that have ended on both sides, until ctx is done.
func (r *Runner) hear(ctx context.Context) {
	side := r.w.side()
	for {
		select {
		case <-r.w.Sides.news[side-baseline]:
		case <-ctx.Done():
			return
		}
		for _, e := range r.w.Sides.take(side) {
			r.tell(dispatch.Event{Kind: dispatch.BothEnded, Row: e.row, At: e.at})
		}
	}
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
