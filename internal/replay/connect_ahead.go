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
		// Requests report the failure when they cannot connect themselves.
		_ = r.w.Client.Warm(ctx, r.short()...)
	}
}

// short returns, for each pod, the number of requests due soon for which no free lane has a connection that will still
// be fresh.
func (r *Runner) short() []int {
	n := make([]int, r.w.Client.NumPods())
	r.mu.Lock()
	// detects a step of the wall clock, since the pacer may sleep for hours
	given := r.step(dispatch.Event{Kind: dispatch.Poll}, nil)
	now := time.Now()
	for row := range r.d.Soon(warmAhead, now) {
		if pod := r.w.Client.PodOf(r.place(row)); pod >= 0 && pod < len(n) {
			n[pod]++
		}
	}
	idle := r.lanes.idle
	for i := len(idle) - 1; i >= 0 && len(n) == 1 && n[0] > 0; i-- { // else they have none: pods keep them
		if idle[i].wire.Fresh(now.Add(warmAhead)) {
			n[0]--
		}
	}
	r.mu.Unlock()
	r.start(given)
	return n
}
