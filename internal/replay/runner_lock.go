package replay

import (
	"sync"
	"sync/atomic"
)

// A runnerLock is the lock of a workload's runners. The pacer never waits for it: a step that finds the lock taken is done by the
// goroutine that has it, at its unlock.
type runnerLock struct {
	mu     sync.Mutex
	wanted atomic.Pointer[alarm] // a stack of alarms whose steps are to be done
}

// Lock implements sync.Locker.
func (g *runnerLock) Lock() { g.mu.Lock() }

// Unlock unlocks, and does the steps that were wanted meanwhile.
func (g *runnerLock) Unlock() {
	g.mu.Unlock()
	g.catchUp()
}

// release unlocks at the end of a step. Whoever has called the step catches up.
func (g *runnerLock) release() { g.mu.Unlock() }

// catchUp does the steps that are wanted. It is called after each unlock: a step is wanted first and the lock
// tried after that, so either the one who wants it has the lock or this sees the wish.
func (g *runnerLock) catchUp() {
	for again := true; again && g.wanted.Load() != nil; {
		again = false
		for a := g.wanted.Swap(nil); a != nil; {
			after := a.after
			a.listed.Store(false)
			again = a.try() || again
			a = after
		}
	}
}
