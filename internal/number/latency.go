package number

import (
	"fmt"
	"time"
)

// Latency writes a latency for a glance, in the unit that suits it and with two or three digits: 250 µs, 9.3 ms, 35 ms, 1.25 s.
// The live page's words.js does the same up to 100 s.
func Latency(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 0.9995e-3:
		return fmt.Sprintf("%.0f µs", s*1e6)
	case s < 9.95e-3:
		return fmt.Sprintf("%.1f ms", s*1e3)
	case s < 0.9995:
		return fmt.Sprintf("%.0f ms", s*1e3)
	case s < 9.995:
		return fmt.Sprintf("%.2f s", s)
	default:
		return fmt.Sprintf("%.1f s", s)
	}
}

// Precise writes a latency with four digits or more, as Go writes durations: 1.234s, 56.789ms.
func Precise(d time.Duration) string {
	switch {
	case d >= time.Second:
		d = d.Round(time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(time.Microsecond)
	}
	return d.String()
}
