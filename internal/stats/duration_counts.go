package stats

import (
	"math/bits"
	"time"
)

// A DurationCounts counts durations in bounded memory. It is exact as long as there are few distinct durations, as in
// most traces. With more it uses buckets, each at most 1/128 as wide as the durations in it.
type DurationCounts struct {
	exact   map[int64]int64 // nanoseconds to count
	buckets []durationBucket
}

// A durationBucket keeps the number, the ends and the sum of its durations, in nanoseconds.
type durationBucket struct {
	n         int64
	low, high int64
	sum       float64
}

const (
	maxDistinct = 1 << 16
	finest      = 128 // buckets per power of two
	spreadSlots = (63-7)*finest + finest
)

// Add counts a duration. A negative duration counts as 0.
func (s *DurationCounts) Add(d time.Duration) {
	v := int64(max(d, 0))
	if s.buckets != nil {
		s.put(v, 1)
		return
	}
	if s.exact == nil {
		s.exact = map[int64]int64{}
	}
	s.exact[v]++
	if len(s.exact) <= maxDistinct {
		return
	}
	s.buckets = make([]durationBucket, spreadSlots)
	for v, n := range s.exact {
		s.put(v, n)
	}
	s.exact = nil
}

func (s *DurationCounts) put(v, n int64) {
	shift := max(bits.Len64(uint64(v))-8, 0)
	b := &s.buckets[shift*finest+int(v>>shift)]
	if b.n == 0 {
		b.low, b.high = v, v
	}
	b.n += n
	b.low, b.high = min(b.low, v), max(b.high, v)
	b.sum += float64(v) * float64(n)
}

// Seconds lists the durations. The smallest and the largest of a bucket are exact; the others are listed at their mean.
func (s *DurationCounts) Seconds() Weighted {
	values := make(map[float64]int64, len(s.exact))
	for v, n := range s.exact {
		values[float64(v)/1e9] += n
	}
	for _, b := range s.buckets {
		if b.n == 0 {
			continue
		}
		low, high := float64(b.low), float64(b.high)
		if b.n > 2 {
			mean := (b.sum - low - high) / float64(b.n-2)
			values[min(max(mean, low), high)/1e9] += b.n - 2
		}
		if b.n > 1 {
			values[high/1e9]++
		}
		values[low/1e9]++
	}
	return Weigh(values)
}
