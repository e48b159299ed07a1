package trace

import (
	"fmt"
	"math"
	"slices"
	"time"

	"replayd/internal/fault"
)

// parents checks what rows say of the rows they wait for. It takes 16 bytes a row.
type parents struct {
	rows []parent
	used int // edges so far
}

// A parent is a row that later rows may wait for.
type parent struct {
	at      int64
	session int32 // index of its session, from 1; 0: the row is wrong or has no session
	line    int32
}

// checkParents checks the row's parents and sets the instant of a row that has none of its own. earliest is the
// earliest one that its parents allow.
func (p *parents) checkParents(
	r *row, session int32, timed bool, wait func(time.Duration) int64,
) (earliest int64, found fault.List) {
	if r.After != nil && r.Session == "" {
		return 0, fault.List{fault.New("session_id", "one, as the row has after", "none")}
	}
	for i, e := range r.After {
		field := fmt.Sprintf("after[%d].row", i)
		if e.Row >= r.Number {
			found.Add(field, "want an earlier row than %d, the row's own, got %d", r.Number, e.Row)
			continue
		}
		of := p.rows[e.Row]
		switch {
		case of.line == 0: // it has faults of its own
			continue
		case of.session == 0 || of.session != session:
			found.Add(field, "want a row of the same session, got %d, that of line %d", e.Row, of.line)
			continue
		case slices.ContainsFunc(r.After[:i], func(other Edge) bool { return other.Row == e.Row }):
			found = append(found, fault.New(field, "each parent once", fmt.Sprintf("%d again", e.Row)))
			continue
		case of.at > maxNanos-int64(e.Wait):
			found.Add(fmt.Sprintf("after[%d].wait", i), "want an instant ≤ %d, got a later one", int64(maxMillis))
			continue
		}
		earliest = max(earliest, min(maxNanos, of.at+wait(e.Wait)))
	}
	if r.Floating && timed {
		r.at = earliest
	}
	p.used += len(r.After)
	return earliest, found
}

// add registers a row. A wrong row keeps its number, and says nothing of its instant.
func (p *parents) add(r *row, session int32, wrong bool) {
	of := parent{at: r.at, session: session, line: int32(min(r.Line, math.MaxInt32))}
	if wrong {
		of = parent{}
	}
	p.rows = append(p.rows, of)
}

// maxNanos is maxMillis in nanoseconds.
const maxNanos = maxMillis * 1_000_000
