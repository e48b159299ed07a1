package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// lead is how long after the target's first answer a replay without an epoch begins: so that the first rows too have
// their messages built and their connections open at their instants.
const lead = warmAhead + 2*warmEvery

// A reading is a loop that is being read.
type reading struct {
	*dispatch.Loop
	rows   int   // read so far
	passes int64 // of the last of them
}

// feed reads the plan, loop after loop, and hands its rows to the queue some seconds before they are due; those of a closed
// plan as lanes take them.
func (r *Runner) feed(ctx context.Context) (err error) {
	defer func() { r.tell(dispatch.Event{Kind: dispatch.FeedEnded, Failed: err != nil}) }()
	now, from, epoch, err := r.join(ctx)
	if err != nil {
		return err
	}
	l := r.w.Plan.Loop(epoch, from)
	r.first = l.Start
	if r.phase == measure.Warmup {
		from = l.Start
	}
	r.bound(l, from)
	for {
		if l.Start.After(from) {
			from = l.Start
		}
		lp := r.begin(l)
		err := r.feedLoop(ctx, lp, from)
		if err == nil {
			next, ok := r.after(lp, readClock(r.w.Wall).Wall)
			if !ok {
				return nil
			}
			if r.closed && r.filtered >= max(lp.rows, fewFiltered) {
				return r.tooLong()
			}
			err = r.room(ctx, lp, next.Start)
		}
		switch {
		case err == nil:
			// Read again at the border: the wall clock may have been set since the last row was read.
			now = readClock(r.w.Wall)
			l, _ = r.after(lp, now.Wall)
			from = l.Start
		case errors.Is(err, errAstray):
			now = readClock(r.w.Wall)
			from = now.Wall
			l = r.w.Plan.Loop(epoch, from)
		case errors.Is(err, errEnough):
			return nil
		default:
			r.tellLost(lp, err)
			return err
		}
	}
}

// bound tells of the two ends of what comes due.
func (r *Runner) bound(l schedule.Loop, from time.Time) {
	if r.phase == measure.Warmup { // which begins at once
		return
	}
	if l.Start.After(from) {
		from = l.Start
	}
	r.tell(dispatch.Event{Kind: dispatch.Bounds, At: from, Period: r.length})
}

// after is the loop that follows. A closed plan that has no more, and a warm-up, come round again until there were as many
// rows as they are to have.
func (r *Runner) after(lp *reading, now time.Time) (schedule.Loop, bool) {
	if r.phase != measure.Warmup {
		if next, ok := r.w.Plan.Next(lp.Loop.Loop, now); ok && (!r.closed || lp.rows > 0) {
			return next, true
		}
	}
	if !r.closed || r.rows == 0 || lp.rows == 0 {
		return schedule.Loop{}, false
	}
	return schedule.Loop{Number: lp.Number + 1, Start: lp.Start, Pass: lp.passes + 1}, true
}

// join says where in the plan the replay begins: from is the first instant that is its own, epoch the start of loop 0
// where the wall clock does not say.
func (r *Runner) join(ctx context.Context) (now dispatch.Clock, from, epoch time.Time, err error) {
	if r.w.Begin.IsZero() && r.epoch.IsZero() {
		if err := r.w.Target.await(ctx); err != nil {
			return now, from, epoch, err
		}
	}
	held, err := r.name(ctx)
	if err != nil {
		return now, from, epoch, err
	}
	now = readClock(r.w.Wall)
	switch epoch = r.epoch; {
	case !r.w.Begin.IsZero():
		from = r.w.Begin.Round(0)
		if held && from.Before(now.Wall) { // what was due meanwhile is nobody's
			from = now.Wall
		}
		if epoch.IsZero() {
			epoch = from
		}
	case epoch.IsZero():
		from, epoch = now.Wall, now.Wall.Add(lead)
	default: // the instants are known, whatever the target does
		from = now.Wall
	}
	return now, from, epoch, nil
}

// begin has the dispatcher make room for a loop.
func (r *Runner) begin(l schedule.Loop) *reading {
	e := dispatch.Event{Kind: dispatch.LoopBegun, Plan: l, Period: r.w.Plan.Period(l)} // with cron up to milliseconds: not under the lock
	if l.Start.Equal(r.first) {
		e.Salt = r.salt
	}
	e.Seen = r.look()
	r.mu.Lock()
	given := r.step(e, nil)
	lp := r.d.Loop(l.Number) // before a stop can end it
	r.mu.Unlock()
	start(given)
	return &reading{Loop: lp}
}

// Why a feed ends, or begins anew.
var (
	errEnough  = errors.New("enough rows")
	errRetired = errors.New("later rows are another runner's")
	errAstray  = errors.New("the clock was set back by more than a loop")
)

