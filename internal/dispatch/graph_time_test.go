package dispatch

import (
	"fmt"
	"time"

	"replayd/internal/measure"
)

// wellSpent checks the time and the tokens of a session that has ended against what has happened to its rows.
func (g *graphLife) wellSpent(s *measure.Session) error {
	var last *graphRow
	prompt, cached := 0, 0
	alone := true // no two of its requests ended at the last instant
	for _, row := range g.rows {
		if row.Due.Session != s.Name || row.outcome == "" {
			continue
		}
		if row.outcome == measure.OK {
			prompt, cached = prompt+10, cached+row.Due.Number%7
		}
		switch {
		case last == nil || row.end.After(last.end):
			last, alone = row, true
		case row.end.Equal(last.end):
			alone = false
		}
	}
	if s.Prompt != prompt || s.Cached != cached || s.CacheReported != (cached > 0) {
		return fmt.Errorf("want %d and %d tokens, got %+v", prompt, cached, s)
	}
	if last == nil {
		return nil
	}
	for part, d := range s.Time {
		if d < 0 {
			return fmt.Errorf("%v of %v", measure.SessionPart(part), d)
		}
	}
	if got, want := s.Makespan(), last.end.Sub(s.Begun); got != want {
		return fmt.Errorf("the parts %v add up to %v, and the makespan is %v", s.Time, got, want)
	}
	want, from, sure := g.critical(last)
	want[measure.Tools] += from.Sub(s.Begun)
	if sure && alone && s.Time != want {
		return fmt.Errorf("want %v, got %v", want, s.Time)
	}
	return nil
}

// critical computes the time along the critical path to the end of a row from its begin, backwards from the row. It is not sure if the
// row waited for two parents equally.
func (g *graphLife) critical(row *graphRow) (spent measure.SessionTime, from time.Time, sure bool) {
	var parent *graphRow
	var after time.Time
	sure = true
	for _, e := range row.parents {
		p := g.rows[e.Row]
		switch at := g.fateOf(p).Add(e.Wait); {
		case !p.read:
		case parent == nil || at.After(after):
			parent, after, sure = p, at, true
		case at.Equal(after):
			sure = false
		}
	}
	ready, end := row.Ready, g.fateOf(row)
	switch {
	case row.Filtered:
		ready = end
	case g.d.closed != nil && g.d.Sessions == 0 && !row.calledAt.IsZero() && row.calledAt.Before(ready):
		ready = row.calledAt
	}
	began := ready
	if from = ready; parent != nil {
		var certain bool
		spent, from, certain = g.critical(parent)
		began, sure = g.fateOf(parent), sure && certain
	}
	spent[measure.Tools] += ready.Sub(began)
	if row.Filtered {
		return spent, from, sure
	}
	first := row.first
	if first.IsZero() {
		first = end
	}
	spent[measure.WaitedToSend] += row.write.Sub(ready)
	spent[measure.ToFirstToken] += first.Sub(row.write)
	spent[measure.Decode] += end.Sub(first)
	return spent, from, sure
}

// fateOf returns when a row has ended for the rows after it.
func (g *graphLife) fateOf(row *graphRow) time.Time {
	if row.Filtered && g.d.closed == nil {
		return row.Ready
	}
	return row.end
}
