package comparison

import (
	"sync/atomic"
	"time"
)

// A turnLock is a mutex that tells its holder from the one before, without waiting for it. Make it with newTurnLock.
type turnLock struct {
	held  chan struct{} // capacity 1
	turns atomic.Uint64 // counts locks and unlocks, so it is odd while the lock is held
}

func newTurnLock() *turnLock { return &turnLock{held: make(chan struct{}, 1)} }

func (l *turnLock) Lock() {
	l.held <- struct{}{}
	l.turns.Add(1)
}

func (l *turnLock) Unlock() {
	l.turns.Add(1)
	<-l.held
}

// turn identifies the present holder; 0: there is none.
func (l *turnLock) turn() uint64 {
	if n := l.turns.Load(); n&1 == 1 {
		return n
	}
	return 0
}

// lockWithin locks, or gives up after a time.
func (l *turnLock) lockWithin(d time.Duration) bool {
	select {
	case l.held <- struct{}{}:
		l.turns.Add(1)
		return true
	case <-time.After(d):
		return false
	}
}
