package live

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"replayd/internal/number"
)

// A value is a number on the page. It is shown and sent with three digits, and as null if it is unknown.
type value float64

var unknown = value(math.NaN())

func (f value) known() bool { return !math.IsNaN(float64(f)) }

func (f value) MarshalJSON() ([]byte, error) {
	if !f.known() || math.IsInf(float64(f), 0) {
		return []byte("null"), nil
	}
	short, _ := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', 3, 64), 64) // FormatFloat made the text
	return strconv.AppendFloat(nil, short, 'f', -1, 64), nil
}

// An instant is sent as Unix seconds with three decimals; the zero time is sent as 0.
type instant time.Time

func (t instant) MarshalJSON() ([]byte, error) {
	if time.Time(t).IsZero() {
		return []byte("0"), nil
	}
	return strconv.AppendFloat(nil, float64(time.Time(t).UnixMilli())/1e3, 'f', -1, 64), nil
}

// A span is sent as seconds without rounding: a bin of a curve can be 1/128 s.
type span time.Duration

func (s span) MarshalJSON() ([]byte, error) {
	return strconv.AppendFloat(nil, time.Duration(s).Seconds(), 'f', -1, 64), nil
}

// cut limits a text from outside to n bytes without splitting a character.
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

func short(f value) string {
	if !f.known() {
		return "–"
	}
	return number.Latency(time.Duration(float64(f) * float64(time.Second)))
}
