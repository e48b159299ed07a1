package schedule

import (
	"errors"
	"fmt"
	"io"
	"math"
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
		r.turnGap = time.Duration(math.Round(float64(p.o.Users) / p.o.Rate * float64(time.Second)))
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
	next, err := p.openWindow()
	if err != nil {
		return err
	}
	if share {
		rows, err := hold(next, fmt.Sprintf("for %q", Users))
		if err != nil {
			return err
		}
		if p.window = len(rows); p.window > 0 {
			p.users = newUsers(p.o.Users, rows)
		}
		return p.checkWindow("with a row in it")
	}
	for {
		_, err := next()
		if errors.Is(err, io.EOF) {
			return p.checkWindow("with a row in it")
		}
		if err != nil {
			return err
		}
		p.window++
	}
}

func (p *Plan) checkWindow(want string) error {
	switch {
	case p.window > 0:
		return nil
	case p.src.HasTimestamps:
		return faulty("trace.from", "want a window %s, got %v to %v", want, p.o.From, p.o.To)
	}
	return faulty("rows", "want a source with a row in it, got none")
}

// Bounds of rows that are held in memory.
const (
	maxHeldBytes = 1 << 30
	rowBytes     = 512 // of a row without its own content
)

// hold reads rows into memory. use says for what.
func hold(next func() (trace.Record, error), use string) ([]trace.Record, error) {
	var rows []trace.Record
	size := 0
	for {
		r, err := next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		if size += rowBytes + r.Bytes(); size > maxHeldBytes {
			return nil, faulty("arrival", "want rows of at most %d MiB together %s, got more", maxHeldBytes>>20, use)
		}
		rows = append(rows, r)
	}
}

// A cycle reads the window's rows again and again, without an end.
type cycle struct {
	p    *Plan
	rows func() (trace.Record, error)
	pass int64
}

// openCycle skips a number of rows.
func (p *Plan) openCycle(skip int) (*cycle, error) {
	c := &cycle{p: p}
	if p.users == nil && p.window > 0 {
		c.pass, skip = int64(skip/p.window), skip%p.window
	}
	if err := c.restart(); err != nil {
		return nil, err
	}
	for range skip {
		if _, err := c.next(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (c *cycle) restart() (err error) {
	if c.p.users != nil {
		c.rows = c.p.users.rows()
		return nil
	}
	c.rows, err = c.p.openWindow()
	return err
}

func (c *cycle) next() (trace.Record, error) {
	r, err := c.rows()
	if errors.Is(err, io.EOF) {
		c.pass++
		if err := c.restart(); err != nil {
			return r, err
		}
		if r, err = c.rows(); errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF // countWindow found rows
		}
	}
	r.Pass += c.pass
	return r, err
}
