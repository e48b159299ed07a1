package schedule

import (
	"time"

	"replayd/internal/trace"
)

// Rows yields the rows of one loop with their instants.
type Rows struct {
	p    *Plan
	loop Loop
	from time.Time
	next func() (trace.Record, time.Duration, error) // with the row's time after the loop's start
}

// Rows returns the rows of a loop that are due at or after an instant, in order of their instants, rows of one instant in order
// of the source. It returns only the rows of the plan's shard. For a loop of a closed plan it returns all rows, at the loop's
// start.
func (p *Plan) Rows(l Loop, from time.Time) (*Rows, error) {
	r := &Rows{p: p, loop: l, from: from}
	switch passed := from.Sub(l.Start); {
	case p.o.BySession():
		r.next = p.openStarted(l, passed).next
	case p.o.Timed():
		// A row's instant is rounded by up to half a nanosecond, which is up to 500 ns of trace time. Rows that are read
		// in vain cost nothing; Spread moves a row on by less than a tick.
		const slack = time.Millisecond
		rows, err := p.openTimed(p.o.From + max(0, p.traceTime(min(passed, p.length+slack))-p.src.Tick-slack))
		if err != nil {
			return nil, err
		}
		r.next = rows.next
	default:
		rows, err := p.openCounted(passed)
		if err != nil {
			return nil, err
		}
		r.next = rows.next
	}
	return r, nil
}

// Next returns the next row, io.EOF after the loop's last.
func (r *Rows) Next() (Due, error) {
	for {
		rec, after, err := r.next()
		if err != nil {
			return Due{}, err
		}
		if !r.p.o.Shard.has(&rec) {
			continue
		}
		if at := r.loop.Start.Add(after); !at.Before(r.from) || r.p.Closed() {
			rec.Delay, rec.After = r.p.o.TurnDelay.of(rec.Delay), r.p.o.TurnDelay.waits(rec.After)
			return Due{Record: rec, At: at, Loop: r.loop}, nil
		}
	}
}

func (s Shard) has(r *trace.Record) bool {
	return s.Of <= 1 || r.Shard(s.Of) == int(s.Index)
}
