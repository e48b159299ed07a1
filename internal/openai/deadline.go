package openai

import (
	"context"
	"errors"
	"os"
	"time"

	"replayd/internal/measure"
)

// Bounds of reading the rest of an answer whose outcome is settled, so that the connection can be kept.
const (
	drainTime  = time.Second
	drainBytes = 64 << 10
)

// limit sets the deadline of everything that follows to d after from, 0 for none, but never later than the total's and
// the cancellation's.
func (x *exchange) limit(from time.Time, d time.Duration, o measure.Outcome) {
	x.until, x.late = time.Time{}, o
	if d > 0 {
		x.until = from.Add(d)
	}
	x.sooner(x.total, measure.TimeoutTotal)
	x.sooner(x.cancel, measure.Cancelled)
}

// sooner brings the deadline forward to an instant; zero is none.
func (x *exchange) sooner(at time.Time, o measure.Outcome) {
	if !at.IsZero() && (x.until.IsZero() || at.Before(x.until)) {
		x.until, x.late = at, o
	}
	x.conn.Until(x.until)
}

// cutShort is the failure when it was us who ended the reading, or nil.
func (x *exchange) cutShort(ctx context.Context, err error) *failure {
	switch {
	case ctx.Err() != nil:
		return aborted(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded) && x.late != measure.ConnectFailed:
		return failed(x.late, "%s", lateWords[x.late])
	}
	return nil
}

// overdue is the failure of a request that may not go on while it is busy with what has come, or nil.
func (x *exchange) overdue(ctx context.Context) *failure {
	switch {
	case ctx.Err() != nil:
		return aborted(ctx)
	case !x.total.IsZero() && time.Now().After(x.total):
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
