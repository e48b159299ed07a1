package synth

import (
	"slices"
	"time"

	"replayd/internal/trace"
)

// relink gives the rows that name their parents the instants that these allow, after all instants have changed. What comes after a row that
// is left out comes after that row's parents, as if it had taken no time. rows have their new instants; left says which are left out. wait is
// that of trace.Options.
func relink(rows []trace.Record, left []bool, wait func(time.Duration) time.Duration) {
	if wait == nil {
		wait = func(recorded time.Duration) time.Duration { return recorded }
	}
	byNumber, gone := make([]*trace.Record, 0, len(rows)), map[int]bool{}
	for i := range rows {
		if left[i] {
			gone[rows[i].Number] = true
		}
		if rows[i].After != nil {
			byNumber = append(byNumber, &rows[i])
		}
	}
	// A row has a higher number than its parents.
	slices.SortFunc(byNumber, func(a, b *trace.Record) int { return a.Number - b.Number })
	known := make(map[int]*trace.Record, len(byNumber))
	for _, r := range byNumber {
		known[r.Number] = r
		after, at := []trace.Edge{}, time.Duration(0)
		if !r.Floating {
			at = r.Offset
		}
		floats := len(r.After) > 0 && r.Floating
		for _, e := range r.After {
			parent := known[e.Row]
			if parent == nil || !gone[e.Row] {
				after = trace.AddEdge(after, e)
				continue
			}
			if !parent.Floating { // it would have ended at its own instant
				at, floats = max(at, parent.Offset+wait(e.Wait)), false
			}
			for _, before := range parent.After {
				after = trace.AddEdge(after, trace.Edge{Row: before.Row, Wait: before.Wait + e.Wait})
			}
		}
		for _, e := range after {
			if parent := known[e.Row]; parent != nil {
				at = max(at, parent.Offset+wait(e.Wait))
			}
		}
		r.After, r.Offset, r.Floating = after, at, floats
	}
}
