package trace

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// nanos parses a number of units, ≥ 0, as nanoseconds. A decimal number is exact to the nanosecond (a float64 of
// seconds since 1970 would be off by 100 ns). A number with an exponent is as exact as a float64.
func nanos(text string, unit time.Duration) (n int64, ok bool) {
	whole, rest, point := text, "", false
	for i, c := range []byte(text) {
		if c == '.' && !point {
			whole, rest, point = text[:i], text[i+1:], true
			continue
		}
		if c < '0' || c > '9' {
			return nanosOfFloat(text, unit)
		}
	}
	units, err := strconv.ParseInt(whole, 10, 64)
	if err != nil || point && rest == "" || units > maxMillis*int64(time.Millisecond)/int64(unit) {
		return nanosOfFloat(text, unit)
	}
	n = units * int64(unit)
	scale := int64(unit)
	for _, c := range []byte(rest) {
		digit := int64(c - '0')
		if scale == 1 { // round half up
			if digit >= 5 {
				n++
			}
			break
		}
		scale /= 10
		n += digit * scale
	}
	return n, true
}

func nanosOfFloat(text string, unit time.Duration) (int64, bool) {
	if strings.Trim(text, "+-.0123456789Ee") != "" { // no hexadecimal number, Inf or NaN
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= float64(maxMillis)*float64(time.Millisecond)/float64(unit)) {
		return 0, false
	}
	whole, fraction := math.Modf(v)
	return int64(whole)*int64(unit) + int64(math.Round(fraction*float64(unit))), true
}

func inUnits(d, unit time.Duration) string { return string(appendUnits(nil, d, unit)) }

// appendUnits appends a duration ≥ 0 as a number of units, with as many digits as it needs. A unit is a power of ten of
// nanoseconds.
func appendUnits(dst []byte, d, unit time.Duration) []byte {
	dst = strconv.AppendInt(dst, int64(d/unit), 10)
	rest := d % unit
	if rest == 0 {
		return dst
	}
	dst = append(dst, '.')
	for scale := unit / 10; rest > 0; scale /= 10 {
		dst = append(dst, byte('0'+rest/scale))
		rest %= scale
	}
	return dst
}
