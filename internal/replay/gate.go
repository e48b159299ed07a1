package replay

import (
	"sync"
	"sync/atomic"
)

// A gate is the lock of a workload's runners. The pacer never waits for it: a step that finds the gate taken is done by the
// goroutine that has it, when that lets go.
type gate struct {
	mu     sync.Mutex
	wanted atomic.Pointer[alarm] // a stack of alarms whose steps are to be done
}

// Lock implements sync.Locker.
func (g *gate) Lock() { g.mu.Lock() }

// Unlock lets go of the gate, and does the steps that were wanted meanwhile.
func (g *gate) Unlock() {
	g.mu.Unlock()
	g.catchUp()
}

// release lets go of the gate at the end of a step. Whoever has called the step catches up.
func (g *gate) release() { g.mu.Unlock() }

// catchUp does the steps that are wanted. It is called after each letting go of the gate: a step is wanted first and the gate
// tried after that, so either the one who wants it has the gate or this sees the wish.
func (g *gate) catchUp() {
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
