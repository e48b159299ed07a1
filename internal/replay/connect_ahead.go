package replay

import (
	"context"
	"time"

	"replayd/internal/dispatch"
)

// Connections are opened this long before the requests that will need them, so that no dial falls on a due instant.
const (
	warmAhead = 500 * time.Millisecond
	warmEvery = 100 * time.Millisecond
)

// warm keeps as many connections at hand as the next requests need beyond those that the free lanes hold.
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
			// A failure is the requests' to report, when they cannot connect themselves.
			_ = r.w.Client.Warm(ctx, n)
		}
	}
}

// short counts the requests due soon for which no free lane has a connection that will still be young enough.
func (r *Runner) short() (n int) {
	r.mu.Lock()
	given := r.step(dispatch.Event{Kind: dispatch.Look}, nil) // the pacer may sleep for hours, in which the wall clock is set
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
