package schedule

import (
	"errors"
	"io"
	"time"

	"replayd/internal/trace"
)

// Rows gives the rows of one loop with their instants. It holds no more than a row or two in memory.
type Rows struct {
	p    *Plan
	loop Loop
	from time.Time

	rows func() (trace.Record, error)

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

// Rows returns the rows of a loop that are due at or after an instant, in order of their instants; rows due together
// in order of the file. Of several shards it gives its own rows only.
func (p *Plan) Rows(l Loop, from time.Time) (*Rows, error) {
	// A row's instant is rounded by up to half a nanosecond, which is up to 500 ns of trace time. Rows that are read
	// in vain cost nothing; Spread moves a row on by less than a tick.
	const slack = time.Millisecond
	passed := min(from.Sub(l.Start), p.length+slack)
	rows, err := p.open(p.o.From + max(0, p.traceTime(passed)-p.src.Tick-slack))
	if err != nil {
		return nil, err
	}
	rows.loop, rows.from = l, from
	return rows, nil
}

// Next returns the next row, io.EOF after the loop's last.
func (r *Rows) Next() (Due, error) {
	for {
		rec, place, err := r.next()
		if err != nil {
			return Due{}, err
		}
		if !r.p.o.Shard.has(&rec) {
			continue
		}
		if at := r.loop.Start.Add(r.p.wall(place)); !at.Before(r.from) {
			return Due{Record: rec, At: at, Loop: r.loop}, nil
		}
	}
}

// open reads the window's rows from an offset on, which is at or after From.
func (p *Plan) open(offset time.Duration) (*Rows, error) {
	r := &Rows{p: p, scouted: trace.Record{Offset: noTick}, tick: tick{at: noTick}}
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

// next returns a row of the window with its place after From, spread included.
func (r *Rows) next() (trace.Record, time.Duration, error) {
	rec, err := r.rows()
	if err != nil {
		return rec, 0, err
	}
	if r.p.o.To > 0 && rec.Offset >= r.p.o.To {
		return rec, 0, io.EOF
	}
	place := rec.Offset - r.p.o.From
	if r.scout == nil {
		return rec, place, nil
	}
	if rec.Offset != r.tick.at {
		if err := r.look(rec.Offset); err != nil {
			return rec, 0, err
		}
	}
	place += r.tick.place()
	r.tick.given++
	return rec, place, nil
}

// look counts the rows of the tick that begins. It ends at the next timestamp, but is no longer than is usual: rows
// before a pause are not drawn out over it.
func (r *Rows) look(at time.Duration) error {
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

// place is given × width / rows, in parts that do not overflow.
func (t *tick) place() time.Duration {
	given, rows := time.Duration(t.given), time.Duration(t.rows)
	return t.width/rows*given + t.width%rows*given/rows
}

// has says whether a row is one of the shard's.
func (s Shard) has(r *trace.Record) bool {
	if s.Of <= 1 {
		return true
	}
	key := uint64(r.Number)
	if r.Session != "" {
		key = 14695981039346656037 // FNV-1a, 64 bits; hash/fnv would allocate
		for i := range len(r.Session) {
			key = (key ^ uint64(r.Session[i])) * 1099511628211
		}
	}
	return key%uint64(s.Of) == uint64(s.Index)
}
