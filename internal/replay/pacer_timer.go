package replay

import (
	"container/heap"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// An alarm is the timer of one runner at the pacer: the instant of the runner's next step, and the step.
type alarm struct {
	pacer *Pacer
	lock  *runnerLock
	step  func() (done bool) // never blocks, and unlocks by release; false: the lock is taken
	side  side               // of a comparison

	at    time.Time // zero: not set. The pacer's lock guards this field and the next two
	place int       // index among the pacer's alarms while it is set
	left  bool

	listed atomic.Bool  // in the list of steps to run at the next unlock
	after  *alarm       // the next in that list
	steps  sync.RWMutex // each step holds it for reading; leave locks it for ever
}

// join returns the alarm of a runner. It is not set yet.
func (p *Pacer) join(g *runnerLock, of side, step func() (done bool)) *alarm {
	return &alarm{pacer: p, lock: g, side: of, step: step}
}

// set moves the step to an instant; zero: there is no step. The runner's lock is held, so that instants do not overtake each other. A nil
// alarm ignores it.
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

// move moves the alarm to its new index. The pacer's lock is held.
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

// want runs the step at the next unlock. A nil alarm has no step.
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

// enter takes the lock for the step. It returns false if the lock is taken; then its holder runs the step before it unlocks.
func (a *alarm) enter() bool {
	if a.lock.mu.TryLock() {
		return true
	}
	a.want()
	return a.lock.mu.TryLock() // its holder may have looked before that
}

// ring runs the step now, or leaves it to the holder of the lock. It does not wait.
func (a *alarm) ring() {
	if a.try() {
		a.lock.catchUp()
	}
}

// try runs the step. It returns false if the lock is taken or the runner has left.
func (a *alarm) try() (done bool) {
	if !a.steps.TryRLock() {
		return false
	}
	defer a.steps.RUnlock()
	return a.step()
}

// leave ends the alarm: after it returns, no step runs. The caller does not hold the lock.
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
func (h alarms) Less(i, j int) bool { return h[i].leads(h[j]) }
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
