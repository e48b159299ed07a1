package schedule

import (
	"errors"
	"io"

	"replayd/internal/trace"
)

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
