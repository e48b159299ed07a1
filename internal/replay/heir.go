package replay

import "time"

// A closed loop that takes over from another runner leaves as many of its lanes idle as that one has requests in flight still:
// at no time there is more in flight than either may have.

// inherit makes it the heir of a runner.
func (r *Runner) inherit(before *Runner) {
	r.ancestor = before
	r.queue.closed.full = func() bool { return r.busy() >= r.w.Lanes }
	before.heir.Store(r)
}

// busy is how many requests are in flight or about to go, with those of the runners before, whose locks it takes; its own is held.
func (r *Runner) busy() int {
	n := r.queue.flying + r.queue.waiting.len()
	if r.ancestor != nil {
		theirs, over := r.ancestor.left()
		if n += theirs; over {
			r.ancestor = nil // or runners would keep each other in memory, reload after reload
		}
	}
	return n
}

// left is busy of a runner before; over says that it has ended, and those before it.
func (r *Runner) left() (n int, over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = r.busy()
	return n, n == 0 && r.done && r.ancestor == nil
}

// wakeHeirs has the runners that took over look again for a lane. It takes their locks, and its own must not be held.
func (r *Runner) wakeHeirs() {
	for heir := r.heir.Load(); heir != nil; heir = heir.heir.Load() {
		heir.mu.Lock()
		if heir.sleeper != nil { // it runs
			heir.sleeper.Wake()
		}
		heir.mu.Unlock()
	}
}

// retires is the instant from which on rows are another runner's, on its own clock; zero: they never are. The lock is held.
func (r *Runner) retires() time.Time {
	if r.until.IsZero() {
		return time.Time{}
	}
	if !r.followsWall() {
		return r.leaves
	}
	c := readClock(r.w.Wall)
	if r.playing != nil {
		c = r.playing.clock
	}
	return c.at(r.until)
}
