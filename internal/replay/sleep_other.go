//go:build !linux

package replay

// NewSleeper gives the most exact Sleeper of this system: Go's timers.
func NewSleeper() (Sleeper, error) { return NewTimers(), nil }
