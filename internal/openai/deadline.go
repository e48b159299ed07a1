package openai

import (
	"context"
	"errors"
	"os"
	"time"

	"replayd/internal/measure"
)

// limit sets the deadline of everything that follows to d after from, 0 for none, but never later than the total's and
// the cancellation's.
func (l *Lane) limit(from time.Time, d time.Duration, o measure.Outcome) {
	l.until, l.late = time.Time{}, o
	if d > 0 {
		l.until = from.Add(d)
	}
	l.sooner(l.total, measure.TimeoutTotal)
	l.sooner(l.cancel, measure.Cancelled)
}

// sooner brings the deadline forward to an instant; zero is none.
func (l *Lane) sooner(at time.Time, o measure.Outcome) {
	if !at.IsZero() && (l.until.IsZero() || at.Before(l.until)) {
		l.until, l.late = at, o
	}
	l.conn.Until(l.until)
}

// cutShort is the failure when it was us who ended the reading, or nil.
func (l *Lane) cutShort(ctx context.Context, err error) *failure {
	switch {
	case ctx.Err() != nil:
		return aborted(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded) && l.late != measure.ConnectFailed:
		return failed(l.late, "%s", lateWords[l.late])
	}
	return nil
}

// overdue is the failure of a request that may not go on while it is busy with what has come, or nil.
func (l *Lane) overdue(ctx context.Context) *failure {
	switch {
	case ctx.Err() != nil:
		return aborted(ctx)
	case !l.total.IsZero() && time.Now().After(l.total):
		return failed(measure.TimeoutTotal, "%s", lateWords[measure.TimeoutTotal])
	}
	return nil
}

var lateWords = map[measure.Outcome]string{
	measure.TimeoutFirstToken: "no content within the first-token timeout",
	measure.TimeoutStall:      "no data event within the stall timeout",
	measure.TimeoutTotal:      "not finished within the total timeout",
	measure.Cancelled:         "cancelled, as the workload asks",
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
