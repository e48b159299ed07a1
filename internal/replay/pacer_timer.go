package replay

import (
	"hash/maphash"
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

	at   time.Time // zero: not set. The pacer's lock guards this field and the next
	left bool

	listed atomic.Bool  // in the list of steps to run at the next unlock
	after  *alarm       // the next in that list
	steps  sync.RWMutex // each step holds it for reading; leave locks it for ever
}

// join returns the alarm of a runner. It is not set yet.
func (p *Pacer) join(g *runnerLock, of side, step func() (done bool)) *alarm {
	return &alarm{pacer: p, lock: g, side: of, step: step}
}

// set moves the step to an instant; zero: there is no step. The runner's lock is held, so that instants do not overtake
// each other. A nil alarm ignores it.
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

// move moves the alarm to its place among those that are set; zero: to none. The pacer's lock is held.
func (a *alarm) move(at time.Time) {
	p := a.pacer
	if !a.at.IsZero() {
		i := slices.Index(p.alarms, a)
		p.alarms = slices.Delete(p.alarms, i, i+1)
	}
	if a.at = at; !at.IsZero() {
		i, _ := slices.BinarySearchFunc(p.alarms, a, func(b, a *alarm) int {
			if a.leads(b) {
				return 1
			}
			return -1
		})
		p.alarms = slices.Insert(p.alarms, i, a)
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

// enter takes the lock for the step. It returns false if the lock is taken; then its holder runs the step before it
// unlocks.
func (a *alarm) enter() bool {
	if a.lock.tryLock() {
		return true
	}
	a.want()
	return a.lock.tryLock() // its holder may have looked before that
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

// sameInstant is the distance within which the alarms of two sides are those of one row. Each side reads the clocks for
// itself.
const sameInstant = 4 * time.Microsecond

var orderSeed = maphash.MakeSeed()

// leads says whether alarm a goes before alarm b. At one instant the two sides of a comparison take turns: a hash of
// the instant decides which one is written first. A side that always came first would have an advantage.
func (a *alarm) leads(b *alarm) bool {
	if a.side == alone || b.side == alone || a.side == b.side {
		return a.at.Before(b.at)
	}
	ticks, others := a.at.Sub(a.pacer.made)/sameInstant, b.at.Sub(b.pacer.made)/sameInstant
	if ticks != others {
		return ticks < others
	}
	candidateFirst := maphash.Comparable(orderSeed, int64(ticks))&1 == 1
	return (a.side == candidate) == candidateFirst
}
