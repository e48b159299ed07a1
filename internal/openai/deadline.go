package openai

import (
	"context"
	"errors"
	"os"
	"time"

	"replayd/internal/measure"
)

// Bounds of reading the rest of an answer whose outcome is settled. A connection that is read to the end can be kept.
const (
	drainTime  = time.Second
	drainBytes = 64 << 10
)

// limit sets the deadline to d after from, 0: no limit, but never later than the end of Timeouts.Total or the
// cancellation.
func (x *exchange) limit(from time.Time, d time.Duration, o measure.Outcome) {
	x.until, x.late = time.Time{}, o
	if d > 0 {
		x.until = from.Add(d)
	}
	x.sooner(x.total, measure.TimeoutTotal)
	x.sooner(x.cancel, measure.Cancelled)
}

// sooner moves the deadline to an instant if that is earlier; zero: no change.
func (x *exchange) sooner(at time.Time, o measure.Outcome) {
	if !at.IsZero() && (x.until.IsZero() || at.Before(x.until)) {
		x.until, x.late = at, o
	}
	x.conn.Until = x.until
}

// cutShort returns the failure if this process ended the reading: by a deadline, a cancellation or a stop; else nil.
func (x *exchange) cutShort(ctx context.Context, err error) *failure {
	switch {
	case ctx.Err() != nil:
		return aborted(ctx)
	case errors.Is(err, os.ErrDeadlineExceeded) && x.late != measure.ConnectFailed:
		return failed(x.late, "%s", lateWords[x.late])
	}
	return nil
}

// overdue returns the failure of a request that was aborted or exceeded Timeouts.Total while received data is handled, or nil.
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
