package live

import (
	"math"
	"time"

	"replayd/internal/stats"
)

// Buckets grow by the factor 2^(1/8), from 1 µs to 2^30 µs (17 min 53 s). Shorter latencies count in the first bucket,
// longer ones in the last. The harmonic mean of its edges represents a bucket, so a percentile between the two ends is
// at most (2^(1/8) − 1) / (2^(1/8) + 1) = 4.33 % away from the percentile of the samples.
const (
	perOctave = 8
	buckets   = 30 * perOctave
	shortest  = time.Microsecond
)

type histogram [buckets]uint32

func bucketOf(d time.Duration) int {
	if d <= shortest {
		return 0
	}
	return min(int(math.Log2(float64(d)/float64(shortest))*perOctave), buckets-1)
}

// valueOf returns the harmonic mean of a bucket's edges in seconds.
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

// percentile returns seconds, or unknown if the histogram is empty.
func (h *histogram) percentile(p float64) value {
	return value(stats.Percentile(p, h.count(), h.at))
}

// at returns the value of a rank, from 0, in seconds.
func (h *histogram) at(rank int64) float64 {
	for i, c := range h {
		if rank -= int64(c); rank < 0 {
			return valueOf(i)
		}
	}
	return valueOf(buckets - 1) // not reached: a rank is below the count
}
