package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// lead is the time from the target's first answer to the begin of a replay without an epoch. It suffices to build the
// messages and open the connections of the first rows.
const lead = 700 * time.Millisecond

// A feed reads the rows of a stage.
type feed struct {
	r          *Runner
	from       schedule.Loop // loop of a plan that does not follow the wall clock, from which the others are counted
	skip       *schedule.Due // rows before this one are not the runner's; nil: all are
	seq        int64         // rows read, without filtered rows
	filtered   int           // filtered rows since the last row that was not filtered
	loggedHeld bool          // it was logged that waiting requests hold the reader back
	said       time.Time     // the latest next due instant that was logged; zero: none since the plan was entered
}

// A reading is a loop that is being read.
type reading struct {
	*dispatch.Loop
	rows   int       // rows read so far
	passes int64     // pass of the last row
	due    time.Time // planned instant of the last row
}

// run reads the plan loop by loop. It passes rows to the dispatcher some seconds before they are due, and in a closed loop as fast as
// lanes take them.
func (f *feed) run(ctx context.Context) (err error) {
	defer func() {
		f.await(time.Time{}, 0)
		f.r.deliver(dispatch.Event{Kind: dispatch.FeedEnded, Failed: err != nil})
	}()
	if f.r.w.Over {
		return nil
	}
	from, err := f.join(ctx)
	if errors.Is(err, errEnough) {
		return nil
	}
	if err != nil {
		return err
	}
	l := f.loop(from)
	f.begin(l)
	if f.r.phase == measure.Warmup || l.Start.After(from) {
		from = l.Start
	}
	if f.r.phase != measure.Warmup { // which begins at once
		f.r.deliver(dispatch.Event{Kind: dispatch.Bounds, At: from, Period: f.r.length})
	}
	if err := f.passRest(ctx, from); err != nil {
		return err
	}
	follows := false
	for {
		if l.Start.After(from) {
			from = l.Start
		}
		lp := f.openLoop(l, from, follows)
		err := f.readLoop(ctx, lp, from)
		if err == nil {
			next, ok := f.after(lp)
			if !ok {
				return nil
			}
			if f.r.closed && f.filtered >= max(lp.rows, fewFiltered) || f.r.w.Sides != nil && f.r.w.HoldReader && lp.rows > 0 && f.filtered >= 2*lp.rows {
				return f.tooLong()
			}
			f.awaitNext(lp, next)
			if err = f.room(ctx, lp, next.Start); err == nil {
				f.reportSkipped(lp.Loop.Loop, next)
			}
		}
		switch {
		case err == nil:
			// Read again at the border: the wall clock may have been set since the last row was read.
			next, _ := f.after(lp)
			f.leaveOut(l, next)
			l, from, follows = next, next.Start, true
		case errors.Is(err, errOffPlan):
			from, follows = f.now(), false
			f.await(time.Time{}, 0)
			l = f.loop(from)
		case errors.Is(err, errEnough):
			return nil
		default:
			f.reportLost(lp, err)
			return err
		}
	}
}

// after returns the next loop. A closed loop at the end of its plan, and a warm-up, repeat the trace until they have read their number
// of rows.
func (f *feed) after(lp *reading) (schedule.Loop, bool) {
	if f.r.phase != measure.Warmup {
		if next, ok := f.r.w.Plan.Next(lp.Loop.Loop, f.reached(lp)); ok && (!f.r.closed || lp.rows > 0) {
			return next, true
		}
	}
	if !f.r.closed || f.r.rows == 0 || lp.rows == 0 {
		return schedule.Loop{}, false
	}
	return schedule.Loop{Number: lp.Number + 1, Start: lp.Start, Pass: lp.passes + 1}, true
}

// reached returns the instant by which the loop after one is chosen.
func (f *feed) reached(lp *reading) time.Time {
	if f.r.closed {
		return time.Time{}
	}
	f.r.deliver(dispatch.Event{Kind: dispatch.Poll}) // the dispatcher notices a standstill
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	return f.r.d.Reached(lp.Loop, f.r.w.clock(), f.r.w.Plan.FollowsWall())
}

// leaveOut reports the loops between two that were over before the replay came to them. None of their rows is read or
// expected.
func (f *feed) leaveOut(l, next schedule.Loop) {
	n := f.r.w.Plan.LeftOut(l, next)
	if n == 0 {
		return
	}
	f.r.count.LoopsSkipped(n)
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	f.r.log.say(slog.LevelWarn, "whole loops are left out: they were over before the replay came to them",
		"loops", n, "next", next.Number)
}

