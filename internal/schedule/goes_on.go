package schedule

import (
	"errors"
	"io"
	"time"
)

// GoesOn returns the loop in which a plan goes on from where another plan of the same rows stands at an instant of a loop.
// Neither plan follows the wall clock or is closed. first is the next row: those before it in the loop were due by the old
// plan. It comes as soon after the instant as by the plan that has the shorter gap there. nil: no row of the loop was due.
// over says that the old plan had no more rows.
func (p *Plan) GoesOn(old *Plan, l Loop, at time.Time) (next Loop, first *Due, over bool, err error) {
	of := p.As(old)
	held := of.Loop(l.Start, at)
	l = Loop{Number: l.Number + held.Number, Start: held.Start}
	end := func() (Loop, *Due, bool, error) {
		return Loop{Number: l.Number + 1, Start: latest(at, l.Start.Add(p.every))}, nil, p.o.Mode == Once, nil
	}
	rows, err := of.Rows(l, at)
	if err != nil {
		return l, nil, false, err
	}
	due, err := rows.Next()
	if errors.Is(err, io.EOF) {
		return end()
	}
	if err != nil {
		return l, nil, false, err
	}
	var start time.Time
	wait := due.At.Sub(at)
	if p.o.Timed() {
		after, err := p.timeOf(of, due)
		if err != nil {
			return l, nil, false, err
		}
		scaled := time.Duration(float64(wait) * of.o.Speed / p.o.Speed)
		start = at.Add(min(wait, scaled) - after)
	} else {
		before, after, ok := p.arrivalLike(of, due.At.Sub(l.Start))
		if !ok {
			return end()
		}
		start = at.Add(min(wait, after-before) - after)
	}
	return Loop{Number: l.Number, Start: start}, &due, false, nil
}

// As returns another plan of the same rows with the source of this one: its own may be closed.
func (p *Plan) As(other *Plan) *Plan {
	same := *other
	same.src = p.src
	return &same
}

// arrivalLike returns when the arrival that another plan has at a time after its loop's start comes by p, and the arrival
// before it; ok is false if it never comes.
func (p *Plan) arrivalLike(of *Plan, at time.Duration) (before, after time.Duration, ok bool) {
	there, here := of.arrivals(), p.arrivals()
	theirs, _ := there.next()
	after, ok = here.next()
	for ok && theirs < at {
		before = after
		theirs, _ = there.next()
		after, ok = here.next()
	}
	return before, after, ok
}

// timeOf returns the time from the begin of a loop to a row that another plan with the trace's own times plans.
func (p *Plan) timeOf(of *Plan, due Due) (time.Duration, error) {
	const slack = time.Millisecond // of the conversion
	l := Loop{Start: due.At}
	near := p.wall(of.traceTime(due.At.Sub(due.Loop.Start)))
	rows, err := p.Rows(l, l.Start.Add(near-slack))
	if err != nil {
		return 0, err
	}
	for {
		same, err := rows.Next()
		if err != nil {
			return 0, err
		}
		if same.Number == due.Number {
			return same.At.Sub(l.Start), nil
		}
	}
}
