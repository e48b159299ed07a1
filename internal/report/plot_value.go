package report

import (
	"replayd/internal/number"
)

// tickText writes a round value for an axis that ends at most; on a logarithmic one each tick has its own unit.
func tickText(v float64, unit string, most float64, log bool) string {
	of := map[string]float64{"s": 1, "ms": 1e-3}[unit] // seconds
	switch {
	case v == 0 && unit != "%":
		return "0"
	case of > 0 && log:
		return tickDuration(v*of, v*of)
	case of > 0:
		return tickDuration(v*of, most*of)
	case unit == "%":
		return number.Digits(v, 6) + " %"
	}
	for _, by := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if most >= 9.9995*by.of && (!log || v >= by.of) {
			return number.Digits(v/by.of, 6) + by.name
		}
	}
	return number.Short(v)
}

// tickDuration writes seconds in the unit that suits the greatest of the axis.
func tickDuration(s, most float64) string {
	switch {
	case most >= 7200:
		return number.Digits(s/3600, 4) + " h"
	case most >= 120:
		return number.Digits(s/60, 4) + " min"
	case most >= 0.9999:
		return number.Digits(s, 6) + " s"
	case most >= 0.9999e-3:
		return number.Digits(s*1e3, 6) + " ms"
	default:
		return number.Digits(s*1e6, 6) + " µs"
	}
}
