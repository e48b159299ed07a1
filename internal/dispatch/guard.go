package dispatch

import (
	"time"
)

// judge steps the guard by a reading. If the guard holds back more than before, an open loop drops its waiting rows. A reading older
// than the last is ignored. False: the guard has not changed.
func (d *Dispatcher) judge(now time.Time, seen Reading) (changed bool) {
	b := d.Breaker
	if b == nil || seen.Order == 0 || seen.Order < d.judged || d.stopped || d.done {
		return false
	}
	d.judged = seen.Order
	before, lacked := b.State(), b.Lacks()
	changed = b.Step(now, seen.Load, seen.Err)
	if b.State() > before && d.closed == nil {
		d.dropWaiting(d.reason(guarded), now)
	}
	if b.Lacks() != lacked && b.Lacks() != "" {
		d.do(Action{Kind: GuardLacks})
	}
	if changed {
		d.do(Action{Kind: GuardMoved})
	}
	return changed
}
