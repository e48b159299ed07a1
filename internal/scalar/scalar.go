// Package scalar has types for options that are more than a number or a text. Each decodes and encodes itself, so a text
// has one meaning in a file, the environment and a flag.
package scalar

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/units"
	"github.com/prometheus/common/model"
)

// Duration is a length of time; the file requires a unit ("500ms", "1h30m", "1d").
type Duration time.Duration

// Bytes is a size in bytes; the file allows a unit ("8MiB", "64KB").
type Bytes int64

// A Within is the first and the last of a range of shares: 25-75%. The zero value is none.
type Within [2]float64

// Words is a list of words; in the file a list, or a string with words separated by commas.
type Words []string

// Auto is a number, or -1 for "auto".
type Auto int

// AutoValue is the value of "auto".
const AutoValue Auto = -1

// ParseDuration parses Go's format ("1.5s") or Prometheus' ("1d"). "0" is 0; any other number requires a unit.
func ParseDuration(text string) (time.Duration, error) {
	if d, err := time.ParseDuration(text); err == nil {
		return d, nil
	}
	d, err := model.ParseDuration(text)
	if err != nil || text == "" {
		return 0, fmt.Errorf("want a duration with a unit, such as 30s or 5m, got %q", text)
	}
	return time.Duration(d), nil
}

// UnmarshalText parses a duration.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// UnmarshalText parses a number of bytes, optionally with a unit of 1024 (Ki, Mi, Gi) or 1000 (k, M, G), with a B behind it or not.
func (b *Bytes) UnmarshalText(text []byte) error {
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		*b = Bytes(n)
		return nil
	}
	unit := strings.TrimLeft(string(text), "-+.0123456789")
	number := strings.TrimSuffix(string(text), unit)
	if unit == "k" {
		unit = "K"
	}
	if unit != "" && !strings.HasSuffix(unit, "B") {
		unit += "B"
	}
	n, err := units.ParseStrictBytes(number + unit)
	if err != nil {
		return fmt.Errorf("want a size, such as 8MiB, got %q", text)
	}
	if n == math.MaxInt64 || n < 0 && text[0] != '-' { // units converts a float64, which can overflow an int64
		return fmt.Errorf("want a size below 8EiB, got %q", text)
	}
	*b = Bytes(n)
	return nil
}

// UnmarshalText parses a non-negative integer or "auto".
func (a *Auto) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*a = AutoValue
		return nil
	}
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 0 {
		return errors.New(`want an integer ≥ 0 or auto, got "` + string(text) + `"`)
	}
	*a = Auto(n)
	return nil
}

// UnmarshalText parses words separated by commas.
func (w *Words) UnmarshalText(text []byte) error {
	*w = nil
	for word := range strings.SplitSeq(string(text), ",") {
		if word = strings.TrimSpace(word); word != "" {
			*w = append(*w, word)
		}
	}
	return nil
}

// UnmarshalText parses two percentages: 25-75%. "" is none.
func (w *Within) UnmarshalText(text []byte) error {
	*w = Within{}
	if len(text) == 0 {
		return nil
	}
	percent, whole := strings.CutSuffix(string(text), "%")
	from, to, two := strings.Cut(percent, "-")
	a, errA := strconv.ParseFloat(strings.TrimSuffix(from, "%"), 64)
	b, errB := strconv.ParseFloat(to, 64)
	if !whole || !two || errA != nil || errB != nil || !(a >= 0 && a <= b && b <= 100) {
		return fmt.Errorf("want two percentages, such as 25-75%%, got %q", text)
	}
	*w = Within{a / 100, b / 100}
	return nil
}