// feedLoop reads one loop from an instant on.
func (r *Runner) feedLoop(ctx context.Context, l *reading, from time.Time) error {
	rows, err := r.w.Plan.Rows(l.Loop.Loop, from)
	if err != nil {
		return r.unread(err)
	}
	for {
		due, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return r.unread(err)
		}
		if err := r.nameRow(ctx); err != nil {
			return err
		}
		l.rows, l.passes = l.rows+1, due.Passes()
		if err := r.room(ctx, l, due.At); err != nil {
			return err
		}
		row := &dispatch.Row{Due: due, Weight: weigh(&due.Record)}
		row.Size = r.bytes(row)
		row.Filtered = !r.limit(row)
		if row.Filtered {
			if r.filtered++; r.closed && r.filtered == maxFiltered {
				return r.tooLong()
			}
		} else {
			r.filtered = 0
			if r.seq++; r.rows > 0 && r.seq > int64(r.rows) {
				return errEnough
			}
			row.Seq, row.ID = r.seq, r.id(&due)
			row.Cancel = r.phase != measure.Warmup && r.w.Cancel.takes(&due)
		}
		if err := r.feedRow(ctx, l, row); err != nil {
			return err
		}
	}
	r.tell(dispatch.Event{Kind: dispatch.LoopRead, Loop: l.Loop})
	return nil
}

// So many filtered rows one after the other are no plan: a closed one would be read for ever, as fast as it can be.
const (
	maxFiltered = 1 << 20
	fewFiltered = 1 << 12 // where they are whole loops: those of made-up rows differ
)

func (r *Runner) tooLong() error {
	return fmt.Errorf("workload %s: %d rows one after the other are over the length limits", r.w.Name, r.filtered)
}

// id is a request's X-Request-Id.
func (r *Runner) id(due *schedule.Due) string {
	if r.phase != measure.Warmup {
		return r.w.Name + "/" + due.ID()
	}
	id := fmt.Sprintf("%s/%s/%d", r.w.Name, measure.Warmup, due.Number)
	if n := due.Passes(); n > 0 {
		id = fmt.Sprintf("%s.%d", id, n)
	}
	return id
}

// weigh is about how many bytes a row takes.
func weigh(r *trace.Record) int {
	const itself = 768
	return itself + len(r.Text) + len(r.Messages) + len(r.Tools) + len(r.Payload) + len(r.Extra) + 8*len(r.Blocks) + 32*len(r.Parts)
}

// feedRow hands a row to the dispatcher.
func (r *Runner) feedRow(ctx context.Context, l *reading, row *dispatch.Row) error {
	e := dispatch.Event{Kind: dispatch.RowRead, Loop: l.Loop, Row: row}
	if r.closed || !row.Due.At.After(readClock(r.w.Wall).Wall) { // it may go at once
		e.Seen = r.look()
	}
	r.mu.Lock()
	if r.d.IsStopped() {
		r.mu.Unlock()
		return ctx.Err()
	}
	if room, _ := r.d.Room(l.Loop, row.Due.At, time.Now()); room > dispatch.Early {
		r.mu.Unlock()
		return noRoom[room]
	}
	given := r.step(e, nil)
	r.mu.Unlock()
	start(given)
	return nil
}

// noRoom says why no more rows are read.
var noRoom = map[dispatch.Room]error{dispatch.Over: errEnough, dispatch.Astray: errAstray, dispatch.Another: errRetired}

// pollRoom is how often the feed of an open loop looks whether rows that were read have come due, where very many do at once.
const pollRoom = 10 * time.Millisecond

// room waits until what a loop plans for an instant may be read: soon due, and not too many rows before it.
func (r *Runner) room(ctx context.Context, l *reading, planned time.Time) error {
	for {
		r.mu.Lock()
		room, wait := r.d.Room(l.Loop, planned, time.Now())
		r.mu.Unlock()
		switch {
		case room == dispatch.Free:
			return ctx.Err()
		case room == dispatch.Early:
		case room == dispatch.Crowd:
			r.tell(dispatch.Event{Kind: dispatch.Held})
			wait = pollRoom
		case room != dispatch.Full:
			return noRoom[room]
		case !r.closed:
			wait = pollRoom
		}
		if err := r.rest(ctx, wait); err != nil {
			return err
		}
	}
}

// rest waits until there may be room, at most for a span; 0: until lanes have taken enough of the rows at hand.
func (r *Runner) rest(ctx context.Context, span time.Duration) error {
	var over <-chan time.Time
	if span > 0 {
		timer := time.NewTimer(span)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-over:
		return nil
	case <-r.moved:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
