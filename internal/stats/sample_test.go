package stats

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const ms = time.Millisecond

func TestSampleByHand(t *testing.T) {
	f := func(name string, values []time.Duration, want Durations, percentiles ...time.Duration) { // 25, 50, 75, 90, 99
		t.Helper()
		var s Sample
		for _, v := range values {
			s.Add(v)
		}
		if got := s.Durations(); got != want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, want)
		}
		for i, p := range []float64{25, 50, 75, 90, 99} {
			if got := s.Percentile(p); got != percentiles[i] {
				t.Errorf("%s: p%v: got %v, want %v", name, p, got, percentiles[i])
			}
		}
	}
	f("none", nil, Durations{}, 0, 0, 0, 0, 0)
	f("one", []time.Duration{7 * ms}, Durations{N: 1, Mean: 7 * ms, Min: 7 * ms, Max: 7 * ms}, 7*ms, 7*ms, 7*ms, 7*ms, 7*ms)

	// Ranks p/100·4: 1, 2, 3, 3.6, 3.96. Squares about the mean of 30: 400 + 100 + 0 + 100 + 400 = 1000, over 5 is 200.
	f("five, unsorted", []time.Duration{50 * ms, 10 * ms, 40 * ms, 20 * ms, 30 * ms}, Durations{
		N: 5, Mean: 30 * ms, Std: time.Duration(math.Round(math.Sqrt(200) * 1e6)), Min: 10 * ms, Max: 50 * ms,
	}, 20*ms, 30*ms, 40*ms, 46*ms, 49600*time.Microsecond)
	// Ranks p/100·3: 0.75, 1.5, 2.25, 2.7, 2.97. numpy.percentile([1, 2, 3, 4], 25) is 1.75.
	f("four", []time.Duration{1 * ms, 2 * ms, 3 * ms, 4 * ms}, Durations{
		N: 4, Mean: 2500 * time.Microsecond, Std: time.Duration(math.Round(math.Sqrt(1.25) * 1e6)), Min: ms, Max: 4 * ms,
	}, 1750*time.Microsecond, 2500*time.Microsecond, 3250*time.Microsecond, 3700*time.Microsecond, 3970*time.Microsecond)
	f("below zero", []time.Duration{-ms, -ms}, Durations{N: 2}, 0, 0, 0, 0, 0)
}

// Beyond ExactValues the percentiles stay within 0.1 % of those of the sorted values, and the other figures stay exact.
func TestManyValuesStayWithinTheirError(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	values := make([]time.Duration, ExactValues+50_000)
	var s Sample
	sum := 0.0
	for i := range values {
		values[i] = time.Duration(math.Exp(rnd.Float64() * math.Log(60e9))) // 1 ns to 60 s, even in the logarithm
		if i%10 == 0 {
			values[i] = 0 // as with coalesced reads
		}
		s.Add(values[i])
		sum += float64(values[i])
	}
	if s.exact != nil || len(s.buckets) > 22_000 {
		t.Errorf("%d values and %d buckets are kept, want 0 and at most 22,000", len(s.exact), len(s.buckets))
	}
	slices.Sort(values)
	mean, squares := sum/float64(len(values)), 0.0
	for _, v := range values {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	got := s.Durations()
	near := func(name string, got time.Duration, want, tolerance float64) {
		t.Helper()
		if math.Abs(float64(got)-want) > want*tolerance+1 { // 1 ns for the rounding
			t.Errorf("%s = %v, want %v", name, got, time.Duration(want))
		}
	}
	near("mean", got.Mean, mean, 1e-9)
	near("std", got.Std, math.Sqrt(squares/float64(len(values))), 1e-9)
	for _, p := range []float64{25, 50, 75, 90, 99} {
		rank := p / 100 * float64(len(values)-1)
		low, high := float64(values[int(rank)]), float64(values[int(rank)+1])
		near("percentile", s.Percentile(p), low+(high-low)*(rank-math.Floor(rank)), 0.001)
	}
	if got.N != int64(len(values)) || got.Min != 0 || got.Max != values[len(values)-1] || !got.Approximate {
		t.Errorf("%+v", got)
	}
}

func TestBucketsHoldTheirError(t *testing.T) {
	for d := time.Duration(1); d > 0 && d < math.MaxInt64/2; d += d/777 + 1 {
		v := bucketValue(bucketOf(d))
		if math.Abs(v-float64(d)) > float64(d)*0.001 {
			t.Fatalf("%d ns comes back as %v", d, v)
		}
	}
	if bucketValue(bucketOf(0)) != 0 {
		t.Error("0 does not come back as 0")
	}
}
