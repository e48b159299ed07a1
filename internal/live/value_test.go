package live

import (
	"testing"
	"time"
)

// TestSpan: a bin of a short trace's curve is a part of a millisecond, and the page computes with it.
func TestSpan(t *testing.T) {
	f := func(d time.Duration, want string) {
		t.Helper()
		if got := string(encode(span(d))); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
	}
	f(0, "0")
	f(second/128, "0.0078125")
	f(90*second, "90")
	f(-1500*ms, "-1.5")
}
