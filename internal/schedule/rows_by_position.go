package schedule

import (
	"errors"
	"io"
	"time"

	"replayd/internal/trace"
)

// counted reads the rows of a loop whose instants, if any, follow from their positions in the loop.
type counted struct {
	p        *Plan
	rows     *cycle
	left     int           // rows left; negative: no end
	at       time.Duration // of the next row
	arrivals *arrivals     // after it; nil in a closed loop
	turnGap  time.Duration // between two turns of a user; 0: there are no users
}

// openCounted begins with the first row that is due at a time after the loop's start, or later.
func (p *Plan) openCounted(passed time.Duration) (*counted, error) {
	r := &counted{p: p, left: p.rows}
	if p.rows == 0 {
		r.left = -1
	}
	if p.o.Arrival == Users {
		r.turnGap = p.o.turnGap()
	}
	skipped := 0
	if !p.Closed() {
		r.arrivals = p.arrivals()
		r.at, _ = r.arrivals.next()
		for ; r.at < passed && skipped < p.rows; skipped++ {
			r.at, _ = r.arrivals.next()
		}
		r.left -= skipped
	}
	var err error
	r.rows, err = p.openCycle(skipped)
	return r, err
}

// next returns a row with its time after the loop's start.
func (r *counted) next() (trace.Record, time.Duration, error) {
	if r.left == 0 {
		return trace.Record{}, 0, io.EOF
	}
	rec, err := r.rows.next()
	if err != nil {
		return rec, 0, err
	}
	r.left--
	if rec.Session != "" && r.turnGap > 0 {
		rec.Gap = r.turnGap
	}
	at := r.at
	if r.arrivals != nil {
		r.at, _ = r.arrivals.next()
	}
	return rec, at, nil
}

// openWindow reads the rows of the window once.
func (p *Plan) openWindow() (func() (trace.Record, error), error) {
	rows, err := p.src.Rows(p.o.From)
	if err != nil {
		return nil, err
	}
	return func() (trace.Record, error) {
		r, err := rows()
		if err == nil && p.o.To > 0 && r.Offset >= p.o.To {
			return r, io.EOF
		}
		return r, err
	}, nil
}

// countWindow counts the rows in the window. From then on it keeps conversations that users share in memory.
func (p *Plan) countWindow() error {
	if p.o.BySession() {
		return p.chooseSessions()
	}
	if p.src.Endless {
		return nil
	}
	known := p.src.Count > 0 && p.o.From == 0 && p.o.To == 0
	share := p.o.Arrival == Users && !p.src.Turns
	if known && !share {
		p.window = p.src.Count
		return nil
	}
	if share {
		p.users = &users{n: p.o.Users}
	}
	next, err := p.openWindow()
	for err == nil {
		var r trace.Record
		if r, err = next(); err != nil {
			break
		}
		p.window++
		if share {
			err = p.users.add(r)
		}
	}
	switch {
	case !errors.Is(err, io.EOF):
		return err
	case p.window == 0 && p.src.HasTimestamps:
		return faulty("from, to", "want a window with a row in it, got %v to %v", p.o.From, p.o.To)
	case p.window == 0:
		return faulty("rows", "want a source with a row in it, got none")
	case share:
		p.users.settle()
	}
	return nil
}
