package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

func TestShape(t *testing.T) {
	rng := rand.New(rand.NewPCG(53, 54))
	for range 200 {
		values := make([]int, 1+rng.IntN(3000))
		most := 1 + rng.IntN(1<<rng.IntN(24))
		least := rng.IntN(2)
		var c Counts
		for i := range values {
			values[i] = least + rng.IntN(most)
			c.Add(values[i])
		}
		s := c.Weighted().Shape()
		if len(s.Edges) != len(s.Counts)+1 || len(s.Counts) > shapeBars || !slices.IsSorted(s.Edges) {
			t.Fatalf("%d counts, edges %v", len(s.Counts), s.Edges)
		}
		counted := make([]int64, len(s.Counts))
		for _, v := range values {
			for i := range counted {
				if s.Edges[i] <= float64(v) && float64(v) < s.Edges[i+1] {
					counted[i]++
				}
			}
		}
		if diff := cmp.Diff(counted, s.Counts); diff != "" || totalCount(s.Counts) != int64(len(values)) {
			t.Fatalf("of %d to %d: %s", least, most, diff)
		}
		if len(s.X) > 2*shapeSteps+2 || len(s.X) != len(s.Below) || s.Below[len(s.Below)-1] != 100 {
			t.Fatalf("%d steps to %v", len(s.X), s.Below)
		}
		for i, x := range s.X {
			n := 0
			for _, v := range values {
				if float64(v) <= x {
					n++
				}
			}
			if want := 100 * float64(n) / float64(len(values)); s.Below[i] != want {
				t.Fatalf("at or below %v: got %v %%, want %v", x, s.Below[i], want)
			}
		}
	}
	if got := (&Counts{}).Weighted().Shape(); got.X != nil || got.Edges != nil {
		t.Errorf("no values: got %+v", got)
	}
	var one Counts
	one.Add(7)
	if diff := cmp.Diff(Shape{Edges: []float64{6.5, 7.5}, Counts: []int64{1}, X: []float64{7}, Below: []float64{100}}, one.Weighted().Shape()); diff != "" {
		t.Error(diff)
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

func totalCount(counts []int64) (total int64) {
	for _, n := range counts {
		total += n
	}
	return total
}
