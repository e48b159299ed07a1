package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Value writes a value for a glance, with three digits and its unit: 212 ms, 1.25 s, 12.4k tokens, 3.5 %. A value that is not
// finite is a dash.
func Value(v float64, unit string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	switch unit {
	case "ms":
		return duration(v/1000, 3)
	case "s":
		return duration(v, 3)
	case "":
		return short(v)
	}
	return short(v) + " " + unit
}

// duration writes seconds in the unit that suits them, with so many digits.
func duration(s float64, n int) string {
	switch a := math.Abs(s); {
	case a == 0:
		return "0 s"
	case a < 0.9995e-3:
		return digits(s*1e6, n) + " µs"
	case a < 0.9995:
		return digits(s*1e3, n) + " ms"
	case a < 119.5:
		return digits(s, n) + " s"
	case a < 7199.5:
		return clock(s, 60, "min", "s")
	default:
		return clock(s, 3600, "h", "min")
	}
}

// clock writes seconds in two units, of which the second is a sixtieth of the first: 5 min 20 s.
func clock(s, whole float64, large, small string) string {
	sixtieths := int(math.Round(s / whole * 60))
	text := fmt.Sprintf("%d %s", sixtieths/60, large)
	if rest := sixtieths % 60; rest != 0 {
		text += fmt.Sprintf(" %d %s", max(rest, -rest), small)
	}
	return text
}

// short writes a number with three digits: 7.31, 482, 1,234, 12.4k.
func short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 999.5e6:
		return digits(v/1e9, 3) + "G"
	case a >= 999.5e3:
		return digits(v/1e6, 3) + "M"
	case a >= 9999.5:
		return digits(v/1e3, 3) + "k"
	case a >= 999.5:
		return thousands(v, 0)
	}
	return digits(v, 3)
}

// digits writes a number with so many significant digits, without zeros at the end of a fraction.
func digits(v float64, n int) string {
	if v == 0 {
		return "0"
	}
	if v < 0 {
		return "−" + digits(-v, n)
	}
	places := n - 1 - int(math.Floor(math.Log10(math.Abs(v))+1e-12))
	text := strconv.FormatFloat(v, 'f', max(0, min(places, 12)), 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// thousands writes a number with so many places and commas between its thousands: 12,031.50.
func thousands(v float64, places int) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	text := strconv.FormatFloat(math.Abs(v), 'f', places, 64)
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	if v < 0 && strings.Trim(text, "0.") != "" {
		return "−" + whole
	}
	return whole
}

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
		return digits(v, 6) + " %"
	}
	for _, by := range []struct {
		of   float64
		name string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if most >= 9.9995*by.of && (!log || v >= by.of) {
			return digits(v/by.of, 6) + by.name
		}
	}
	return short(v)
}

// tickDuration writes seconds in the unit that suits the greatest of the axis.
func tickDuration(s, most float64) string {
	switch {
	case most >= 7200:
		return digits(s/3600, 4) + " h"
	case most >= 120:
		return digits(s/60, 4) + " min"
	case most >= 0.9999:
		return digits(s, 6) + " s"
	case most >= 0.9999e-3:
		return digits(s*1e3, 6) + " ms"
	default:
		return digits(s*1e6, 6) + " µs"
	}
}
