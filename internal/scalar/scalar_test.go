package scalar

import (
	"testing"
	"time"
)

// Sizes have the units of Kubernetes' quantities, with or without a B, and durations those of Go and of Prometheus.
func TestUnits(t *testing.T) {
	for text, want := range map[string]Bytes{
		"0": 0, "1000": 1000, "64k": 64_000, "64K": 64_000, "1M": 1e6, "1.5G": 15e8, "1T": 1e12, "8Ki": 8 << 10, "8Mi": 8 << 20, "1Gi": 1 << 30,
		"64KB": 64_000, "8MiB": 8 << 20, "-1Ki": -1024,
		"": -1, "1.5": -1, "k": -1, "8mi": -1, "8MB iB": -1, "1e3": -1, "8BB": -1, "16Ei": -1, "8Mib": -1, "1 Mi": -1,
	} {
		var b Bytes
		if err := b.UnmarshalText([]byte(text)); (err != nil) != (want == -1) || err == nil && b != want {
			t.Errorf("%q: got %d, %v, want %d", text, b, err, want)
		}
	}
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "1.5s": 1500 * time.Millisecond, "1d": 24 * time.Hour, "1d1h": 25 * time.Hour, "1w": 7 * 24 * time.Hour, "-1m": -time.Minute,
		"": -1, "30": -1, "1x": -1, "d": -1,
	} {
		d := Duration(7)
		if err := d.UnmarshalText([]byte(text)); (err != nil) != (want == -1) || err == nil && time.Duration(d) != want {
			t.Errorf("%q: got %v, %v, want %v", text, time.Duration(d), err, want)
		}
	}
}
