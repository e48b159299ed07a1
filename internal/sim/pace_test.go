package sim

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// The noise has the median and the deviation that the options name, and the same seed and id give the same noise.
func TestPace(t *testing.T) {
	o := Defaults()
	if got := o.pace("a"); got != (pace{1, 1}) {
		t.Errorf("without noise: got %v", got)
	}
	o.Jitter, o.SlowShare, o.SlowFactor = 0.2, 0.1, 1000
	other := o
	other.Seed++
	const n = 20000
	var logs []float64
	slow, sum, differ := 0, 0.0, 0
	for i := range n {
		id := fmt.Sprint(i)
		p := o.pace(id)
		if p != o.pace(id) {
			t.Fatalf("request %s: two paces", id)
		}
		if p != other.pace(id) {
			differ++
		}
		if p.prefill > 30 {
			slow++
			if p.decode < 30 {
				t.Errorf("request %s: prefill %v, decode %v", id, p.prefill, p.decode)
			}
			continue
		}
		logs = append(logs, math.Log(p.prefill))
		sum += math.Log(p.prefill) * math.Log(p.prefill)
	}
	slices.Sort(logs)
	median, deviation, share := logs[len(logs)/2], math.Sqrt(sum/float64(len(logs))), float64(slow)/n
	if math.Abs(median) > 0.01 || math.Abs(deviation-0.2) > 0.01 || math.Abs(share-0.1) > 0.01 {
		t.Errorf("median of the logarithm %v, deviation %v, share of slow requests %v, want 0, 0.2 and 0.1",
			median, deviation, share)
	}
	if differ != n {
		t.Errorf("another seed: %d of %d paces differ", differ, n)
	}
}
