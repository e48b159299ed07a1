package schedule

import (
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
	index    int // of the next session among those of the window
	pass     int64
	middle   int // sessions left that may begin in the middle

	at     time.Duration // start of the present session
	left   []int         // indices of its rows that were not read
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
		r.middle = p.o.AtOnce // the first sessions, however many loops they take
		if l.Number > 0 {
			r.middle -= int(min(l.Number*int64(p.starts(p.rows)), int64(r.middle)))
		}
		return r
	}
	r.sessions = p.rows
	r.arrivals = p.arrivals()
	r.follows, _ = r.arrivals.next()
	for r.follows < passed && r.sessions > 0 {
		r.pop()
	}
	return r
}

// pop removes the next session from those left and returns the indices of its rows.
func (r *started) pop() []int {
	r.sessions--
	if r.index == len(r.p.chosen) {
		r.index = 0
		r.pass++
	}
	rows := r.p.chosen[r.index]
	r.index++
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
		rows := r.pop()
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
			rows = rows[r.p.o.ended(rows):]
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
	index := r.left[0]
	rec, err := r.p.src.Row(index)
	if err != nil {
		return rec, 0, err
	}
	r.left = r.left[1:]
	rec.Pass += r.pass
	switch {
	case rec.Session == "":
	case rec.After != nil && !rec.Floating:
		rec.Since = r.p.src.Offset(index) - r.first
	case rec.After == nil && r.before < 0:
		rec.After = []trace.Edge{}
	case rec.After == nil:
		rec.After = []trace.Edge{{Row: r.before, Wait: rec.Delay}}
	}
	r.before = rec.Number
	return rec, r.at, nil
}

// middleStream separates the draws of Pattern.Within from other draws with the same seed.
const middleStream = 0x6d6964646c65

// ended returns how many of a session's rows count as ended when it begins.
func (o *Options) ended(rows []int) int {
	draw := rand.New(rand.NewPCG(o.Seed, middleStream+uint64(rows[0]))).Float64()
	share := o.Within[0] + float64(draw*(o.Within[1]-o.Within[0])) // not fused: the same on every machine
	return min(len(rows)-1, int(share*float64(len(rows))))
}

// chooseSessions finds the sessions that begin in the window. They are played whole.
func (p *Plan) chooseSessions() error {
	if p.src.Sessions == nil { // rows that cannot be read by session are held
		next, err := p.src.Rows(0)
		if err != nil {
			return err
		}
		rows, err := hold(next, "to play them session by session")
		if err != nil {
			return err
		}
		held := FromRecords(rows, false)
		p.src.Sessions, p.src.Row, p.src.Offset = held.Sessions, held.Row, held.Offset
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
	return p.checkWindow("in which a session begins")
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
