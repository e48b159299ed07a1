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
	now := r.w.Wall()
	from := now // with an epoch or a wall phase the replay joins at the row where the clock is
	epoch := r.w.Epoch
	if epoch.IsZero() {
		if err := r.w.Target.await(ctx); err != nil {
			return err
		}
		now = r.w.Wall()
		epoch = now.Add(lead)
		from = now
	}
	l := r.w.Plan.Loop(epoch, now)
	if l.Start.After(from) {
		from = l.Start
	}
	r.enter(l)
	var seq int64
	for {
		if err := r.feedLoop(ctx, l, from, &seq); errors.Is(err, errEnough) {
			return nil
		} else if err != nil {
			return err
		}
		next, ok := r.w.Plan.Next(l, r.w.Wall())
		if !ok {
			return nil
		}
		if err := r.room(ctx, next.Start); err != nil {
			return err
		}
		// Read again at the border: the wall clock may have been set since the last row was read.
		l, _ = r.w.Plan.Next(l, r.w.Wall())
		from = l.Start
	}
}

// errEnough ends a feed that was given a number of rows.
var errEnough = errors.New("enough rows")

// feedLoop reads one loop from an instant on.
func (r *Runner) feedLoop(ctx context.Context, l schedule.Loop, from time.Time, seq *int64) error {
	rows, err := r.w.Plan.Rows(l, from)
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
		if !r.limit(&due.Record) {
			r.w.Count.Filtered(1)
			continue
		}
		if err := r.room(ctx, due.At); err != nil {
			return err
		}
		if *seq++; r.w.Rows > 0 && *seq > int64(r.w.Rows) {
			return errEnough
		}
		r.mu.Lock()
		if r.stopped {
			r.mu.Unlock()
			return ctx.Err()
		}
		first := r.queue.upcoming.len() == 0
		r.queue.add(&item{due: due, seq: *seq, id: fmt.Sprintf("%s/%d/%d", r.w.Name, l.Number, due.Number)})
		r.changed.Broadcast()
		r.mu.Unlock()
		if first {
			r.sleeper.Wake()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if lp := r.queue.loops[l.Number]; lp != nil {
		lp.read = true
		r.settle()
	}
	return nil
}

// room waits until a row that is due at an instant may be read: soon due, and not too many rows before it.
func (r *Runner) room(ctx context.Context, at time.Time) error {
	for {
		wait := time.Until(at) - aheadTime
		if wait <= 0 {
			r.mu.Lock()
			full := r.queue.upcoming.len() >= aheadRows
			r.mu.Unlock()
			if !full {
				return ctx.Err()
			}
			wait = 10 * time.Millisecond
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
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
