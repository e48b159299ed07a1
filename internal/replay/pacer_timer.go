package replay

import (
	"container/heap"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// An alarm is a runner's place at the pacer: when its next step is to be done, and how.
type alarm struct {
	pacer *Pacer
	lock  *runnerLock
	step  func() (done bool) // it never blocks, and unlocks by release; false: the lock is taken

	at    time.Time // zero: it is not set. This and the next two are the pacer's lock's
	place int       // among the pacer's alarms, while it is set
	left  bool

	listed atomic.Bool  // it is among the steps that the lock wants done
	after  *alarm       // the one behind it there
	steps  sync.RWMutex // held for reading by each step; for ever by leave
}

// join gives a runner its alarm, which is not set yet.
func (p *Pacer) join(g *runnerLock, step func() (done bool)) *alarm {
	return &alarm{pacer: p, lock: g, step: step}
}

// set has the step be done at an instant, and not at the one that was set before; zero: at none. The lock is held, or instants
// could overtake each other. Of a nil alarm there is none to do.
func (a *alarm) set(at time.Time) {
	if a == nil {
		return
	}
	p := a.pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.left || at.Equal(a.at) {
		return
	}
	a.move(at)
	p.expect()
	if p.asleep && !at.IsZero() && (p.until.IsZero() || at.Before(p.until)) {
		p.until = at
		p.sleeper.Wake()
	}
}

// move puts the alarm in its new place, with the pacer's lock held.
func (a *alarm) move(at time.Time) {
	was := a.at
	a.at = at
	switch {
	case was.IsZero() && at.IsZero():
	case was.IsZero():
		heap.Push(&a.pacer.alarms, a)
	case at.IsZero():
		heap.Remove(&a.pacer.alarms, a.place)
	default:
		heap.Fix(&a.pacer.alarms, a.place)
	}
}

// want has the step be done at the next unlock. A nil alarm has no step.
func (a *alarm) want() {
	if a == nil || !a.listed.CompareAndSwap(false, true) {
		return
	}
	for {
		a.after = a.lock.wanted.Load()
		if a.lock.wanted.CompareAndSwap(a.after, a) {
			return
		}
	}
}

// enter takes the lock for the step. False: it is taken, and its holder does the step before unlocking.
func (a *alarm) enter() bool {
	if a.lock.mu.TryLock() {
		return true
	}
	a.want()
	return a.lock.mu.TryLock() // its holder may have looked before that
}

// ring does the step now, or leaves it to the one who has the lock. It waits for neither.
func (a *alarm) ring() {
	if a.try() {
		a.lock.catchUp()
	}
}

// try does the step. False: the lock is taken, or the runner has left.
func (a *alarm) try() (done bool) {
	if !a.steps.TryRLock() {
		return false
	}
	defer a.steps.RUnlock()
	return a.step()
}

// leave ends it: when it returns no step runs any more, and none will. The lock is not held.
func (a *alarm) leave() {
	a.steps.Lock() // never unlocked
	p := a.pacer
	p.mu.Lock()
	defer p.mu.Unlock()
	a.left = true
	a.move(time.Time{})
	p.expect()
}

// alarms is a heap, the earliest first.
type alarms []*alarm

func (h alarms) Len() int           { return len(h) }
func (h alarms) Less(i, j int) bool { return h[i].at.Before(h[j].at) }
func (h alarms) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push and Pop are heap.Interface's.
func (h *alarms) Push(x any) {
	a := x.(*alarm)
	a.place = len(*h)
	*h = append(*h, a)
}

func (h *alarms) Pop() any {
	last := len(*h) - 1
	a := (*h)[last]
	a.at = time.Time{}
	*h = slices.Delete(*h, last, last+1)
	return a
}
