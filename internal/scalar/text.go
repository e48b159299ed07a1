package scalar

import (
	"math"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
)

// MarshalText returns Prometheus' format ("1d", "1m30s"), or Go's if the duration is negative or not a whole number of
// milliseconds.
func (d Duration) MarshalText() ([]byte, error) {
	if d < 0 || time.Duration(d)%time.Millisecond != 0 {
		return []byte(time.Duration(d).String()), nil
	}
	return []byte(model.Duration(d).String()), nil
}

// MarshalText returns the number with the largest unit of 1024 that divides it.
func (b Bytes) MarshalText() ([]byte, error) {
	n, unit := int64(b), ""
	for _, u := range []string{"KiB", "MiB", "GiB"} {
		if n == 0 || n%1024 != 0 {
			break
		}
		n, unit = n/1024, u
	}
	return append(strconv.AppendInt(nil, n, 10), unit...), nil
}

// MarshalText returns the number or "auto".
func (a Auto) MarshalText() ([]byte, error) {
	if a == AutoValue {
		return []byte("auto"), nil
	}
	return strconv.AppendInt(nil, int64(a), 10), nil
}

// MarshalText returns two percentages: 25-75%.
func (w Within) MarshalText() ([]byte, error) {
	if w == (Within{}) {
		return nil, nil
	}
	percent := func(share float64) string { return strconv.FormatFloat(math.Round(1e8*share)/1e6, 'f', -1, 64) }
	return []byte(percent(w[0]) + "-" + percent(w[1]) + "%"), nil
}
