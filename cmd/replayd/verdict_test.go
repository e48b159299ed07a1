package main

import (
	"testing"

	"replayd/internal/measure"
)

// A run is not measured where the requests that are not judged decide. One that missed its attainment even if all of them were good has
// missed it.
func TestUnmeasured(t *testing.T) {
	for _, c := range []struct {
		good, unjudged, ok, expected int64
		least                        float64
		want                         bool
	}{
		{100, 0, 100, 100, 1, false},
		{95, 5, 100, 100, 1, false},
		{94, 6, 100, 100, 1, true},
		{0, 100, 100, 100, 0.9, true},
		{0, 100, 100, 100, 0, false}, // nothing was required
		{50, 10, 100, 100, 0.9, false},
		{85, 10, 100, 100, 0.9, true},
		{0, 0, 0, 100, 1, false},
	} {
		l := measure.Ledger{Good: c.good, Unjudged: c.unjudged, Expected: c.expected, Outcomes: map[measure.Outcome]int64{measure.OK: c.ok}}
		if got := unmeasured(l, c.least); got != c.want {
			t.Errorf("%+v: got %v", c, got)
		}
	}
}
