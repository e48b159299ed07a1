package replay

import (
	"sync"
	"time"

	"replayd/internal/measure"
)

// What an error ratio is judged by.
const (
	healthSlots = 60 // of a second
	healthLeast = 5  // finished requests before a limit opens: one failure of one request is no ratio
	trialEvery  = time.Second
)

// A health is how a target has answered a workload in the last minute. A runner shares it with a successor on the same
// target. Its lock is taken with a runner's held, never the other way round.
type health struct {
	mu               sync.Mutex
	finished, failed window
	trying           bool      // a trial waits or is in flight
	latest           time.Time // when the last one was let through; zero: there was none, or it was never sent
}

func newHealth() *health {
	return &health{finished: newWindow(healthSlots, time.Second), failed: newWindow(healthSlots, time.Second)}
}

// ended counts a finished request. What was cancelled or aborted says nothing of the target.
func (h *health) ended(now time.Time, o measure.Outcome) {
	if o == measure.Cancelled || o == measure.Aborted {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.finished.advance(now)
	h.failed.advance(now)
	h.finished.add(now, 1)
	if o.Failed() {
		h.failed.add(now, 1)
	}
}

// ratio is the share of finished requests that failed, and how many finished; 0 of none.
func (h *health) ratio(now time.Time) (share float64, finished int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.finished.advance(now)
	h.failed.advance(now)
	if h.finished.sum == 0 {
		return 0, 0
	}
	return float64(h.failed.sum) / float64(h.finished.sum), h.finished.sum
}

// mayTry says whether a trial would be let through.
func (h *health) mayTry(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.free(now)
}

func (h *health) free(now time.Time) bool {
	return !h.trying && (h.latest.IsZero() || now.Sub(h.latest) >= trialEvery)
}

// try lets a trial through where one may.
func (h *health) try(now time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.free(now) {
		return false
	}
	h.trying, h.latest = true, now
	return true
}

// tried ends a trial. One that was never sent was none.
func (h *health) tried(sent bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.trying = false
	if !sent {
		h.latest = time.Time{}
	}
}
