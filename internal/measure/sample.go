package measure

import (
	"math"
	"slices"
	"time"
)

// exactValues is how many values of one quantity are kept as they are: 2 MiB of them. A run of up to so many requests
// has exact percentiles of all but ITL, which has one value a token.
const exactValues = 1 << 18

// logGamma is the growth of the buckets that take over beyond that. A value in (γ^(i−1), γ^i] is given back as
// 2γ^i/(γ+1), which is off by at most (γ−1)/(γ+1) of the value: 0.1 %. From 1 ns to 292 years these are 21,900
// buckets, 171 KiB.
const logGamma = 1.002

var perLog = 1 / math.Log(logGamma)

// Stats describe the values of one quantity. All but N are zero when there were none.
type Stats struct {
	N                       int64
	Mean, Std               time.Duration // Std is the population's
	Min, Max                time.Duration
	P25, P50, P75, P90, P99 time.Duration // linear between the two neighbouring ranks
	Approximate             bool          // the percentiles may be off by 0.1 % of their value; the rest never is
}

// A sample collects values of one quantity in bounded memory. Negative values count as 0.
type sample struct {
	n        int64
	mean, m2 float64 // of Welford's sums, in nanoseconds: no large squares to subtract from each other
	min, max time.Duration
	exact    []time.Duration // while buckets is nil
	buckets  []int64         // by bucketOf
}

func (s *sample) add(d time.Duration) {
	d = max(0, d)
	s.n++
	delta := float64(d) - s.mean
	s.mean += delta / float64(s.n)
	s.m2 += delta * (float64(d) - s.mean)
	if s.n == 1 {
		s.min = d
	}
	s.min, s.max = min(s.min, d), max(s.max, d)

	if s.buckets == nil && len(s.exact) == exactValues {
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

func (s *sample) stats() Stats {
	if s.n == 0 {
		return Stats{}
	}
	slices.Sort(s.exact)
	return Stats{
		N:    s.n,
		Mean: nanoseconds(s.mean),
		Std:  nanoseconds(math.Sqrt(s.m2 / float64(s.n))),
		Min:  s.min, Max: s.max,
		P25: s.percentile(25), P50: s.percentile(50), P75: s.percentile(75), P90: s.percentile(90), P99: s.percentile(99),
		Approximate: s.buckets != nil,
	}
}

// percentile interpolates linearly at rank p/100·(n−1), as numpy does when told nothing else. Exact values are sorted. 0 of none.
func (s *sample) percentile(p float64) time.Duration {
	if s.n == 0 {
		return 0
	}
	rank := p / 100 * float64(s.n-1)
	below := int64(rank)
	low := s.at(below)
	high := s.at(min(below+1, s.n-1))
	return nanoseconds(low + (high-low)*(rank-float64(below)))
}

// at is the value of a rank, from 0, in nanoseconds.
func (s *sample) at(rank int64) float64 {
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
