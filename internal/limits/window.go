package limits

import "time"

// A window is a sum over the last slots of time, the running one among them. It reads no clock: the caller gives
// instants, and its slots begin with the first of them.
type window struct {
	slot  time.Duration
	n     []int64 // by the number of the slot, modulo how many there are
	begin time.Time
	last  int64 // number of the running slot
	sum   int64
}

func newWindow(slots int, slot time.Duration) window {
	return window{slot: slot, n: make([]int64, slots)}
}

// advance lets slots that are too old at an instant leave the sum.
func (w *window) advance(now time.Time) {
	if w.begin.IsZero() {
		w.begin = now
	}
	number := w.number(now)
	for left := min(number-w.last, int64(len(w.n))); left > 0; left-- {
		old := &w.n[(number-left+1)%int64(len(w.n))]
		w.sum -= *old
		*old = 0
	}
	w.last = max(w.last, number)
}

// add counts n, which may be negative, in the slot of an instant up to that of the last advance. What has left the window stays out.
func (w *window) add(at time.Time, n int64) {
	number := w.number(at)
	if w.last-number >= int64(len(w.n)) {
		return
	}
	w.n[number%int64(len(w.n))] += n
	w.sum += n
}

func (w *window) number(at time.Time) int64 { return max(0, int64(at.Sub(w.begin)/w.slot)) }
