// Package schedule decides when each row of a trace is due. It reads no clock and starts no goroutine.
package schedule

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"replayd/internal/trace"
)

// A Plan says when each row of a trace is due, in loop after loop. It is a pure function of the trace, its options
// and the instants that it is given, and may be used by several goroutines at once.
type Plan struct {
	o      Options
	src    Source
	length time.Duration // wall time from a loop's start to the last row's instant
	every  time.Duration // from one loop's start to the next one's; with Once and Cron to the last row
	runs   *runs         // of mode Cron
}

// A Due is a trace row and the instant at which the first byte of its request should leave.
type Due struct {
	trace.Record
	At   time.Time // the planned instant; carries the loop start's monotonic reading
	Loop Loop
}

// A Source is a trace as a plan needs it; FromFile makes one of a trace file.
type Source struct {
	HasTimestamps bool
	Last          time.Duration // offset of the last row
	Tick          time.Duration // median gap between distinct timestamps; 0 where there is but one

	// Rows starts at the first row whose Offset is at least from. Its next gives rows in order of Offset, then of
	// the file, and io.EOF after the last.
	Rows func(from time.Duration) (next func() (trace.Record, error), err error)
}

// New makes a plan. Its error names everything that is wrong with the options at once.
func New(src Source, o Options) (*Plan, error) {
	p := &Plan{o: o, src: src}
	errs, repeat := o.checkTiming(src), o.checkRepeat()
	if o.Mode == Cron {
		calendar, faults := newCalendar(o.Cron, o.Timezone)
		p.runs = &runs{calendar: calendar, overlap: o.Overlap}
		repeat = append(repeat, faults...)
	}
	if len(errs) == 0 {
		last, ok, err := p.last()
		switch {
		case err != nil:
			return nil, err
		case !ok:
			errs = append(errs, fmt.Errorf("from, to: want a window with a row in it, got %v to %v", o.From, o.To))
		case len(repeat) == 0:
			p.length = p.wall(last)
			repeat = p.fit()
			if p.runs != nil {
				p.runs.length = p.length
			}
		}
	}
	if err := errors.Join(slices.Concat(errs, repeat, o.Shard.check())...); err != nil {
		return nil, err
	}
	return p, nil
}

// Period is the time from a loop's start to the next one's by the wall clock, with Once to its last row.
func (p *Plan) Period(l Loop) time.Duration {
	if p.o.Mode == Cron {
		start := l.Start.Round(0)
		return p.runs.after(start).Sub(start)
	}
	return p.every
}

// FollowsWall says whether loops begin at instants of the wall clock, with phase wall and Cron, so that a clock that is
// set moves the place in the trace.
func (p *Plan) FollowsWall() bool {
	return p.o.Mode == Cron || p.o.Mode == Loops && p.o.Phase == Wall
}

// wall converts trace time into wall time. One division from the loop's start, rounded to the nanosecond, so that
// nothing adds up; a result that is whole nanoseconds is exact for traces of up to 104 days (2⁵³ ns).
func (p *Plan) wall(offset time.Duration) time.Duration {
	return time.Duration(math.Round(float64(offset) / p.o.Speed))
}

// last is the place of the window's last row after From, spread included; not ok when there is no row.
func (p *Plan) last() (place time.Duration, ok bool, err error) {
	to := p.o.To
	if to == 0 || to > p.src.Last {
		return p.lastFrom(p.src.Last)
	}
	// The last rows before To are found by looking back from there, twice as far each time.
	for back := max(time.Second, p.src.Tick); ; back *= 2 {
		from := max(p.o.From, to-back)
		if place, ok, err = p.lastFrom(from); ok || err != nil || from == p.o.From {
			return place, ok, err
		}
	}
}

// lastFrom is last among the rows from an offset on.
func (p *Plan) lastFrom(offset time.Duration) (place time.Duration, ok bool, err error) {
	rows, err := p.open(offset)
	if err != nil {
		return 0, false, err
	}
	for {
		_, at, err := rows.next()
		if errors.Is(err, io.EOF) {
			return place, ok, nil
		}
		if err != nil {
			return 0, false, err
		}
		place, ok = at, true
	}
}
