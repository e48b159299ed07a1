package dispatch

import "time"

// A Clock is one instant read from two clocks: the process' monotonic clock and the wall clock. A plan's instants are wall clock
// times, and a Clock maps them to monotonic time. If the wall clock is set later, the mapping stays, and Skew reports the difference.
type Clock struct {
	Own  time.Time // has a monotonic reading
	Wall time.Time // has no monotonic reading
}

// At maps a planned instant to the monotonic clock.
func (c Clock) At(planned time.Time) time.Time { return c.Own.Add(planned.Round(0).Sub(c.Wall)) }

// Planned maps an instant of the monotonic clock back to planned time.
func (c Clock) Planned(own time.Time) time.Time { return c.Wall.Add(own.Sub(c.Own)) }

// Skew is how far the wall clock of a later reading is ahead of the time that this reading predicts.
func (c Clock) Skew(now Clock) time.Duration { return now.Wall.Sub(c.Planned(now.Own)) }
