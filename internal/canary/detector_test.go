package canary

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// With fair coins at least as many bits as the bound pass between alarms on average.
func TestDetectorKeepsItsPromise(t *testing.T) {
	const bound, alarms = 500, 400
	d := NewDetector(bound)
	rng := rand.New(rand.NewPCG(1, 1))
	bits := 0
	for n := 0; n < alarms; bits++ {
		if _, alarm := d.Add(rng.IntN(2) == 1); alarm {
			n++
		}
	}
	// The times between alarms vary about as much as their mean, so 400 have an error of 5 %.
	if mean := float64(bits) / alarms; mean < 0.85*bound {
		t.Errorf("an alarm each %.0f bits, want at least %d", mean, bound)
	}
}

// A change is found soon, and its time is named to within a few bits.
func TestDetectorFindsAChange(t *testing.T) {
	var delays, errors []float64
	for seed := range uint64(101) {
		rng := rand.New(rand.NewPCG(seed, 2))
		d := NewDetector(WatchBound(12, time.Minute))
		for range 2000 {
			if _, alarm := d.Add(rng.IntN(2) == 1); alarm {
				t.Fatalf("seed %d: a false alarm", seed)
			}
		}
		for n := 1; ; n++ {
			since, alarm := d.Add(rng.Float64() < 0.95)
			if alarm {
				delays, errors = append(delays, float64(n)), append(errors, math.Abs(float64(since)-float64(n)))
				break
			}
		}
	}
	slices.Sort(delays)
	slices.Sort(errors)
	if delays[50] > 40 || errors[50] > 5 {
		t.Errorf("found after %v bits, its begin off by %v, as medians; want at most 40 and 5", delays[50], errors[50])
	}
}
