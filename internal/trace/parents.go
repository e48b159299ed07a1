package trace

import (
	"fmt"
	"math"
	"time"
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

// place checks the row's parents and sets the instant of a row that has none of its own. earliest is the earliest one that its parents
// allow.
func (p *parents) place(r *row, session int32, timed bool, wait func(time.Duration) int64) (earliest int64, found []fault) {
	if r.After != nil && r.Session == "" {
		return 0, []fault{{"session_id", "one, as the row has after", "none"}}
	}
	for i, e := range r.After {
		field := fmt.Sprintf("after[%d].row", i)
		if e.Row >= r.Number {
			found = append(found, fault{field, fmt.Sprintf("an earlier row than %d, the row's own", r.Number), fmt.Sprint(e.Row)})
			continue
		}
		of := p.rows[e.Row]
		switch {
		case of.line == 0: // it has faults of its own
			continue
		case of.session == 0 || of.session != session:
			found = append(found, fault{field, "a row of the same session", fmt.Sprintf("%d, that of line %d", e.Row, of.line)})
			continue
		case named(r.After[:i], e.Row):
			found = append(found, fault{field, "each parent once", fmt.Sprintf("%d again", e.Row)})
			continue
		case of.at > maxNanos-int64(e.Wait):
			found = append(found, fault{fmt.Sprintf("after[%d].wait", i), fmt.Sprintf("an instant ≤ %d", int64(maxMillis)), "a later one"})
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
	of := parent{at: r.at, line: int32(min(r.Line, math.MaxInt32))}
	switch {
	case wrong:
		of = parent{}
	case r.Session != "":
		of.session = session
	}
	p.rows = append(p.rows, of)
}

// maxNanos is maxMillis in nanoseconds.
const maxNanos = maxMillis * 1_000_000

func named(list []Edge, row int) bool {
	for _, e := range list {
		if e.Row == row {
			return true
		}
	}
	return false
}
