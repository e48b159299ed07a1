package replay

import "time"

// A clock lays the plan's instants, which are the wall clock's, on this process' monotonic clock: one instant as both
// of them read it. What the wall clock is set by later does not move the instants of a loop, it shows as skew.
type clock struct {
	own  time.Time // with its monotonic reading
	wall time.Time // without
}

// readClock compares the two clocks now; wall is nil for the system's.
func readClock(wall func() time.Time) clock {
	now := time.Now()
	if wall == nil {
		return clock{now, now.Round(0)} // Round(0) takes the monotonic reading off
	}
	return clock{now, wall().Round(0)}
}

// at is a planned instant on the monotonic clock.
func (c clock) at(planned time.Time) time.Time { return c.own.Add(planned.Round(0).Sub(c.wall)) }

// planned is what the plan would call an instant of the monotonic clock.
func (c clock) planned(own time.Time) time.Time { return c.wall.Add(own.Sub(c.own)) }

// skew is how far the wall clock of another reading is ahead of where this one says it should be.
func (c clock) skew(now clock) time.Duration { return now.wall.Sub(c.planned(now.own)) }
