package limits

import "time"

// The window of the error ratio, and its trials.
const (
	healthSlots = 60 // of a second
	healthLeast = 5  // finished requests before a limit opens: one failure of one request is no ratio
	trialEvery  = time.Second
)

// A Health counts the finished and failed requests of the last minute. It is kept over reloads with the same target.
type Health struct {
	finished, failed window
	trying           bool      // a trial waits or is in flight
	latest           time.Time // when the last one was let through; zero: there was none, or it was never sent
}

func newHealth() *Health {
	return &Health{finished: newWindow(healthSlots, time.Second), failed: newWindow(healthSlots, time.Second)}
}

// Ended counts a finished request. Cancelled and aborted requests say nothing about the target and must not be counted.
func (h *Health) Ended(now time.Time, failed bool) {
	h.finished.advance(now)
	h.failed.advance(now)
	h.finished.add(now, 1)
	if failed {
		h.failed.add(now, 1)
	}
}

// Ratio is the share of finished requests that failed, and how many finished; 0 of none.
func (h *Health) Ratio(now time.Time) (share float64, finished int64) {
	h.finished.advance(now)
	h.failed.advance(now)
	if h.finished.sum == 0 {
		return 0, 0
	}
	return float64(h.failed.sum) / float64(h.finished.sum), h.finished.sum
}

// mayTry says whether a trial would be let through.
func (h *Health) mayTry(now time.Time) bool {
	return !h.trying && (h.latest.IsZero() || now.Sub(h.latest) >= trialEvery)
}

// try lets a trial through where one may.
func (h *Health) try(now time.Time) bool {
	if !h.mayTry(now) {
		return false
	}
	h.trying, h.latest = true, now
	return true
}

// tried ends a trial. One that was never sent was none.
func (h *Health) tried(sent bool) {
	h.trying = false
	if !sent {
		h.latest = time.Time{}
	}
}
