package replay

import (
	"replayd/internal/dispatch"
	"replayd/internal/limits"
)

// A shared is the state that all runners of one workload share over reloads: the lock, the count of lanes in use, the spending.
type shared struct {
	mu       runnerLock
	slots    dispatch.Slots
	spending *limits.Spending // nil: no budget, now or before
	runners  []*Runner        // the running ones, in the order in which they took over
}

// wakeOthers makes the other runners of the workload step: a slot may be free. The lock is held.
func (r *Runner) wakeOthers() {
	for _, one := range r.runners {
		if one != r && one.closed {
			one.alarm.want()
		}
	}
}
