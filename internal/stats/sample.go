package stats

import (
	"math"
	"slices"
	"time"
)

// ExactValues is the most values of one quantity that are kept exactly: 2 MiB. A run of up to as many requests has
// exact percentiles of all quantities but ITL, which has one value per token.
const ExactValues = 1 << 18

// logGamma (γ) is the growth factor of the buckets used once a sample holds more than ExactValues values. A value in
// (γ^(i−1), γ^i] is returned as 2γ^i/(γ+1), which is off by at most (γ−1)/(γ+1) of the value: 0.1 %. From 1 ns to 292
// years there are 21,900 buckets, 171 KiB.
const logGamma = 1.002

var perLog = 1 / math.Log(logGamma)

// Durations describes the values of one quantity. All fields are zero if there are no values.
type Durations struct {
	N           int64
	Mean, Std   time.Duration // Std is the population's
	Min, Max    time.Duration
	Approximate bool // percentiles may be off by 0.1 % of their value; the other fields are exact
}

// A Sample collects values of one quantity in bounded memory. Negative values count as 0.
type Sample struct {
	n        int64
	mean, m2 float64 // Welford's sums in nanoseconds, which avoid the difference of large squares
	min, max time.Duration
	exact    []time.Duration // used while buckets is nil
	buckets  []int64         // by bucketOf
}

// Add takes a value.
func (s *Sample) Add(d time.Duration) {
	d = max(0, d)
	s.n++
	delta := float64(d) - s.mean
	s.mean += delta / float64(s.n)
	s.m2 += delta * (float64(d) - s.mean)
	if s.n == 1 {
		s.min = d
	}
	s.min, s.max = min(s.min, d), max(s.max, d)

	if s.buckets == nil && len(s.exact) == ExactValues {
		s.buckets = make([]int64, bucketOf(math.MaxInt64)+1)
		for _, v := range s.exact {
			s.buckets[bucketOf(v)]++
		}
		s.exact = nil
	}
	if s.buckets != nil {
		s.buckets[bucketOf(d)]++
		return
	}
	s.exact = append(s.exact, d)
}

// bucketOf numbers the buckets: 0 holds 0, and i+1 holds (γ^(i−1), γ^i] nanoseconds.
func bucketOf(d time.Duration) int {
	if d <= 0 {
		return 0
	}
	return 1 + int(math.Ceil(math.Log(float64(d))*perLog))
}

func bucketValue(bucket int) float64 {
	if bucket == 0 {
		return 0
	}
	return 2 * math.Pow(logGamma, float64(bucket-1)) / (logGamma + 1)
}

// Durations describes the values so far.
func (s *Sample) Durations() Durations {
	if s.n == 0 {
		return Durations{}
	}
	return Durations{
		N: s.n, Mean: nanoseconds(s.mean), Std: nanoseconds(math.Sqrt(s.m2 / float64(s.n))), Min: s.min, Max: s.max,
		Approximate: s.buckets != nil,
	}
}

// Percentile returns percentile p of the values so far, or 0 if there are none.
func (s *Sample) Percentile(p float64) time.Duration {
	if s.n == 0 {
		return 0
	}
	slices.Sort(s.exact)
	return nanoseconds(Percentile(p, s.n, s.at))
}

// at returns the value of a rank, from 0, in nanoseconds. Exact values must be sorted.
func (s *Sample) at(rank int64) float64 {
	if s.buckets == nil {
		return float64(s.exact[rank])
	}
	for bucket, n := range s.buckets {
		if rank -= n; rank < 0 {
			return min(max(bucketValue(bucket), float64(s.min)), float64(s.max))
		}
	}
	return float64(s.max)
}

func nanoseconds(f float64) time.Duration { return time.Duration(math.Round(f)) }
