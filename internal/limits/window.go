package limits

import "time"

// A window is a sum over the latest slots of time, including the current slot. It reads no clock: the caller passes
// instants. The first slot begins with the first instant.
type window struct {
	slot  time.Duration
	n     []int64 // ring buffer, indexed by the slot's number
	begin time.Time
	last  int64 // number of the current slot
	sum   int64
}

func newWindow(slots int, slot time.Duration) window {
	return window{slot: slot, n: make([]int64, slots)}
}

// total returns the sum at an instant, without the slots that are too old by then.
func (w *window) total(now time.Time) int64 {
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
	return w.sum
}

// add adds n, which may be negative, to the slot of an instant. A slot that has left the window is
// ignored.
func (w *window) add(at time.Time, n int64) {
	w.total(at)
	number := w.number(at)
	if w.last-number >= int64(len(w.n)) {
		return
	}
	w.n[number%int64(len(w.n))] += n
	w.sum += n
}

func (w *window) number(at time.Time) int64 { return max(0, int64(at.Sub(w.begin)/w.slot)) }
