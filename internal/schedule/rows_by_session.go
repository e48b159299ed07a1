package schedule

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"replayd/internal/trace"
)

// started reads the rows of a loop session by session. All rows of a session are planned for its start. They are due when their parents
// have ended, so a session may outlive its loop.
type started struct {
	p        *Plan
	sessions int       // left; negative: no end
	rows     int       // left; negative: no end
	arrivals *arrivals // of the sessions after the next one; nil in a closed loop
	follows  time.Duration
	place    int // of the next session among those of the window
	pass     int64
	middle   int // sessions left that may begin in the middle

	at     time.Duration // start of the present session
	left   []int         // places of its rows that were not read
	first  time.Duration // offset of its first row
	before int           // Record.Number of the row read before in it; -1: there is none
}

// openStarted begins with the first session that starts at a time after the loop's start, or later.
func (p *Plan) openStarted(l Loop, passed time.Duration) *started {
	r := &started{p: p, sessions: -1, rows: -1}
	if p.o.Rows > 0 {
		r.rows = p.o.Rows
	}
	if p.Closed() {
		r.rows = p.rows
		if l.Number == 0 {
			r.middle = p.o.SessionsAtOnce
		}
		return r
	}
	r.sessions = p.rows
	r.arrivals = p.arrivals()
	r.follows, _ = r.arrivals.next()
	for r.follows < passed && r.sessions > 0 {
		r.take()
	}
	return r
}

// take removes the next session from those left and returns the places of its rows.
func (r *started) take() []int {
	r.sessions--
	if r.place == len(r.p.chosen) {
		r.place = 0
		r.pass++
	}
	rows := r.p.chosen[r.place]
	r.place++
	r.at = r.follows
	if r.arrivals != nil {
		r.follows, _ = r.arrivals.next()
	}
	if r.rows >= 0 {
		rows = rows[:min(len(rows), r.rows)]
		r.rows -= len(rows)
	}
	return rows
}

// begin begins the next session of the shard.
func (r *started) begin() error {
	for {
		if r.sessions == 0 || r.rows == 0 {
			return io.EOF
		}
		rows := r.take()
		if r.p.o.Shard.Of > 1 {
			head, err := r.p.src.Row(rows[0])
			if err != nil {
				return err
			}
			if !r.p.o.Shard.has(&head) {
				continue
			}
		}
		if r.middle > 0 {
			r.middle--
			rows = rows[r.p.o.StartWithin.skip(r.p.o.Seed, rows):]
		}
		r.left, r.before, r.first = rows, -1, r.p.src.Offset(rows[0])
		return nil
	}
}

// next returns a row with its time after the loop's start.
func (r *started) next() (trace.Record, time.Duration, error) {
	if len(r.left) == 0 {
		if err := r.begin(); err != nil {
			return trace.Record{}, 0, err
		}
	}
	place := r.left[0]
	rec, err := r.p.src.Row(place)
	if err != nil {
		return rec, 0, err
	}
	r.left = r.left[1:]
	rec.Pass += r.pass
	switch {
	case rec.Session == "":
	case rec.After != nil && !rec.Floating:
		rec.Since = r.p.src.Offset(place) - r.first
	case rec.After == nil && r.before < 0:
		rec.After = []trace.Edge{}
	case rec.After == nil:
		rec.After = []trace.Edge{{Row: r.before, Wait: rec.Delay}}
	}
	r.before = rec.Number
	return rec, r.at, nil
}

// middleStream separates the draws of StartWithin from other draws with the same seed.
const middleStream = 0x6d6964646c65

// skip returns how many of a session's rows count as ended when it begins.
func (s StartWithin) skip(seed uint64, rows []int) int {
	draw := rand.New(rand.NewPCG(seed, middleStream+uint64(rows[0]))).Float64()
	share := s.From + float64(draw*(s.To-s.From)) // not fused: the same on every machine
	return min(len(rows)-1, int(share*float64(len(rows))))
}

// chooseSessions finds the sessions that begin in the window. They are played whole.
func (p *Plan) chooseSessions() error {
	if err := p.hold(); err != nil {
		return err
	}
	p.chosen = p.src.Sessions()
	if p.o.From > 0 || p.o.To > 0 {
		p.chosen = slices.DeleteFunc(slices.Clone(p.chosen), func(rows []int) bool {
			at := p.src.Offset(rows[0])
			return at < p.o.From || p.o.To > 0 && at >= p.o.To
		})
	}
	for _, rows := range p.chosen {
		p.window += len(rows)
	}
	switch {
	case p.window == 0 && p.src.HasTimestamps:
		return faulty("from, to", "want a window in which a session begins, got %v to %v", p.o.From, p.o.To)
	case p.window == 0:
		return faulty("rows", "want a source with a row in it, got none")
	}
	return nil
}

// hold keeps the rows of a source in memory that cannot be read by session.
func (p *Plan) hold() error {
	if p.src.Sessions != nil {
		return nil
	}
	next, err := p.src.Rows(0)
	if err != nil {
		return err
	}
	var rows []trace.Record
	size := 0
	for {
		r, err := next()
		if errors.Is(err, io.EOF) {
			held := FromRecords(rows, false)
			p.src.Sessions, p.src.Row, p.src.Offset = held.Sessions, held.Row, held.Offset
			return nil
		}
		if err != nil {
			return err
		}
		if size += rowBytes + r.Bytes(); size > mostHeldBytes {
			return faulty("arrival", "want rows of at most %d MiB together to play them session by session, got more", mostHeldBytes>>20)
		}
		rows = append(rows, r)
	}
}

// starts returns how many sessions hold a number of rows. The window is repeated for them.
func (p *Plan) starts(rows int) int {
	n := rows / p.window * len(p.chosen)
	for left, i := rows%p.window, 0; left > 0; i++ {
		left -= len(p.chosen[i])
		n++
	}
	return n
}
