// Package schedule decides when each row of a trace is due. It reads no clock and starts no goroutine.
package schedule

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"replayd/internal/trace"
)

// A Plan says when each row of a trace is due, in loop after loop. It is a pure function of the trace, its options
// and the instants that it is given, and may be used by several goroutines at once.
//
// A closed plan, that of Concurrency, only says in which order the rows go: a row is due when a lane is free. It has one
// Start, from which its loops follow each other, each as soon as the one before has no more rows; what tells their rows apart
// is Due.Passes.
type Plan struct {
	o      Options
	src    Source
	length time.Duration // wall time from a loop's start to the last row's instant
	every  time.Duration // from one loop's start to the next one's; with Once and Cron to the last row
	runs   *runs         // of mode Cron

	window int     // rows of the source that are in the window; likewise
	rows   int     // rows of a loop; 0 without an end. Not counted with Exact and Spread
	rate   profile // of the arrivals that have one
	users  *users  // of a source that has conversations one after the other
	final  final   // with Rows and the trace's own times
}

// A Due is a trace row and the instant at which the first byte of its request should leave.
type Due struct {
	trace.Record
	At   time.Time // the planned instant; carries the loop start's monotonic reading. In a closed plan the loop's start
	Loop Loop
}

// Passes counts how often the source came round since the loop's Start, before this row: with that it tells a row's bytes
// from those of the same row at other times.
func (d *Due) Passes() int64 { return d.Loop.Pass + d.Pass }

// ID is unique among the rows of a plan: the loop's number and the row's, with a pass of the loop above 0 behind it, as in
// 17/42 and 17/42.1.
func (d *Due) ID() string {
	id := strconv.FormatInt(d.Loop.Number, 10) + "/" + strconv.Itoa(d.Number)
	if d.Pass > 0 {
		id += "." + strconv.FormatInt(d.Pass, 10)
	}
	return id
}

// New makes a plan. Its error joins a Fault for all that is wrong with the options at once.
func New(src Source, o Options) (*Plan, error) {
	p := &Plan{o: o, src: src}
	rows, repeat := slices.Concat(o.checkArrival(), o.checkRate(), o.checkSource(src)), o.checkRepeat()
	if len(rows) == 0 {
		natural, err := p.lay()
		var bad Fault
		switch {
		case errors.As(err, &bad):
			rows = Faults{bad}
		case err != nil:
			return nil, err
		case len(repeat) == 0 && !p.Closed():
			repeat = p.fit(natural)
		}
	}
	var errs []error
	for _, f := range slices.Concat(rows, repeat, o.Shard.check()) {
		errs = append(errs, f)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p, nil
}

// lay finds out how many rows a loop has and where the last of them lies, as far as the arrival needs to know. It returns
// how long a loop lasts by itself; 0: to its last row.
func (p *Plan) lay() (natural time.Duration, err error) {
	if p.o.timed() {
		return 0, p.layTimed()
	}
	if err := p.countWindow(); err != nil {
		return 0, err
	}
	most := p.o.Rows
	if most == 0 {
		most = p.window
	}
	if p.Closed() {
		p.rows = most
		return 0, nil
	}
	p.rate = newProfile(p.o.Rate, p.o.Stages)
	return p.countArrivals(most)
}

// Period is the time from a loop's start to the next one's by the wall clock, with Once to its last row. A closed plan has
// none: 0.
//
// With Loops it is Every. Where that is 0 it is the shortest step of a fixed ladder that holds the loop to its last row, and
// Gap; but with align start and a rate it is the time that the loop's arrivals take, so that the next loop goes on as if
// there was no border: with Constant and Users rows / rate, with Poisson and Gamma until the last row, and the next loop
// begins with a gap; Duration where that ends the loop, or the time at which the rate has gone to 0 for good; and Gap.
func (p *Plan) Period(l Loop) time.Duration {
	if p.o.Mode == Cron {
		start := l.Start.Round(0)
		return p.runs.after(start).Sub(start)
	}
	return p.every
}

// FollowsWall says whether loops begin at instants of the wall clock, with align wall_clock and Cron, so that a clock that is
// set moves the place in the trace.
func (p *Plan) FollowsWall() bool {
	return p.o.Mode == Cron || p.o.Mode == Loops && p.o.Align == WallClock && !p.Closed()
}

// Closed says whether the plan is a closed loop: its rows have no instants of their own, each is due when a lane is free.
func (p *Plan) Closed() bool { return p.o.Arrival == Concurrency }
