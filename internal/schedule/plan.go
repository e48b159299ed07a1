// Package schedule decides when each row of a trace is due. It reads no clock and starts no goroutine.
package schedule

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"time"

	"replayd/internal/fault"
	"replayd/internal/trace"
)

// A Plan determines when each row of a trace is due, loop after loop. It is a pure function of the trace, its options and its
// arguments. Several goroutines may use it at once.
//
// A closed plan, with Concurrency or Sessions, determines only the order of the rows: a row is due when a lane is free, or when its
// parents and the other sessions allow. Its loops have one Start, and each begins when the loop before has no more rows. Due.Passes distinguishes their rows.
type Plan struct {
	o      Options
	src    Source
	length time.Duration // wall time from a loop's start to its last row
	every  time.Duration // from one loop's start to the start of the next; with Once and Cron to the last row
	first  time.Duration // wall time from a loop's start to its first row; not of a closed plan
	gaps   time.Duration // wall time of the gaps between its rows
	runs   *runs         // of mode Cron

	window int     // rows of the source that are in the window; likewise
	rows   int     // rows of a loop, with RateOf Starts its sessions; 0: no end. Not counted with Exact and Spread
	rate   profile // of arrivals at a rate
	users  *users  // deals the conversations out to users
	chosen [][]int // with Options.BySession: indices of the rows of the sessions that begin in the window
	final  final   // with Rows and the trace's own times
}

// A Due is a trace row and the instant at which the first byte of its request should leave.
type Due struct {
	trace.Record
	At   time.Time // the planned instant; carries the loop start's monotonic reading. In a closed plan the loop's start
	Loop Loop
}

// Passes returns how often the source was repeated since the loop's Start before this row. It distinguishes repetitions of a row,
// so that each has its own bytes.
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

// Place returns the place of a row's session in the rotation over pods. It depends on the row alone: both sides of a
// comparison have the same one, and so has a replay that joins the plan later.
func (p *Plan) Place(d *Due) uint64 { return d.Place(max(1, p.o.Shard.Of), d.Loop.Number) }

// Endless reports whether the rows of a loop have no end.
func (p *Plan) Endless() bool { return p.src.Endless && p.rows == 0 }

// Rereads reports whether a row can be read again, so that it need not be kept whole until it is sent.
func (p *Plan) Rereads() bool { return p.src.Reread != nil }

// Reread reads a row again after Record.Shed. Its lengths stay as they are.
func (p *Plan) Reread(r trace.Record) (trace.Record, error) { return p.src.Reread(r) }

// New makes a plan. Its error is a fault.List if options are invalid.
func New(src Source, o Options) (*Plan, error) {
	p := &Plan{o: o, src: src}
	rows, repeat := slices.Concat(o.checkArrival(), o.checkRate(), o.checkSource(src)), o.checkRepeat()
	if len(rows) == 0 {
		natural, err := p.lay()
		var bad fault.Fault
		switch {
		case errors.As(err, &bad):
			rows = fault.List{bad}
		case err != nil:
			return nil, err
		case len(repeat) == 0 && !p.Closed():
			repeat = p.fit(natural)
		}
	}
	if err := slices.Concat(rows, repeat, o.Shard.check()).Err(); err != nil {
		return nil, err
	}
	return p, nil
}

// lay determines the number of rows of a loop and the instant of the last one, as far as the arrival needs them. It returns the
// loop's own length; 0: the time to its last row.
func (p *Plan) lay() (natural time.Duration, err error) {
	if p.o.Timed() {
		if err := p.layTimed(); err != nil {
			return 0, err
		}
		return 0, p.layGaps()
	}
	if err := p.countWindow(); err != nil {
		return 0, err
	}
	most := cmp.Or(p.o.Rows, p.window)
	if p.Closed() {
		p.rows = most
		return 0, nil
	}
	if p.o.BySession() {
		most = p.starts(most)
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

// Skipped returns the number of activations that a loop of mode Cron leaves out because they fall into it, at most
// 20,000. It may take tens of milliseconds. In other modes it is 0.
func (p *Plan) Skipped(l Loop) int {
	if p.o.Mode != Cron {
		return 0
	}
	return p.runs.skipped(l.Start.Round(0))
}

// Overlaps returns the length of a pass of mode Cron and the least time between its activations after an instant. ok is
// false if no pass is longer than that, and in other modes.
func (p *Plan) Overlaps(t time.Time) (pass, interval time.Duration, ok bool) {
	if p.o.Mode != Cron {
		return 0, 0, false
	}
	interval = p.runs.calendar.interval(t)
	return p.length, interval, p.length > interval
}

// FollowsWall reports whether loops begin at instants of the wall clock, with align wall_clock and Cron. Then setting the clock
// moves the position in the trace.
func (p *Plan) FollowsWall() bool {
	return p.o.Mode == Cron || p.o.Mode == Loops && p.o.Align == WallClock && !p.Closed()
}

// Closed reports whether the plan is a closed loop: its rows have no instants.
func (p *Plan) Closed() bool { return p.o.Closed() }

// SessionsAtOnce is how many sessions are in progress at once; 0: as many as the plan says otherwise.
func (p *Plan) SessionsAtOnce() int { return p.o.AtOnce }
