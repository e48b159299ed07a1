package dispatch

import "time"

// A Clock is one instant read from two clocks: the process' monotonic clock and the wall clock. A plan's instants are wall clock
// times, and a Clock maps them to monotonic time. Setting the wall clock later does not move them; it shows as Skew.
type Clock struct {
	Own  time.Time // with its monotonic reading
	Wall time.Time // without
}

// At maps a planned instant to the monotonic clock.
func (c Clock) At(planned time.Time) time.Time { return c.Own.Add(planned.Round(0).Sub(c.Wall)) }

// Planned maps an instant of the monotonic clock back to planned time.
func (c Clock) Planned(own time.Time) time.Time { return c.Wall.Add(own.Sub(c.Own)) }

// Skew is how far the wall clock of a later reading is ahead of the time that this reading predicts.
func (c Clock) Skew(now Clock) time.Duration { return now.Wall.Sub(c.Planned(now.Own)) }
