package live

import (
	"math"
	"time"
)

// Buckets grow by the factor 2^(1/8), from 1 µs to 2^30 µs (17 min 53 s); what is shorter or longer counts in the first
// or the last one. A quantile is told as the value in a bucket that is furthest from neither edge, so that between the
// two ends it is at most (2^(1/8) − 1) / (2^(1/8) + 1) = 4.33 % away from the sample of its rank.
const (
	perOctave = 8
	buckets   = 30 * perOctave
	shortest  = time.Microsecond
)

// A histogram counts latencies.
type histogram [buckets]uint32

// bucketOf is the place of a latency in a histogram.
func bucketOf(d time.Duration) int {
	if d <= shortest {
		return 0
	}
	return min(int(math.Log2(float64(d)/float64(shortest))*perOctave), buckets-1)
}

// valueOf is what stands for all latencies of a bucket, in seconds: the harmonic mean of its edges.
func valueOf(bucket int) float64 {
	low := shortest.Seconds() * math.Exp2(float64(bucket)/perOctave)
	high := shortest.Seconds() * math.Exp2(float64(bucket+1)/perOctave)
	return 2 * low * high / (low + high)
}

func (h *histogram) add(other *histogram) {
	for i, n := range other {
		h[i] += n
	}
}

func (h *histogram) count() (n int64) {
	for _, c := range h {
		n += int64(c)
	}
	return n
}

// quantile is the value of the sample with rank ⌈q × count⌉, in seconds; unknown of nothing.
func (h *histogram) quantile(q float64) figure {
	rank := int64(math.Ceil(q * float64(h.count())))
	if rank == 0 {
		return unknown
	}
	for i, c := range h {
		if rank -= int64(c); rank <= 0 {
			return figure(valueOf(i))
		}
	}
	return unknown // not reached: the ranks add up to the count
}
