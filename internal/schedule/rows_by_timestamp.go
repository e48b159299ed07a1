package schedule

import (
	"errors"
	"io"
	"math"
	"time"

	"replayd/internal/trace"
)

// timed reads the window's rows at the trace's own times. It holds one or two rows in memory.
type timed struct {
	p    *Plan
	rows func() (trace.Record, error)
	last int // rows read of the final offset

	// With Spread only: the scout reads the same rows up to a tick ahead, to know how many there are.
	scout   func() (trace.Record, error)
	scouted trace.Record // the first row of the next tick; its Offset is noTick before the first and after the last
	tick    tick
}

// A tick is the rows that share a timestamp.
type tick struct {
	at    time.Duration
	width time.Duration // the rows are spread over it
	rows  int
	given int // rows before this one
}

const noTick = time.Duration(-1)

// final is the last row of a loop with Options.Rows: its trace time, and how many rows at that time belong to the loop. The zero
// value is no limit.
type final struct {
	at   time.Duration
	rows int
}

// openTimed reads the window's rows from an offset on, which must be at or after From.
func (p *Plan) openTimed(offset time.Duration) (*timed, error) {
	r := &timed{p: p, scouted: trace.Record{Offset: noTick}, tick: tick{at: noTick}}
	var err error
	if r.rows, err = p.src.Rows(offset); err != nil {
		return nil, err
	}
	if p.o.Arrival == Spread {
		if r.scout, err = p.src.Rows(offset); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// next returns a row of the window with its time after the loop's start by the wall clock, spread included.
func (r *timed) next() (trace.Record, time.Duration, error) {
	rec, err := r.rows()
	if err != nil {
		return rec, 0, err
	}
	if r.p.o.To > 0 && rec.Offset >= r.p.o.To {
		return rec, 0, io.EOF
	}
	if f := r.p.final; f.rows > 0 && rec.Offset >= f.at {
		if r.last++; rec.Offset > f.at || r.last > f.rows {
			return rec, 0, io.EOF
		}
	}
	offset := rec.Offset - r.p.o.From
	if r.scout != nil {
		if rec.Offset != r.tick.at {
			if err := r.countTick(rec.Offset); err != nil {
				return rec, 0, err
			}
		}
		offset += r.tick.offset()
		r.tick.given++
	}
	at := r.p.wall(offset)
	if !r.p.within(at) {
		return rec, 0, io.EOF
	}
	return rec, at, nil
}

// countTick counts the rows of the tick that begins. The tick ends at the next timestamp, or after the usual width:
// rows before a pause are not spread over the pause.
func (r *timed) countTick(at time.Duration) error {
	r.tick = tick{at: at, width: r.p.src.Tick}
	if r.scouted.Offset == at {
		r.tick.rows = 1
	}
	for {
		rec, err := r.scout()
		if errors.Is(err, io.EOF) {
			r.scouted.Offset = noTick
			return nil
		}
		if err != nil {
			return err
		}
		if rec.Offset != at {
			r.scouted = rec
			r.tick.width = min(r.tick.width, rec.Offset-at)
			return nil
		}
		r.tick.rows++
	}
}

// offset returns given × width / rows without overflow.
func (t *tick) offset() time.Duration {
	given, rows := time.Duration(t.given), time.Duration(t.rows)
	return t.width/rows*given + t.width%rows*given/rows
}

// wall converts trace time into wall time. One division from the loop's start, rounded to the nanosecond, so that
// nothing adds up; a result that is whole nanoseconds is exact for traces of up to 104 days (2⁵³ ns).
func (p *Plan) wall(offset time.Duration) time.Duration {
	return time.Duration(math.Round(float64(offset) / p.o.Speed))
}

// layTimed finds the last row of the window.
func (p *Plan) layTimed() error {
	if p.o.Rows > 0 {
		if err := p.findFinal(); err != nil {
			return err
		}
	}
	end := p.src.Last
	if p.o.To > 0 {
		end = min(end, p.o.To)
	}
	if p.final.rows > 0 {
		end = min(end, p.final.at)
	}
	if played := float64(p.o.Duration) * p.o.Speed; p.o.Duration > 0 && played < float64(end-p.o.From) {
		end = p.o.From + time.Duration(played)
	}
	// The last row before the end is found by looking back from there, twice as far each time.
	for back := time.Duration(0); ; back = max(2*back, time.Second, p.src.Tick) {
		from := max(p.o.From, end-back)
		length, ok, err := p.lastFrom(from)
		switch {
		case err != nil:
			return err
		case ok:
			p.length = length
			return nil
		case from > p.o.From:
		case p.o.Duration > 0:
			return faulty("trace.from", "want a window with a row in it, got %v to %v, for %v", p.o.From, p.o.To, p.o.Duration)
		default:
			return faulty("trace.from", "want a window with a row in it, got %v to %v", p.o.From, p.o.To)
		}
	}
}

// lastFrom returns when the last of the rows from an offset on is due; ok is false if there are none.
func (p *Plan) lastFrom(offset time.Duration) (last time.Duration, ok bool, err error) {
	rows, err := p.openTimed(offset)
	if err != nil {
		return 0, false, err
	}
	for {
		_, at, err := rows.next()
		if errors.Is(err, io.EOF) {
			return last, ok, nil
		}
		if err != nil {
			return 0, false, err
		}
		last, ok = at, true
	}
}

func (p *Plan) findFinal() error {
	next, err := p.openWindow()
	if err != nil {
		return err
	}
	for n := range p.o.Rows {
		r, err := next()
		if errors.Is(err, io.EOF) {
			return faulty("rows", "want at most %d, those of the window, with arrival %q, got %d", n, p.o.Arrival, p.o.Rows)
		}
		if err != nil {
			return err
		}
		if r.Offset != p.final.at {
			p.final = final{at: r.Offset}
		}
		p.final.rows++
	}
	return nil
}
