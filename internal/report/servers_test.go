package report

import (
	"math"
	"testing"
)

// From AIPerf's document: 1000 requests/s need 135 servers at 7.43 requests/s each, and 38 at 26.67.
func TestServers(t *testing.T) {
	f := func(requests, goodput float64, want int, wantOK bool) {
		t.Helper()
		if got, ok := servers(requests, goodput); got != want || ok != wantOK {
			t.Errorf("servers(%v, %v) = %d, %v", requests, goodput, got, ok)
		}
	}
	f(1000, 7.43, 135, true)
	f(1000, 26.67, 38, true)
	f(100, 10, 10, true)
	f(0, 10, 0, true)
	f(1000, 0, 0, false)
	f(1000, math.NaN(), 0, false)
	f(-1, 10, 0, false)
	f(1e300, 1e-9, 0, false)
}
