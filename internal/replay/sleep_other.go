//go:build !linux

package replay

// NewSleeper returns the most accurate Sleeper of this system: Go's timers.
func NewSleeper() (Sleeper, error) { return NewTimers(), nil }
