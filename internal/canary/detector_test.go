package canary

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// By enumeration of all sequences of 16 bits: with fair ones, the mean capital of each bettor after t bits is t, but for rounding. With a smaller
// chance of a one it is at most t. So a capital of the bound takes as many bits as the bound on average.
func TestDetectorIsFair(t *testing.T) {
	const most = 16
	chances := []float64{0, 0.2, 0.4, 0.5}
	means := [4][most + 1][len(stakes)]float64{}
	alarms := 0.0 // by the end, at a bound of 8
	for s := range uint32(1 << most) {
		d, early := &Detector{bound: math.Inf(1)}, &Detector{bound: 8}
		weights := [4]float64{1, 1, 1, 1}
		for n := 1; n <= most; n++ {
			one := s>>(n-1)&1 == 1
			d.Add(one, Span{})
			for c, chance := range chances {
				// A prefix comes in 2 ** (most − n) of the sequences.
				if one {
					weights[c] *= chance
				} else {
					weights[c] *= 1 - chance
				}
				for i := range d.bettors {
					means[c][n][i] += weights[c] * d.bettors[i].Sum / float64(uint32(1)<<(most-n))
				}
			}
			for i := range d.bettors {
				if d.bettors[i].Recent > d.bettors[i].Sum {
					t.Fatalf("sequence %x, bit %d: a bettor that began later has won %v, the sum of all is %v", s, n, d.bettors[i].Recent, d.bettors[i].Sum)
				}
			}
			if _, alarm := early.Add(one, Span{}); alarm {
				alarms++
			}
		}
	}
	for c, chance := range chances {
		for n := 1; n <= most; n++ {
			for i, mean := range means[c][n] {
				if mean > float64(n)+1e-9 || chance == 0.5 && mean < float64(n)-1e-9 {
					t.Errorf("chance %v, stake %v, after %d bits: M has the mean %v", chance, stakes[i], n, mean)
				}
			}
		}
	}
	// Each alarm takes a capital of at least 8, and 16 came in.
	if mean := alarms / (1 << most); mean > most/8 || mean == 0 {
		t.Errorf("%v alarms in %d fair bits at a bound of 8, want at most %d", mean, most, most/8)
	}
}

// With fair coins at least as many bits as the bound pass between alarms on average.
func TestDetectorKeepsItsPromise(t *testing.T) {
	const bound, alarms = 500, 400
	d := &Detector{bound: bound}
	rng := rand.New(rand.NewPCG(1, 1))
	bits := 0
	for n := 0; n < alarms; bits++ {
		if _, alarm := d.Add(rng.IntN(2) == 1, Span{}); alarm {
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
		d := &Detector{bound: WatchBound(12, time.Minute)}
		for range 2000 {
			if _, alarm := d.Add(rng.IntN(2) == 1, Span{}); alarm {
				t.Fatalf("seed %d: a false alarm", seed)
			}
		}
		for n := 1; ; n++ {
			since, alarm := d.Add(rng.Float64() < 0.95, Span{Begin: time.Unix(int64(n), 0)})
			if alarm {
				off := since.Begin.Sub(time.Unix(1, 0)).Seconds()
				if since.Begin.IsZero() {
					off = 1 // before the change
				}
				delays, errors = append(delays, float64(n)), append(errors, math.Abs(off))
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
