package replay

import (
	"sync"
	"sync/atomic"
)

// A runnerLock is the lock of a workload's runners. The pacer never waits for it: if a step finds the lock held, the
// goroutine that holds it does the step when it unlocks.
type runnerLock struct {
	mu     sync.Mutex
	turns  atomic.Uint64         // counts locks and unlocks, so it is odd while the lock is held
	moves  atomic.Uint64         // counts what steps decide, while they decide it
	wanted atomic.Pointer[alarm] // a stack of alarms with pending steps
}

func (g *runnerLock) Lock() {
	g.mu.Lock()
	g.turns.Add(1)
}

func (g *runnerLock) tryLock() bool {
	if !g.mu.TryLock() {
		return false
	}
	g.turns.Add(1)
	return true
}

// Unlock unlocks, and does the pending steps.
func (g *runnerLock) Unlock() {
	g.release()
	g.catchUp()
}

// release unlocks at the end of a step. The caller of the step calls catchUp.
func (g *runnerLock) release() {
	g.turns.Add(1)
	g.mu.Unlock()
}

// catchUp does the pending steps. It is called after each unlock. A step is added to wanted before the lock is tried, so
// either the adder gets the lock, or catchUp sees the step.
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
