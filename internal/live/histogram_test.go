package live

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"replayd/internal/stats"
)

// TestPercentileError compares percentiles of histograms with those of the samples.
func TestPercentileError(t *testing.T) {
	limit := (math.Exp2(1.0/8) - 1) / (math.Exp2(1.0/8) + 1)
	if limit > 0.0434 {
		t.Fatalf("the documented bound is 4.33 %%, got %v", limit)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		values := make([]time.Duration, 1+rng.IntN(400))
		var h histogram
		for i := range values { // over the whole range, uniform in the logarithm
			values[i] = time.Duration(float64(shortest) * math.Exp2(30*rng.Float64()))
			h[bucketOf(values[i])]++
		}
		slices.Sort(values)
		for _, p := range []float64{1, 50, 90, 99, 100} {
			want := stats.Percentile(p, int64(len(values)), func(rank int64) float64 { return values[rank].Seconds() })
			if got := float64(h.percentile(p)); math.Abs(got-want) > want*(limit+1e-12) {
				t.Errorf("p%v of %d: got %v, want %v ± %.2f %%", p, len(values), got, want, 100*limit)
			}
		}
	}
}

func TestBucketOf(t *testing.T) {
	f := func(d time.Duration, want int) {
		t.Helper()
		if got := bucketOf(d); got != want {
			t.Errorf("%v: bucket %d, want %d", d, got, want)
		}
	}
	f(-time.Second, 0)
	f(0, 0)
	f(time.Microsecond, 0)
	f(2*time.Microsecond, 8) // one octave up
	f(1024*time.Microsecond, 80)
	f(1024*time.Microsecond-1, 79)
	f(1<<30*time.Microsecond-1, 239)
	f(1<<30*time.Microsecond, 239)
	f(math.MaxInt64, 239)
}

func TestPercentileOfNothing(t *testing.T) {
	var h histogram
	if got := h.percentile(50); got.known() {
		t.Errorf("got %v, want an unknown figure", got)
	}
}
