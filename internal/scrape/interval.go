package scrape

import (
	"context"
	"time"
)

// Every calls do at once and then at scheduled times that are whole intervals apart, until ctx is done. do returns the
// time from its own scheduled time to the next one, a whole number of intervals. Times that pass while do runs are
// skipped.
func Every(ctx context.Context, interval time.Duration, do func() time.Duration) {
	due := time.Now()
	for ctx.Err() == nil {
		due = due.Add(do())
		for !due.After(time.Now()) {
			due = due.Add(interval)
		}
		select {
		case <-time.After(time.Until(due)):
		case <-ctx.Done():
		}
	}
}
