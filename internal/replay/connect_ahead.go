package replay

import (
	"context"
	"time"

	"replayd/internal/dispatch"
)

// Connections are opened warmAhead before the requests that will use them, so that no dial delays a due instant.
const (
	warmAhead = 500 * time.Millisecond
	warmEvery = 100 * time.Millisecond
)

// warm keeps enough connections open for the next requests, in addition to those of the free lanes.
func (r *Runner) warm(ctx context.Context) {
	tick := time.NewTicker(warmEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		if n := r.short(); n > 0 {
			// Requests report the failure when they cannot connect themselves.
			_ = r.w.Client.Warm(ctx, n)
		}
	}
}

// short returns the number of requests due soon for which no free lane has a connection that will still be fresh.
func (r *Runner) short() (n int) {
	r.mu.Lock()
	given := r.step(dispatch.Event{Kind: dispatch.Look}, nil) // detects a step of the wall clock, since the pacer may sleep for hours
	now := time.Now()
	n = r.d.Soon(warmAhead, now)
	for i := len(r.idle) - 1; i >= 0 && n > 0; i-- {
		if r.idle[i].wire.Fresh(now.Add(warmAhead)) {
			n--
		}
	}
	r.mu.Unlock()
	r.start(given)
	return n
}
