package dispatch

import (
	"fmt"
	"time"

	"replayd/internal/measure"
)

// A graphSession is what was told of a session.
type graphSession struct {
	begun time.Time
	end   *measure.Session
}

func (row *graphRow) isFiltered() bool { return row != nil && row.Filtered }

// inProgress checks the limit of sessions.
func (g *graphLife) inProgress(row *graphRow) {
	n := 0
	for _, s := range g.sessions {
		if s.end == nil {
			n++
		}
	}
	if g.d.Sessions > 0 && n > g.d.Sessions {
		g.failf(row, "%d sessions are in progress", n)
	}
}

// endedWell checks how each session has ended, when nothing is left.
func (g *graphLife) endedWell() error {
	for name, s := range g.sessions {
		if s.end == nil {
			return fmt.Errorf("session %s has not ended", name)
		}
		want, sent, end := measure.SessionOK, 0, time.Time{}
		ends := 0 // of the first and the last row, those that were read
		for _, row := range g.rows {
			if row.Due.Session == name && row.read {
				ends += map[bool]int{true: 1}[row.Due.First] + map[bool]int{true: 1}[row.Due.Last]
			}
			switch {
			case row.Due.Session != name || !row.read:
			case row.outcome != "":
				sent++
				end = latest(end, row.end)
				if row.failed() {
					want = measure.SessionNotOK
				}
			case row.dropped == 1 && row.why.Eligible(g.d.DropLate):
				want = measure.SessionNotOK
			case !row.Filtered && want == measure.SessionOK: // dropped for another reason, or forgotten
				want = measure.SessionCut
			}
		}
		if (sent == 0 || ends < 2) && want == measure.SessionOK {
			want = measure.SessionCut
		}
		var ended time.Time
		if s.end.Requests > 0 {
			ended = s.end.Begun.Add(s.end.Makespan())
		}
		if s.end.Outcome != want || s.end.Requests != sent || !ended.Equal(end) {
			return fmt.Errorf("session %s: want %s after %d requests at %v, got %+v", name, want, sent, end, s.end)
		}
		if err := g.wellSpent(s.end); err != nil {
			return fmt.Errorf("session %s: %w", name, err)
		}
	}
	return nil
}
