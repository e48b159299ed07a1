package wire

import (
	"math"
	"sync/atomic"
	"time"
)

// A Clock places the kernel's receive stamps, which are CLOCK_REALTIME, on this process's monotonic clock.
//
// The distance between the two clocks is measured again when the last figure is over a second old. Slewing moves
// both alike, so the error is that of the measurement, about the time between two reads of a clock (under 100 ns);
// after a step of the wall clock by less than a second, stamps are off by that step for at most a second.
type Clock struct {
	base     time.Time
	distance atomic.Int64 // ns since the Unix epoch − ns since base, at one instant
	measured atomic.Int64 // when that was, in ns since base
}

const (
	clockAge  = time.Second
	clockSkew = time.Second // a stamp that is older than this at its read makes us measure again
)

// NewClock measures the distance of the two clocks now.
func NewClock() *Clock {
	c := &Clock{base: time.Now()}
	c.measure()
	return c
}

// measure takes the narrowest of a few readings: a thread that lost its processor between two clocks reads nonsense.
func (c *Clock) measure() {
	narrowest := time.Duration(math.MaxInt64)
	var distance int64
	for range 5 {
		before := time.Now()
		now := time.Now() // reads the wall clock, then the monotonic one
		if width := time.Since(before); width < narrowest {
			narrowest, distance = width, now.UnixNano()-int64(now.Sub(c.base))
		}
	}
	c.distance.Store(distance)
	c.measured.Store(int64(time.Since(c.base)))
}

// instant is the stamp (ns since the Unix epoch) of bytes that were read at now; never after now.
func (c *Clock) instant(stamp int64, now time.Time) time.Time {
	if int64(now.Sub(c.base))-c.measured.Load() > int64(clockAge) {
		c.measure()
	}
	at := c.base.Add(time.Duration(stamp - c.distance.Load()))
	if age := now.Sub(at); age < 0 || age > clockSkew {
		c.measure()
		at = c.base.Add(time.Duration(stamp - c.distance.Load()))
	}
	if at.After(now) {
		return now
	}
	return at
}
