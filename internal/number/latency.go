package number

import (
	"fmt"
	"time"
)

// Latency formats a latency in a suitable unit with two or three digits: 250 µs, 9.3 ms, 35 ms, 1.25 s. Up to 100 s, the
// live page's words.js does the same.
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

// Precise formats a latency with at least four digits in Go's syntax of durations: 1.234s, 56.789ms.
func Precise(d time.Duration) string {
	switch {
	case d >= time.Second:
		d = d.Round(time.Millisecond)
	case d >= time.Millisecond:
		d = d.Round(time.Microsecond)
	}
	return d.String()
}
