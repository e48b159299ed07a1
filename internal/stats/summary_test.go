package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	for _, c := range []struct {
		name   string
		n      int
		draw   func() time.Duration
		within float64 // relative
	}{
		{"ticks", 100_000, func() time.Duration { return time.Duration(rng.IntN(4)) * time.Second }, 1e-12},
		{"as many as are exact", 1 << 16, func() time.Duration { return time.Duration(rng.ExpFloat64() * 1e9) }, 1e-12},
		{"more", 200_000, func() time.Duration { return time.Duration(rng.ExpFloat64() * 1e9) }, 1. / 128},
		{"of every size", 200_000, func() time.Duration { return time.Duration(rng.Int64() >> rng.IntN(63)) }, 1. / 128},
	} {
		var s DurationCounts
		values := make([]float64, c.n)
		for i := range values {
			d := c.draw()
			s.Add(d)
			values[i] = float64(d) / 1e9
		}
		got, want := s.Seconds().Summary(), exactSummary(values)
		for name, pair := range map[string][2]float64{
			"mean": {got.Mean, want.Mean}, "p25": {got.P25, want.P25}, "p50": {got.P50, want.P50}, "p75": {got.P75, want.P75},
			"p90": {got.P90, want.P90}, "p99": {got.P99, want.P99}, "std dev": {got.StdDev, want.StdDev},
		} {
			within := c.within
			if name == "mean" { // the sums of buckets are exact
				within = 1e-9
			}
			if math.Abs(pair[0]-pair[1]) > within*pair[1] {
				t.Errorf("%s: %s: got %v, want %v", c.name, name, pair[0], pair[1])
			}
		}
		if got.Count != want.Count || got.Min != want.Min || got.Max != want.Max {
			t.Errorf("%s: got %+v, want %+v", c.name, got, want)
		}
	}
	var none DurationCounts
	if got := none.Seconds().Summary(); got != (Summary{}) {
		t.Errorf("no values: got %+v", got)
	}
}

// exactSummary computes the summary from the sorted values.
func exactSummary[T int | float64](values []T) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(values))
	at := func(percent float64) float64 {
		rank := float64(len(sorted)-1) * percent / 100
		low := int(rank)
		high := min(low+1, len(sorted)-1)
		return float64(sorted[low]) + (rank-float64(low))*float64(sorted[high]-sorted[low])
	}
	s := Summary{
		Count: int64(len(sorted)), Min: float64(sorted[0]), Max: float64(sorted[len(sorted)-1]),
		P25: at(25), P50: at(50), P75: at(75), P90: at(90), P99: at(99),
	}
	for _, v := range sorted {
		s.Mean += float64(v)
	}
	s.Mean /= float64(len(sorted))
	for _, v := range sorted {
		s.StdDev += (float64(v) - s.Mean) * (float64(v) - s.Mean)
	}
	s.StdDev = math.Sqrt(s.StdDev / float64(len(sorted)))
	return s
}
