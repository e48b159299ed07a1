package trace

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"time"
)

// instantOf parses a date, or a number of units ≥ 0.
func instantOf(text []byte, unit time.Duration) (at int64, dated, ok bool) {
	if len(text) >= len(time.DateTime) && text[4] == '-' {
		at, ok = dateOf(text)
		return at, true, ok
	}
	at, ok = nanos(string(text), unit)
	return at, false, ok
}

// dateOf parses a date with a time of the day, of the years 1970 to 2254: a blank or a T between both, a fraction of a
// second of any length, of which 9 digits count, and Z, UTC or an offset from it as +01:00, +0100 or +01. Without one it
// is UTC. time.Parse takes five times as long, and one layout at a time.
func dateOf(text []byte) (nanos int64, ok bool) {
	number := func(digits []byte) (n int) {
		for _, digit := range digits {
			if digit -= '0'; digit > 9 {
				return -1
			}
			n = 10*n + int(digit)
		}
		return n
	}
	if len(text) < len(time.DateTime) {
		return 0, false
	}
	year, month, day := number(text[:4]), number(text[5:7]), number(text[8:10])
	hour, minute, second := number(text[11:13]), number(text[14:16]), number(text[17:19])
	if text[4] != '-' || text[7] != '-' || text[10] != ' ' && text[10] != 'T' || text[13] != ':' || text[16] != ':' ||
		min(hour, minute, second) < 0 || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	text = text[len(time.DateTime):]
	fraction := 0
	if len(text) > 1 && (text[0] == '.' || text[0] == ',') && number(text[1:2]) >= 0 {
		text = text[1:]
		for scale := 100_000_000; len(text) > 0 && number(text[:1]) >= 0; text = text[1:] {
			fraction += scale * number(text[:1])
			scale /= 10
		}
	}
	text = bytes.TrimPrefix(text, []byte(" "))
	var east int // seconds
	switch zone := string(text); {
	case zone == "" || zone == "Z" || zone == "UTC":
	case zone[0] == '+' || zone[0] == '-':
		text = bytes.Replace(text[1:], []byte(":"), nil, 1)
		if len(text) == 2 {
			text = append(bytes.Clone(text), "00"...)
		}
		if len(text) != 4 || number(text) < 0 || number(text[:2]) > 24 || number(text[2:]) > 60 {
			return 0, false
		}
		if east = 3600*number(text[:2]) + 60*number(text[2:]); zone[0] == '-' {
			east = -east
		}
	default:
		return 0, false
	}
	date := time.Date(year, time.Month(month), day, hour, minute, second, fraction, time.UTC)
	nanos = date.UnixNano() - int64(east)*int64(time.Second) // it overflows in 2262
	// A day that does not exist is in another month.
	return nanos, date.Month() == time.Month(month) && year >= 1970 && year < 2255 && nanos >= 0
}

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

// date reads an instant as ISO 8601 has it.
func (o *object) date(key string) (at time.Duration, ok bool) {
	text := o.text(key, MaxSessionBytes)
	if text == "" {
		return 0, false
	}
	nanos, ok := dateOf([]byte(text))
	if !ok {
		o.fault(key, "a time such as 2026-06-01T05:40:20.151Z", shown(o.value(key)))
	}
	return time.Duration(nanos), ok
}
