// Package number formats numbers for people, in tables, pages, the live page and log lines. Files that other programs read,
// and tables that follow another program's, have their own formats: those in JSON are made of Objects.
package number

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Value formats a value with three digits and its unit: 212 ms, 1.25 s, 12.4k tokens, 3.5 %. A value that is not finite is
// a dash.
func Value(v float64, unit string) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return "–"
	}
	switch unit {
	case "ms":
		return duration(v / 1000)
	case "s":
		return duration(v)
	case "":
		return Short(v)
	}
	return Short(v) + " " + unit
}

// duration formats seconds in a suitable unit with three digits.
func duration(s float64) string {
	switch a := math.Abs(s); {
	case a == 0:
		return "0 s"
	case a < 0.9995e-3:
		return Digits(s*1e6, 3) + " µs"
	case a < 0.9995:
		return Digits(s*1e3, 3) + " ms"
	case a < 119.5:
		return Digits(s, 3) + " s"
	case a < 7199.5:
		return clock(s, 60, "min", "s")
	default:
		return clock(s, 3600, "h", "min")
	}
}

// clock formats seconds in two units, such as 5 min 20 s. The second unit is a sixtieth of the first.
func clock(s, whole float64, large, small string) string {
	sixtieths := int(math.Round(s / whole * 60))
	text := fmt.Sprintf("%d %s", sixtieths/60, large)
	if rest := sixtieths % 60; rest != 0 {
		text += fmt.Sprintf(" %d %s", max(rest, -rest), small)
	}
	return text
}

// Short formats a number with three digits: 7.31, 482, 1,234, 12.4k.
func Short(v float64) string {
	switch a := math.Abs(v); {
	case a >= 999.5e6:
		return Digits(v/1e9, 3) + "G"
	case a >= 999.5e3:
		return Digits(v/1e6, 3) + "M"
	case a >= 9999.5:
		return Digits(v/1e3, 3) + "k"
	case a >= 999.5:
		return Grouped(v, 0)
	}
	return Digits(v, 3)
}

// Digits formats a number with a number of significant digits, without trailing zeros in the fraction.
func Digits(v float64, n int) string {
	if v == 0 {
		return "0"
	}
	if v < 0 {
		return "−" + Digits(-v, n)
	}
	places := n - 1 - int(math.Floor(math.Log10(math.Abs(v))+1e-12))
	return Places(v, max(0, min(places, 12)))
}

// Cell formats a number for a table cell, with three significant digits or all digits of the integer part, and with
// trailing zeros: 0.0800, 11.6, 1,879.
func Cell(v float64) string {
	if v == 0 {
		return "0"
	}
	_, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', 2, 64), "e") // after rounding
	n, _ := strconv.Atoi(exponent)
	return Grouped(v, max(0, min(2-n, 12)))
}

// Grouped formats a number with a fixed number of decimals and with commas between thousands: 12,031.50.
func Grouped(v float64, places int) string {
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

// Whole formats a whole number with commas between thousands.
func Whole[T ~int | ~int64 | ~float64](n T) string { return Grouped(float64(n), 0) }

// Places formats a number with at most so many decimals.
func Places(v float64, most int) string {
	text := strconv.FormatFloat(v, 'f', most, 64)
	if !strings.Contains(text, ".") {
		return text
	}
	return strings.TrimRight(strings.TrimRight(text, "0"), ".")
}

// Count formats a number of things, in the plural unless the number is 1: 1 request, 1,234 requests.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Whole(n) + " " + noun + "s"
}

// Percent formats part ÷ whole as a percentage with three digits. A part below the whole never shows as 100 %: such a value
// is rounded down, with four digits.
func Percent[T ~int | ~int64](part, whole T) string {
	if whole == 0 {
		return "no data"
	}
	text := Digits(100*float64(part)/float64(whole), 3)
	if text == "100" && part < whole {
		text = Digits(math.Floor(1e4*float64(part)/float64(whole))/100, 4)
	}
	return text + " %"
}

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
