package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// lead is how long after the target's first answer a replay without an epoch begins: so that the first rows too have
// their messages built and their connections open at their instants.
const lead = warmAhead + 2*warmEvery

// The feed reads the plan at most this far ahead of the clock and at most this many rows.
const (
	aheadTime = 5 * time.Second
	aheadRows = 1024
)

// feed reads the plan, loop after loop, and hands its rows to the queue some seconds before they are due; those of a closed
// plan as lanes take them.
func (r *Runner) feed(ctx context.Context) (err error) {
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.fed = true
		for _, l := range r.queue.loops {
			l.cut = l.cut || !l.read && err != nil // by an error, or by a stop that the queue has yet to hear of
			l.read = true
		}
		r.settle()
	}()
	now, from, epoch, err := r.join(ctx)
	if err != nil {
		return err
	}
	l := r.w.Plan.Loop(epoch, from)
	r.first = l.Start
	if r.phase == measure.Warmup {
		from = l.Start
	}
	r.bound(l, from, now)
	for {
		if l.Start.After(from) {
			from = l.Start
		}
		lp := r.begin(l, now)
		err := r.feedLoop(ctx, lp, from)
		if err == nil {
			next, ok := r.after(lp, readClock(r.w.Wall).wall)
			if !ok {
				return nil
			}
			if r.queue.closed != nil && r.filtered >= max(lp.rows, fewFiltered) {
				return r.tooLong()
			}
			err = r.room(ctx, lp, next.Start)
		}
		switch {
		case err == nil:
			// Read again at the border: the wall clock may have been set since the last row was read.
			now = readClock(r.w.Wall)
			l, _ = r.after(lp, now.wall)
			from = l.Start
		case errors.Is(err, errAstray):
			now = readClock(r.w.Wall)
			from = now.wall
			l = r.w.Plan.Loop(epoch, from)
		case errors.Is(err, errEnough):
			return nil
		default:
			r.tellLost(lp, err)
			return err
		}
	}
}

