package limits

import "time"

// The window of the error ratio and its trials.
const (
	healthSlots = 60 // of a second each
	healthLeast = 5  // finished requests before the limit can open: one failure of one request is no ratio
	trialEvery  = time.Second
)

// A Health counts the finished and failed requests of the last minute. It survives reloads that keep the target.
type Health struct {
	finished, failed window
	trying           bool      // a trial waits or is in flight
	latest           time.Time // start of the latest trial; zero: none, or it was never sent
}

func newHealth() *Health {
	return &Health{finished: newWindow(healthSlots, time.Second), failed: newWindow(healthSlots, time.Second)}
}

// Ended counts a finished request. Cancelled and aborted requests say nothing about the target and must not be counted.
func (h *Health) Ended(now time.Time, failed bool) {
	h.finished.add(now, 1)
	h.failed.total(now) // its slots begin with those of the other window
	if failed {
		h.failed.add(now, 1)
	}
}

// Ratio returns the fraction of finished requests that failed (0 if none finished) and the number of finished requests.
func (h *Health) Ratio(now time.Time) (share float64, finished int64) {
	failed, finished := h.failed.total(now), h.finished.total(now)
	return float64(failed) / float64(max(1, finished)), finished
}

// mayTry reports whether a trial would be admitted.
func (h *Health) mayTry(now time.Time) bool {
	return !h.trying && (h.latest.IsZero() || now.Sub(h.latest) >= trialEvery)
}

// try admits a trial if mayTry allows it.
func (h *Health) try(now time.Time) bool {
	if !h.mayTry(now) {
		return false
	}
	h.trying, h.latest = true, now
	return true
}

// tried ends a trial. A trial that was never sent does not count.
func (h *Health) tried(sent bool) {
	h.trying = false
	if !sent {
		h.latest = time.Time{}
	}
}
