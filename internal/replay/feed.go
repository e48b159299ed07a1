package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

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

// feed reads the plan, loop after loop, and hands its rows to the queue some seconds before they are due.
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
	var seq int64
	for {
		if l.Start.After(from) {
			from = l.Start
		}
		lp := r.begin(l, now)
		err := r.feedLoop(ctx, lp, from, &seq)
		if err == nil {
			next, ok := r.w.Plan.Next(l, readClock(r.w.Wall).wall)
			if !ok {
				return nil
			}
			err = r.room(ctx, lp, next.Start)
		}
		switch {
		case err == nil:
			// Read again at the border: the wall clock may have been set since the last row was read.
			now = readClock(r.w.Wall)
			l, _ = r.w.Plan.Next(l, now.wall)
			from = l.Start
		case errors.Is(err, errAstray):
			now = readClock(r.w.Wall)
			from = now.wall
			l = r.w.Plan.Loop(epoch, from)
		case errors.Is(err, errEnough):
			return nil
		default:
			return err
		}
	}
}

// join says where in the plan the replay begins: from is the first instant that is its own, epoch the start of loop 0
// where the wall clock does not say.
func (r *Runner) join(ctx context.Context) (now clock, from, epoch time.Time, err error) {
	now = readClock(r.w.Wall)
	switch epoch = r.w.Epoch; {
	case !r.w.Begin.IsZero():
		from = r.w.Begin.Round(0)
		if epoch.IsZero() {
			epoch = from
		}
	case epoch.IsZero():
		if err := r.w.Target.await(ctx); err != nil {
			return now, from, epoch, err
		}
		now = readClock(r.w.Wall)
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
	if r.playing == nil {
		r.enter(lp)
		r.sleeper.Wake() // the pacer tells of it
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
func (r *Runner) feedLoop(ctx context.Context, l *loop, from time.Time, seq *int64) error {
	rows, err := r.w.Plan.Rows(l.Loop, from)
	if err != nil {
		return fmt.Errorf("workload %s: %w", r.w.Name, err)
	}
	for {
		due, err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("workload %s: %w", r.w.Name, err)
		}
		if err := r.room(ctx, l, due.At); err != nil {
			return err
		}
		filtered := !r.limit(&due.Record)
		it := &item{due: due, filtered: filtered}
		if !filtered {
			if *seq++; r.w.Rows > 0 && *seq > int64(r.w.Rows) {
				return errEnough
			}
			it.seq, it.id = *seq, fmt.Sprintf("%s/%d/%d", r.w.Name, l.Number, due.Number)
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
	}
	first := r.queue.upcoming.len() == 0
	r.queue.add(l, it)
	r.changed.Broadcast()
	if r.queue.isMissed(it.due.At) {
		r.queue.fire(time.Now()) // at once, so that a long backlog is through in no time
	} else if first {
		r.sleeper.Wake()
	}
	return nil
}

// room waits until what a loop plans for an instant may be read: soon due, and not too many rows before it.
func (r *Runner) room(ctx context.Context, l *loop, planned time.Time) error {
	for {
		r.mu.Lock()
		wait := time.Until(l.clock.at(planned)) - aheadTime
		full := r.queue.upcoming.len() >= aheadRows
		astray, retired := r.astray, r.beyond(planned)
		r.mu.Unlock()
		switch {
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

// limit applies the length limits to a row: false when it is filtered out.
func (r *Runner) limit(rec *trace.Record) bool {
	long := r.w.MaxInput > 0 && rec.InputTokens > r.w.MaxInput || r.w.MaxOutput > 0 && rec.OutputTokens > r.w.MaxOutput
	switch {
	case !long || r.w.OverLimit == Send:
		return true
	case r.w.OverLimit == Filter:
		return false
	}
	if r.w.MaxInput > 0 {
		rec.InputTokens = min(rec.InputTokens, r.w.MaxInput) // blocks past the end are never reached
	}
	if r.w.MaxOutput > 0 {
		rec.OutputTokens = min(rec.OutputTokens, r.w.MaxOutput)
	}
	return true
}
