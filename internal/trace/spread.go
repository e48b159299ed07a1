package trace

import (
	"math/bits"
	"time"
)

// A spread counts durations in buckets of at most 1/128 of their value, in constant memory. Where all in a bucket are alike, as
// with timestamps of whole ticks, nothing is lost.
type spread struct {
	buckets []bucket
	n       int64
}

// A bucket keeps the ends and the sum of what fell into it, nanoseconds.
type bucket struct {
	n         int64
	low, high int64
	sum       float64
}

const (
	finest      = 128 // buckets from a power of two to the next
	spreadSlots = (63-7)*finest + finest
)

func (s *spread) add(d time.Duration) {
	if s.buckets == nil {
		s.buckets = make([]bucket, spreadSlots)
	}
	v := int64(max(d, 0))
	shift := max(bits.Len64(uint64(v))-8, 0)
	b := &s.buckets[shift*finest+int(v>>shift)]
	if b.n == 0 {
		b.low, b.high = v, v
	}
	b.n++
	b.low, b.high = min(b.low, v), max(b.high, v)
	b.sum += float64(v)
	s.n++
}

// seconds lists what was counted. Of more than two in a bucket, all but the least and the greatest stand at their mean.
func (s *spread) seconds() weighted {
	var w weighted
	put := func(v float64, n int64) {
		if v /= 1e9; len(w) > 0 && w[len(w)-1].value == v {
			w[len(w)-1].n += n
		} else {
			w = append(w, weight{v, n})
		}
	}
	for _, b := range s.buckets {
		if b.n == 0 {
			continue
		}
		low, high := float64(b.low), float64(b.high)
		if b.low == b.high {
			put(low, b.n)
			continue
		}
		put(low, 1)
		if b.n > 2 {
			put(min(max((b.sum-low-high)/float64(b.n-2), low), high), b.n-2)
		}
		put(high, 1)
	}
	return w
}
