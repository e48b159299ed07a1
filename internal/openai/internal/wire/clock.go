package wire

import (
	"math"
	"sync/atomic"
	"time"
)

// A Clock converts the kernel's receive timestamps, which are CLOCK_REALTIME, to this process's monotonic clock.
//
// Each read of a socket brings a reading of both clocks, so a step of the wall clock is seen by the next read, whatever its size.
// Slewing changes both clocks alike. Several goroutines may use a Clock at once.
type Clock struct {
	base     time.Time
	distance atomic.Pointer[distance]
	now      func() time.Time
	wall     func(time.Time) int64 // the wall clock of a reading, in ns since the Unix epoch
}

// A distance is how far the wall clock is from the monotonic one.
type distance struct {
	ns     int64 // since the Unix epoch − since the Clock's base, at one instant
	before int64 // likewise before the last step
	seen   int64 // when the step was seen, ns since the base
}

// ClockError is by how much the instant of an Arrival may be off, where neither the network nor Unsure is the reason.
const ClockError = 2 * time.Duration(clockPrecision)

// clockPrecision is by how much two readings of both clocks may differ without a step. A thread that is preempted between the two
// clocks of a reading is off by more.
const clockPrecision = int64(50 * time.Microsecond)

// NewClock returns a Clock and measures the distance.
func NewClock() *Clock {
	c := &Clock{base: time.Now(), now: time.Now, wall: time.Time.UnixNano}
	c.distance.Store(&distance{ns: c.measure(), seen: math.MinInt64})
	return c
}

// measure takes the best of several readings.
func (c *Clock) measure() (ns int64) {
	narrowest := time.Duration(math.MaxInt64)
	for range 5 {
		before := c.now()
		now := c.now() // reads the wall clock, then the monotonic one
		if width := c.now().Sub(before); width < narrowest {
			narrowest, ns = width, c.wall(now)-int64(now.Sub(c.base))
		}
	}
	return ns
}

// at returns the distance at a reading. It looks for a step where the reading does not fit the distance.
func (c *Clock) at(now time.Time) *distance {
	held := c.distance.Load()
	if off := c.wall(now) - int64(now.Sub(c.base)) - held.ns; -clockPrecision <= off && off <= clockPrecision {
		return held
	}
	ns := c.measure()
	if off := ns - held.ns; -clockPrecision <= off && off <= clockPrecision {
		return held // the thread was preempted
	}
	stepped := &distance{ns: ns, before: held.ns, seen: int64(c.now().Sub(c.base))}
	c.distance.CompareAndSwap(held, stepped) // another reader may have seen the same step
	return c.distance.Load()
}

// instant converts the timestamp (ns since the Unix epoch) of bytes that were read at now, after others that came at since. The result is
// never after now. unsure is true where the wall clock was set between the timestamp and the read, and that does not tell what the clock
// was for the timestamp. Then the result is the latest of what is possible, which is off by no more than the steps and by no more than the
// time that the bytes waited for the read.
func (c *Clock) instant(stamp int64, now, since time.Time) (at time.Time, unsure bool) {
	d := c.at(now)
	latest, earliest := int64(now.Sub(c.base)), int64(since.Sub(c.base))
	after, before := stamp-d.ns, stamp-d.before
	if d.seen == math.MinInt64 { // no step was ever seen
		return c.base.Add(time.Duration(min(after, latest))), false
	}
	within := func(at, latest int64) bool { return earliest-clockPrecision <= at && at <= latest+clockPrecision }
	fits, old := within(after, latest), within(before, min(d.seen, latest))
	switch {
	case fits && old:
		after = max(before, after)
	case old:
		after = before
	case !fits:
		after = latest
	}
	return c.base.Add(time.Duration(min(after, latest))), fits == old
}
