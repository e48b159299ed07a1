package number

import (
	"math"
	"testing"
	"time"
)

func TestValue(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{
		{0.25, "ms", "250 µs"},
		{212.4, "ms", "212 ms"},
		{999.6, "ms", "1 s"},
		{1184, "ms", "1.18 s"},
		{0, "ms", "0 s"},
		{119.4, "s", "119 s"},
		{320, "s", "5 min 20 s"},
		{7260, "s", "2 h 1 min"},
		{12_031, "tokens", "12k tokens"},
		{1234.4, "", "1,234"},
		{2_400_000, "", "2.4M"},
		{0.185, "%", "0.185 %"},
		{-5.7, "%", "−5.7 %"},
		{nan, "ms", "–"},
		{math.Inf(1), "", "–"},
	} {
		if got := Value(c.v, c.unit); got != c.want {
			t.Errorf("%v %s: %q, want %q", c.v, c.unit, got, c.want)
		}
	}
	for v, want := range map[float64]string{1234567.891: "1,234,567.89", 999.999: "1,000.00", -1234: "−1,234.00", 0: "0.00", -0.001: "0.00"} {
		if got := Grouped(v, 2); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}

func TestLatency(t *testing.T) {
	f := func(d time.Duration, want string) {
		t.Helper()
		if got := Latency(d); got != want {
			t.Errorf("Latency(%v) = %q, want %q", d, got, want)
		}
	}
	f(0, "0 µs")
	f(999_499, "999 µs")
	f(999_500, "1.0 ms")
	f(9_949_999, "9.9 ms")
	f(9950*time.Microsecond, "10 ms")
	f(999_499*time.Microsecond, "999 ms")
	f(999_500*time.Microsecond, "1.00 s")
	f(9994*time.Millisecond, "9.99 s")
	f(9995*time.Millisecond, "10.0 s")
	f(61*time.Second, "61.0 s")
}

func TestOthers(t *testing.T) {
	for got, want := range map[string]string{
		Count(1, "request"): "1 request", Count(0, "request"): "0 requests", Count(12_031, "row"): "12,031 rows",
		Whole(int64(1) << 40): "1,099,511,627,776",
		Places(0.9, 3):        "0.9", Places(12.3456, 3): "12.346", Places(3, 3): "3", Places(120, 0): "120",
		Percent(1, 3): "33.3 %", Percent(0, 0): "no data", Percent(9_999, 10_000): "99.99 %", Percent(5, 5): "100 %", Percent(1, 100_000): "0.001 %",
		Precise(1_234_567_890): "1.235s", Precise(56_789_123): "56.789ms", Precise(12_345): "12.345µs",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
