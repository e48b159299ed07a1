package replay

import "time"

// spin is the time before an instant at which the pacer stops sleeping and polls the clock. The kernel wakes a thread about
// 50 µs late; a pacer that polls from then on is on time in the median.
const spin = 80 * time.Microsecond

// A Sleeper lets one goroutine sleep until an instant. There are two implementations: the kernel's timers on a locked
// thread, and Go's timers, which are up to 1.6 ms late but work everywhere, including in virtual time.
type Sleeper interface {
	// Until returns at the instant, or earlier after a Wake. With a zero instant, only Wake ends it.
	Until(at time.Time)
	// Wake ends the current Until, or the next one if none is running. Any goroutine may call it.
	Wake()
	// Close releases resources. No goroutine may be in Until.
	Close() error
}

// Timers is a Sleeper that uses Go's timers.
type Timers struct{ wake chan struct{} }

// NewTimers returns a Sleeper that uses Go's timers.
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
	select {
	case <-time.After(left):
	case <-t.wake:
	}
}

// Wake implements Sleeper.
func (t *Timers) Wake() { wake(t.wake) }

// Close implements Sleeper.
func (*Timers) Close() error { return nil }
