package schedule

import (
	"errors"
	"io"
	"time"

	"replayd/internal/trace"
)

// Soon is the longest time without a due row that is no gap.
const Soon = time.Minute

// LeastGap returns the trace time of Soon, for trace.Options.
func (p *Pattern) LeastGap() time.Duration {
	if !p.Timed() {
		return 0
	}
	return max(1, time.Duration(float64(Soon)*p.Speed))
}

// Idle returns the share of a loop with a period that is without rows: the sum of all gaps, which are the times of more
// than Soon in which no row of any shard falls due. The time from a loop's last row to the first row of the next loop is
// one gap. A single pass has no next loop, and ends with its last row. The share is known if the plan gives each row an
// instant. Closed plans do not, and later rows of sessions that start at a rate follow the ends of others.
func (p *Plan) Idle(period time.Duration) (share float64, known bool) {
	if p.Closed() || p.o.BySession() {
		return 0, false
	}
	between := p.first
	if p.o.Mode != Once {
		between += max(0, period-p.length)
	}
	return float64(p.gaps+gap(between)) / float64(max(1, period)), true
}

// gap returns a time between two rows if that is a gap, else 0.
func gap(d time.Duration) time.Duration {
	if d <= Soon {
		return 0
	}
	return d
}

// layGaps finds the first row of a loop at the trace's own times, and adds up the gaps up to the last one.
func (p *Plan) layGaps() error {
	rows, err := p.openTimed(p.o.From)
	if err != nil {
		return err
	}
	if _, p.first, err = rows.next(); err != nil {
		return err
	}
	if p.src.Gaps == nil {
		return nil
	}
	for _, g := range p.src.Gaps(p.o.LeastGap()) {
		if g.From < p.o.From || p.wall(g.To-p.o.From) > p.length {
			continue
		}
		rest := g.To - g.From
		if p.o.Arrival == Spread {
			width := min(p.src.Tick, rest)
			step := width / time.Duration(g.Rows)
			p.gaps += time.Duration(g.Rows-1) * gap(p.wall(step))
			rest -= width - step
		}
		p.gaps += gap(p.wall(rest))
	}
	return nil
}

// gapsOf returns the gaps between rows in due order, as trace.Stats has them.
func gapsOf(rows []trace.Record, least time.Duration) (gaps []trace.Gap) {
	n := 0 // rows at the present instant
	for i, r := range rows {
		if i > 0 && r.Offset > rows[i-1].Offset {
			if before := rows[i-1].Offset; r.Offset-before > least {
				gaps = append(gaps, trace.Gap{From: before, To: r.Offset, Rows: n})
			}
			n = 0
		}
		n++
	}
	return gaps
}

// NextDue returns the first instant at or after another one at which a row of a loop or of the next loop is due; false:
// there is none. A closed plan has none. It opens rows, as Rows does.
func (p *Plan) NextDue(l Loop, from time.Time) (at time.Time, ok bool, err error) {
	if p.Closed() {
		return at, false, nil
	}
	for range 2 { // all loops have the same rows
		rows, err := p.Rows(l, from)
		if err != nil {
			return at, false, err
		}
		due, err := rows.Next()
		if !errors.Is(err, io.EOF) {
			return due.At, err == nil, err
		}
		next, more := p.Next(l, from)
		if !more {
			break
		}
		l = next
	}
	return at, false, nil
}