// bound lays the two ends of what comes due on the monotonic clock.
func (r *Runner) bound(l schedule.Loop, from time.Time, now clock) {
	if l.Start.After(from) {
		from = l.Start
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.queue.closed; c != nil && r.phase != measure.Warmup {
		c.opens = now.at(from)
	}
	if r.w.Duration > 0 {
		r.queue.ends = now.at(from).Add(r.w.Duration)
		r.alarm.want()
	}
}

// after is the loop that follows. A closed plan that has no more, and a warm-up, come round again until there were as many
// rows as they are to have.
func (r *Runner) after(lp *loop, now time.Time) (schedule.Loop, bool) {
	if r.phase != measure.Warmup {
		if next, ok := r.w.Plan.Next(lp.Loop, now); ok && (r.queue.closed == nil || lp.rows > 0) {
			return next, true
		}
	}
	if r.queue.closed == nil || r.w.Rows == 0 || lp.rows == 0 {
		return schedule.Loop{}, false
	}
	return schedule.Loop{Number: lp.Number + 1, Start: lp.Start, Pass: lp.passes + 1}, true
}

// join says where in the plan the replay begins: from is the first instant that is its own, epoch the start of loop 0
// where the wall clock does not say.
func (r *Runner) join(ctx context.Context) (now clock, from, epoch time.Time, err error) {
	if r.w.Begin.IsZero() && r.w.Epoch.IsZero() {
		if err := r.w.Target.await(ctx); err != nil {
			return now, from, epoch, err
		}
	}
	held, err := r.name(ctx)
	if err != nil {
		return now, from, epoch, err
	}
	now = readClock(r.w.Wall)
	switch epoch = r.w.Epoch; {
	case !r.w.Begin.IsZero():
		from = r.w.Begin.Round(0)
		if held && from.Before(now.wall) { // what was due meanwhile is nobody's
			from = now.wall
		}
		if epoch.IsZero() {
			epoch = from
		}
	case epoch.IsZero():
		from, epoch = now.wall, now.wall.Add(lead)
	default: // the instants are known, whatever the target does
		from = now.wall
	}
	return now, from, epoch, nil
}

// begin enters a loop into the queue.
func (r *Runner) begin(l schedule.Loop, now clock) *loop {
	period := r.w.Plan.Period(l) // with cron up to milliseconds: not under the lock
	r.mu.Lock()
	defer r.mu.Unlock()
	r.astray = false
	lp := r.queue.begin(l, now)
	lp.period = period
	if !r.salt.IsZero() && l.Start.Equal(r.first) {
		lp.salt = r.salt
	}
	if r.playing == nil {
		r.enter(lp)
		r.alarm.want()
	}
	return lp
}

// Why a feed ends, or begins anew.
var (
	errEnough  = errors.New("enough rows")
	errRetired = errors.New("later rows are another runner's")
	errAstray  = errors.New("the clock was set back by more than a loop")
)

// feedLoop reads one loop from an instant on.
func (r *Runner) feedLoop(ctx context.Context, l *loop, from time.Time) error {
	rows, err := r.w.Plan.Rows(l.Loop, from)
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
		it := &item{due: due, weight: weigh(&due.Record)}
		it.filtered = !r.limit(it)
		if it.filtered {
			if r.filtered++; r.queue.closed != nil && r.filtered == maxFiltered {
				return r.tooLong()
			}
		} else {
			r.filtered = 0
			if r.seq++; r.w.Rows > 0 && r.seq > int64(r.w.Rows) {
				return errEnough
			}
			it.seq, it.id = r.seq, r.id(&due)
			it.cancel = r.phase != measure.Warmup && r.w.Cancel.takes(&due)
		}
		if err := r.feedRow(ctx, l, it); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	l.read = true
	r.settle()
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
	const itself = 512
	return itself + len(r.Text) + len(r.Messages) + len(r.Tools) + len(r.Payload) + len(r.Extra) + 8*len(r.Blocks) + 32*len(r.Parts)
}

// feedRow hands a row to the queue.
func (r *Runner) feedRow(ctx context.Context, l *loop, it *item) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stopped:
		return ctx.Err()
	case r.astray:
		return errAstray
	case r.beyond(it.due.At):
		return errRetired
	case r.ended:
		return errEnough
	}
	first := r.queue.upcoming.len() == 0
	r.queue.add(l, it)
	r.changed.Broadcast()
	if r.queue.closed != nil {
		if r.queue.free > r.queue.waiting.len() {
			r.alarm.want()
		}
		return nil
	}
	if r.queue.isMissed(it.due.At) {
		r.queue.fire(time.Now()) // at once, so that a long backlog is through in no time
	} else if first {
		r.alarm.want()
	}
	return nil
}

// room waits until what a loop plans for an instant may be read: soon due, and not too many rows before it.
func (r *Runner) room(ctx context.Context, l *loop, planned time.Time) error {
	if r.queue.closed != nil {
		return r.roomClosed(ctx)
	}
	for {
		r.mu.Lock()
		at := l.clock.at(planned)
		wait := time.Until(at) - aheadTime
		full := r.queue.upcoming.len() >= aheadRows
		astray, retired, over := r.astray, r.beyond(planned), r.queue.over(at)
		r.mu.Unlock()
		switch {
		case over:
			return errEnough
		case astray:
			return errAstray
		case retired:
			return errRetired
		case wait <= 0 && !full:
			return ctx.Err()
		case wait <= 0:
			wait = 10 * time.Millisecond
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-r.moved:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
	}
}

// roomClosed waits until lanes have taken enough of the rows at hand.
func (r *Runner) roomClosed(ctx context.Context) error {
	for {
		r.mu.Lock()
		full, over := r.queue.full(), r.queue.over(time.Now())
		r.mu.Unlock()
		switch {
		case over:
			return errEnough
		case !full:
			return ctx.Err()
		}
		select {
		case <-r.moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
