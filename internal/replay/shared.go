package replay

import (
	"replayd/internal/dispatch"
	"replayd/internal/limits"
)

// A shared is what the runners of one workload have in common, over all reloads: one lock, so that none of them ever waits for
// the other's. Under it they count the lanes in use together, and go on with one budget and one guard.
type shared struct {
	mu       gate
	slots    dispatch.Slots
	spending *limits.Spending // nil: no budget, now or before
	runners  []*Runner        // those that run, in the order in which they took over
}

// wakeOthers has the other runners of the workload look again for a lane, with the lock held.
func (r *Runner) wakeOthers() {
	for _, one := range r.runners {
		if one != r && one.closed {
			one.alarm.want()
		}
	}
}