// reportSkipped reports the activations that a loop left out.
func (f *feed) reportSkipped(l, next schedule.Loop) {
	n := f.r.w.Plan.Skipped(l) // not under the lock
	if n == 0 {
		return
	}
	f.r.count.ActivationsSkipped(n)
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	f.r.log.say(slog.LevelInfo, "activations left out: they fell into the pass", "activations", n,
		"next", next.Start.UTC().Format(time.RFC3339))
}

// openLoop begins a loop in the dispatcher, one that follows the loop before or enters the plan, from an instant on.
func (f *feed) openLoop(l schedule.Loop, from time.Time, follows bool) *reading {
	e := dispatch.Event{Kind: dispatch.LoopBegun, On: follows, Plan: l, At: from, Period: f.r.w.Plan.Period(l)} // with cron up to milliseconds: not under the lock
	if l.Start.Equal(f.r.first) {
		e.Salt = f.r.salt
	}
	e.Seen = f.r.guard.read()
	f.r.mu.Lock()
	given := f.r.step(e, nil)
	lp := f.r.d.Loop(l.Number) // before a stop can end it
	f.r.mu.Unlock()
	f.r.start(given)
	return &reading{Loop: lp}
}

// Reasons for which a feed ends or begins again.
var (
	errEnough  = errors.New("enough rows")
	errRetired = errors.New("later rows are another runner's")
	errOffPlan = errors.New("the clock was set back by more than a loop")
)

func (f *feed) readLoop(ctx context.Context, l *reading, from time.Time) error {
	rows, err := f.r.w.Plan.Rows(l.Loop.Loop, from)
	if err != nil {
		return f.unread(err)
	}
	passed := 0 // rows that the predecessor has read in a closed loop
	if p := f.r.progress; f.r.closed && p.loop.Number == l.Number {
		passed = p.passed
	}
	for {
		due, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return f.unread(err)
		}
		l.rows, l.passes = l.rows+1, due.Passes()
		if l.rows <= passed || f.skips(&due) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		if err := f.pass(ctx, l, due); err != nil {
			return err
		}
	}
	f.r.deliver(dispatch.Event{Kind: dispatch.LoopRead, Loop: l.Loop})
	return nil
}

// pass passes a row to the dispatcher when there is room.
func (f *feed) pass(ctx context.Context, l *reading, due schedule.Due) error {
	if err := f.nameRow(ctx); err != nil {
		return err
	}
	l.due = due.At
	if err := f.room(ctx, l, due.At); err != nil {
		return err
	}
	if due.OutputTokens == 0 && due.Payload == nil {
		due.OutputTokens = f.r.w.Output
	}
	row := &dispatch.Row{Due: due, Weight: weigh(&due.Record)}
	row.Size = f.r.bytes(row)
	row.Filtered = !f.r.w.limit(row, f.r.w.CountInput)
	if f.r.w.Client.Several(row.Due.Payload, row.Due.Extra) {
		row.Filtered = true
		f.r.log.several(&row.Due.Record)
	}
	f.lighten(row)
	if row.Filtered {
		if f.filtered++; f.r.closed && f.filtered == maxFiltered {
			return f.tooLong()
		}
	} else {
		f.filtered = 0
		if f.seq++; f.r.rows > 0 && f.seq > int64(f.r.rows) {
			return errEnough
		}
		row.ID = f.id(&due)
		row.Cancel = f.r.phase != measure.Warmup && f.r.w.Cancel.cancels(&due)
	}
	row.Seq = f.seq
	return f.hand(ctx, l, row)
}

// A plan with this many filtered rows in succession is refused: a closed loop would read such a trace for ever in a busy loop.
const (
	maxFiltered = 1 << 20
	fewFiltered = 1 << 12 // if whole loops are filtered; loops of synthetic rows differ
)

func (f *feed) tooLong() error {
	return fmt.Errorf("workload %s: %d rows one after the other are over the length limits or ask for several choices",
		f.r.w.Name, f.filtered)
}

