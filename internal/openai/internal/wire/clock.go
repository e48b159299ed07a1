package wire

import (
	"math"
	"sync/atomic"
	"time"
)

// A Clock converts the kernel's receive timestamps, which are CLOCK_REALTIME, to this process's monotonic clock.
//
// The offset between the two clocks is measured again when the last measurement is over a second old. Slewing changes both
// clocks alike, so the error is that of the measurement: about the time between two clock reads (under 100 ns). After a
// step of the wall clock by less than a second, timestamps are off by that step for at most a second.
type Clock struct {
	base     time.Time
	distance atomic.Int64 // ns since the Unix epoch − ns since base, at one instant
	measured atomic.Int64 // time of the measurement, in ns since base
}

const (
	clockAge  = time.Second
	clockSkew = time.Second // a timestamp older than this at its read triggers a new measurement
)

// NewClock returns a Clock and measures the offset.
func NewClock() *Clock {
	c := &Clock{base: time.Now()}
	c.measure()
	return c
}

// measure takes the best of several readings: a thread that is preempted between the two clock reads gets a wrong offset.
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

// instant converts the timestamp (ns since the Unix epoch) of bytes that were read at now. The result is never after now.
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
