//go:build peers

package peers_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"
)

// logged returns requests that arrive and end at the given milliseconds.
func logged(spans ...[2]int64) (all []request) {
	for i, s := range spans {
		all = append(all, request{ID: fmt.Sprintf("run/0/%d", i), Arrival: s[0] * 1e6, End: s[1] * 1e6})
	}
	return all
}

// The checks find what is wrong.
func TestJudges(t *testing.T) {
	t.Run("disorder", func(t *testing.T) {
		all := logged([2]int64{0, 9}, [2]int64{2, 9}, [2]int64{1, 9}, [2]int64{5, 9})
		for inFlight, want := range map[int]int{1: 1, 2: 0} {
			if got := disorder(all, inFlight); len(got) != want {
				t.Errorf("%d in flight: want %d faults, got %q", inFlight, want, got)
			}
		}
	})
	t.Run("lateness", func(t *testing.T) {
		// Rows at 0, 10, 20 and 30 ms; the first is late by 3, the third by 7.
		got := lateness(logged([2]int64{1003}, [2]int64{1010}, [2]int64{1027}, [2]int64{1030}), []time.Duration{0, 10e6, 20e6, 30e6})
		if want := []time.Duration{0, 0, 3e6, 7e6}; !slices.Equal(got, want) {
			t.Errorf("want %v, got %v", want, got)
		}
	})
	t.Run("crowd", func(t *testing.T) {
		// Two lanes: each takes 10 ms, one begins 5 ms later; one of them is free for 1 ms at 40.
		var spans [][2]int64
		for i := range int64(10) {
			at := 5 * i
			if i == 8 {
				at++
			}
			spans = append(spans, [2]int64{at, 5*i + 10})
		}
		most, share := crowd(logged(spans...)) // from the second arrival, 5, to the ninth, 41
		want := map[int]float64{2: 35. / 36, 1: 1. / 36}
		if most != 2 || !maps.EqualFunc(share, want, func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 }) {
			t.Errorf("want 2 and %v, got %d and %v", want, most, share)
		}
		if most, _ := crowd(logged([2]int64{0, 9}, [2]int64{1, 9}, [2]int64{2, 9}, [2]int64{9, 12})); most != 3 {
			t.Errorf("want 3, got %d", most)
		}
	})
	t.Run("place", func(t *testing.T) {
		for id, want := range map[string][2]int{"run/0/7": {0, 7}, "a/warmup/3": {0, 3}, "run/2/7.4": {4, 7}} {
			if got := place(t, id); got != want {
				t.Errorf("%s: want %v, got %v", id, want, got)
			}
		}
		for _, id := range []string{"run/0/x", "run/0/7.", "run/0/"} {
			var bad refusals
			if place(&bad, id); bad == 0 {
				t.Errorf("%s: want it refused", id)
			}
		}
	})
}

type refusals int

func (r *refusals) Fatalf(string, ...any) { *r++ }