// id returns the X-Request-Id of a request. No other request of the workload has it as long as the process lives.
func (f *feed) id(due *schedule.Due) string {
	id := f.r.w.Name + "/" + due.ID()
	if f.r.phase == measure.Warmup {
		id = fmt.Sprintf("%s/%s/%d", f.r.w.Name, measure.Warmup, due.Number)
		if n := due.Passes(); n > 0 {
			id = fmt.Sprintf("%s.%d", id, n)
		}
	}
	if f.r.w.Part > 0 {
		id = fmt.Sprintf("%s~%d", id, f.r.w.Part)
	}
	return id
}

// weigh estimates the bytes of a row in memory.
func weigh(r *trace.Record) int {
	const itself = 864
	return itself + r.Bytes()
}

// lighten removes the content of a row that names its parents. It may wait for them for hours, behind hundreds of rows of its session.
func (f *feed) lighten(row *dispatch.Row) {
	if row.Due.After == nil || !f.r.w.Plan.Rereads() {
		return
	}
	row.Light = true
	row.Due.Shed()
	row.Weight = weigh(&row.Due.Record)
}

func (f *feed) hand(ctx context.Context, l *reading, row *dispatch.Row) error {
	e := dispatch.Event{Kind: dispatch.RowRead, Loop: l.Loop, Row: row}
	if f.r.closed || !row.Due.At.After(f.r.w.clock().Wall) { // the row may be sent at once
		e.Seen = f.r.guard.read()
	}
	f.r.mu.Lock()
	if f.r.d.IsStopped() {
		f.r.mu.Unlock()
		return ctx.Err()
	}
	if room, _ := f.r.d.Room(l.Loop, row.Due.At, time.Now()); room > dispatch.Early {
		f.r.mu.Unlock()
		return noRoom[room]
	}
	if f.r.w.Sides != nil && f.r.phase == measure.Profiling && row.Due.Session != "" && !row.Filtered {
		f.r.w.Sides.has(f.r.w.side(), row.Due.ID())
	}
	switch {
	case f.r.phase == measure.Warmup:
	case len(f.r.rest) > 0:
		f.r.rest = f.r.rest[1:]
	default:
		f.r.loop, f.r.passed = l.Loop.Loop, l.rows
	}
	f.r.awaited = time.Time{}
	given := f.r.step(e, nil)
	f.r.isNear(row)
	f.r.mu.Unlock()
	f.r.start(given)
	return nil
}

// noRoom returns why no more rows are read.
var noRoom = map[dispatch.Room]error{
	dispatch.Over: errEnough, dispatch.OffPlan: errOffPlan,
	dispatch.Another: errRetired,
}

// pollRoom is the interval at which the feed of an open loop checks whether it may read.
const pollRoom = 10 * time.Millisecond

// room waits until a row planned for an instant may be read: the row is due soon, and not too many rows are read ahead.
func (f *feed) room(ctx context.Context, l *reading, planned time.Time) error {
	for {
		f.r.mu.Lock()
		room, wait := f.r.d.Room(l.Loop, planned, time.Now())
		f.r.mu.Unlock()
		switch {
		case room == dispatch.Free:
			return ctx.Err()
		case room == dispatch.Early && planned.Equal(l.due):
			f.await(planned, inLoop)
		case room == dispatch.Early:
		case room == dispatch.Crowd:
			f.logHeldBack()
			f.r.deliver(dispatch.Event{Kind: dispatch.ReaderHeld})
			wait = pollRoom
		case room != dispatch.Full:
			return noRoom[room]
		case !f.r.closed:
			wait = pollRoom
		}
		if err := f.wait(ctx, wait); err != nil {
			return err
		}
	}
}

// logHeldBack logs once that memory holds the reader back: the load differs from the plan from then on.
func (f *feed) logHeldBack() {
	if f.loggedHeld {
		return
	}
	f.loggedHeld = true
	f.r.mu.Lock()
	defer f.r.mu.Unlock()
	bound := fmt.Sprintf("%d MiB of requests wait", dispatch.MostWaiting>>20)
	if f.r.d.Weight() >= dispatch.PoolBytes {
		bound = fmt.Sprintf("%d MiB of rows wait for their parents or their instants", dispatch.PoolBytes>>20)
	}
	f.r.log.say(slog.LevelWarn, bound+": reading the trace pauses until there is room, and later requests are late")
}

// wait waits for a span or until ReadOn. With a span of 0 it waits for ReadOn only.
func (f *feed) wait(ctx context.Context, span time.Duration) error {
	var over <-chan time.Time
	if span > 0 {
		over = time.After(span)
	}
	select {
	case <-over:
		return nil
	case <-f.r.moved:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
