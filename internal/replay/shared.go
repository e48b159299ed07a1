package replay

// A shared is what the runners of one workload have in common, over all reloads: one lock, so that none of them ever waits for
// the other's. Under it two of them count requests in flight together, and go on with one budget and one guard.
type shared struct {
	mu      gate
	runners []*Runner // those that run, in the order in which they took over
}

// busy is how many requests are in flight or about to go, of all runners of the workload: a closed loop that takes over leaves
// as many of its lanes idle as those before it have requests in flight still. The lock is held.
func (r *Runner) busy() (n int) {
	for _, one := range r.runners {
		n += one.queue.flying + one.queue.waiting.len()
	}
	return n
}

// wakeOthers has the other runners of the workload look again for a lane, with the lock held.
func (r *Runner) wakeOthers() {
	for _, one := range r.runners {
		if one != r && one.queue.closed != nil {
			one.alarm.want()
		}
	}
}
