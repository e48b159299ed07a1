package dispatch

import (
	"sync/atomic"
	"time"
)

// Waiting bounds the memory of rows that have come due and wait for a lane or an earlier turn, over all workloads of a process. Rows
// of closed loops are not counted: there are at most as many as lanes. The sum is atomic, since each workload has a lock of its own.
// A nil Waiting has no limit.
type Waiting struct {
	Most  int64 // bytes
	bytes atomic.Int64
}

// MostWaiting is the limit of a process in bytes.
const MostWaiting = 64 << 20

// Bytes returns the bytes of the waiting rows.
func (w *Waiting) Bytes() int64 { return w.bytes.Load() }

// full reports whether the waiting rows exceed the limit.
func (w *Waiting) full() bool { return w != nil && w.bytes.Load() > w.Most }

// crowds reports whether a row that must wait exceeds the limit.
func (d *Dispatcher) crowds(now time.Time) bool {
	if d.HoldReader || !d.Waiting.full() {
		return false
	}
	d.reportCrowd(now, true)
	return true
}

// reportCrowd reports the first drop at the limit, and the end of such drops: the first request sent a minute after
// the last of them.
func (d *Dispatcher) reportCrowd(now time.Time, dropped bool) {
	if s, turned := d.crowded.Turn(now, dropped); turned {
		d.do(Action{Kind: Crowded, On: dropped, Spell: s})
	}
}

// count adds a row of an open loop that has come due.
func (d *Dispatcher) count(r *Row) {
	if d.Waiting != nil && d.closed == nil {
		r.counted = true
		d.Waiting.bytes.Add(int64(r.Weight))
	}
}

// uncount removes a row that is sent or dropped.
func (d *Dispatcher) uncount(r *Row) {
	if r.counted {
		r.counted = false
		d.Waiting.bytes.Add(-int64(r.Weight))
	}
}
