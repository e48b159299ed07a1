package dispatch

import "time"

// A Clock is one instant as two clocks read it: this process' monotonic one and the wall clock, which a plan's instants are of.
// It lays the one on the other. What the wall clock is set by later does not move the instants of a loop, it shows as skew.
type Clock struct {
	Own  time.Time // with its monotonic reading
	Wall time.Time // without
}

// At is a planned instant on the monotonic clock.
func (c Clock) At(planned time.Time) time.Time { return c.Own.Add(planned.Round(0).Sub(c.Wall)) }

// Planned is what the plan would call an instant of the monotonic clock.
func (c Clock) Planned(own time.Time) time.Time { return c.Wall.Add(own.Sub(c.Own)) }

// Skew is how far the wall clock of another reading is ahead of where this one says it should be.
func (c Clock) Skew(now Clock) time.Duration { return now.Wall.Sub(c.Planned(now.Own)) }
