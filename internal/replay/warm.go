package replay

import (
	"context"
	"time"

	"replayd/internal/limits"
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
func (r *Runner) short() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.align() // here too, because the pacer may sleep for hours
	most := r.queue.free
	switch h := r.queue.guard.State(); {
	case r.queue.paused || h == limits.Open:
		return 0
	case h == limits.HalfOpen:
		most = min(most, 1)
	}
	n := 0
	for _, it := range r.queue.upcoming.items[r.queue.upcoming.head:] {
		if it.due.At.Sub(now) > warmAhead || n == most {
			break
		}
		if !it.filtered {
			n++
		}
	}
	for i := len(r.idle) - 1; i >= 0 && n > 0; i-- {
		if r.idle[i].wire.Fresh(now.Add(warmAhead)) {
			n--
		}
	}
	return n
}
