package dispatch

import (
	"sync/atomic"
	"time"
)

// Waiting bounds the bytes of the rows that have come due and wait, for a lane or for the turn before, over all workloads of a
// process. Those of closed loops are not among them: they are as few as their lanes. Workloads have locks of their own, so the sum
// is atomic. Nil is no bound.
type Waiting struct{ most, bytes atomic.Int64 }

// Bound sets how many bytes rows may take that wait; 0: without limit. What waits beyond a bound that was lowered goes on waiting.
func (w *Waiting) Bound(most int64) { w.most.Store(most) }

// Bytes is how many they take.
func (w *Waiting) Bytes() int64 { return w.bytes.Load() }

// full says whether the rows that wait take more than they may.
func (w *Waiting) full() bool {
	if w == nil {
		return false
	}
	most := w.most.Load()
	return most > 0 && w.bytes.Load() > most
}

// crowds says of a row that would have to wait whether it is one too many.
func (d *Dispatcher) crowds(now time.Time) bool {
	if d.HoldReader || !d.Waiting.full() {
		return false
	}
	d.tellCrowd(now, true)
	return true
}

// tellCrowd notes that a row was dropped because too much waits, or that one was sent, and tells when that begins and when it is
// over: later rows may all find a lane, so a row that waits may never come again.
func (d *Dispatcher) tellCrowd(now time.Time, dropped bool) {
	if s, turned := d.crowded.Turn(now, dropped); turned {
		d.do(Action{Kind: Crowded, On: dropped, Spell: s})
	}
}

// count counts a row of an open loop that has come due.
func (d *Dispatcher) count(r *Row) {
	if d.Waiting != nil && d.closed == nil {
		r.counted = true
		d.Waiting.bytes.Add(int64(r.Weight))
	}
}

// uncount takes a row out of the sum that is sent or dropped.
func (d *Dispatcher) uncount(r *Row) {
	if r.counted {
		r.counted = false
		d.Waiting.bytes.Add(-int64(r.Weight))
	}
}
