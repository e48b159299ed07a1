package scrape

import (
	"context"
	"time"
)

// Every calls do at once and then at instants that are whole intervals apart, until ctx is done. do says how long after its
// own instant the next one is, a whole number of intervals; when it takes longer, the instants that it covers are lost.
func Every(ctx context.Context, interval time.Duration, do func() time.Duration) {
	due := time.Now()
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for ctx.Err() == nil {
		due = due.Add(do())
		for !due.After(time.Now()) {
			due = due.Add(interval)
		}
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
}
