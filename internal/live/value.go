package live

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"replayd/internal/number"
)

// A value is a number on the page: three digits of it are shown and sent, null where it is unknown.
type value float64

var unknown = value(math.NaN())

func (f value) known() bool { return !math.IsNaN(float64(f)) }

// MarshalJSON implements json.Marshaler.
func (f value) MarshalJSON() ([]byte, error) { return f.append(nil), nil }

func (f value) append(b []byte) []byte {
	if !f.known() || math.IsInf(float64(f), 0) {
		return append(b, "null"...)
	}
	short, _ := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', 3, 64), 64) // it was made by FormatFloat
	return strconv.AppendFloat(b, short, 'f', -1, 64)
}

// An instant is sent as Unix seconds with three decimals; 0 stands for none.
type instant time.Time

// MarshalJSON implements json.Marshaler.
func (t instant) MarshalJSON() ([]byte, error) {
	if time.Time(t).IsZero() {
		return []byte("0"), nil
	}
	return strconv.AppendFloat(nil, float64(time.Time(t).UnixMilli())/1e3, 'f', -1, 64), nil
}

// A span of time is sent as seconds, whole: a curve's bin can be 1/128 s.
type span time.Duration

// MarshalJSON implements json.Marshaler.
func (s span) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

// cut bounds a text from outside to n bytes without tearing a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n -= len("…")
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// short is a latency in seconds as Go writes it into texts.
func short(f value) string {
	if !f.known() {
		return "–"
	}
	return number.Latency(time.Duration(float64(f) * float64(time.Second)))
}
