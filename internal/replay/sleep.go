package replay

import "time"

// spin is how long before an instant the pacer stops sleeping and watches the clock: the kernel wakes a thread
// some 50 µs late, and a pacer that spins from there on is on time in the median.
const spin = 80 * time.Microsecond

// A Sleeper lets one goroutine sleep until an instant. There are two: the kernel's own timers on a locked
// thread, and Go's timers, which are up to 1.6 ms late but exist everywhere and in virtual time.
type Sleeper interface {
	// Until returns at the instant, or earlier after a Wake; a zero instant means only Wake ends it.
	Until(at time.Time)
	// Wake ends the current Until, or the next one when none runs. Any goroutine may call it.
	Wake()
	// Close frees what the sleeper holds; no goroutine may be asleep in it.
	Close() error
}

// Timers sleeps with Go's timers.
type Timers struct{ wake chan struct{} }

// NewTimers gives a Sleeper over Go's timers.
func NewTimers() *Timers { return &Timers{wake: make(chan struct{}, 1)} }

// Until implements Sleeper.
func (t *Timers) Until(at time.Time) {
	if at.IsZero() {
		<-t.wake
		return
	}
	left := time.Until(at)
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.wake:
	}
}

// Wake implements Sleeper.
func (t *Timers) Wake() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

// Close implements Sleeper.
func (*Timers) Close() error { return nil }
