package canary

import "time"

// stakes are the shares of its capital that each of a detector's bettors stakes on the next bit.
var stakes = [...]float64{0.1, 0.25, 0.5, 0.8}

// A Detector finds when bits that were fair coins, or less, have become more. It never ends: Shin, Ramdas and Rinaldo, E-detectors: a nonparametric
// framework for sequential change detection, New England Journal of Statistics in Data Science 2(2), 2024:
//
//	M ← (M + 1) · (1 + λ(2·bit − 1))
//
// for each stake λ. It alarms when the mean of M reaches a bound. While the chance of a one, given the past, is at most 1/2, at least as many bits as
// the bound pass between alarms on average.
type Detector struct {
	bound  float64
	bits   int64
	sums   [len(stakes)]float64 // M
	recent [len(stakes)]float64 // as M, of a bettor that begins anew whenever it has lost
	begun  [len(stakes)]int64   // bit at which that one last began
}

// NewDetector returns a detector with a bound.
func NewDetector(bound float64) *Detector { return &Detector{bound: bound} }

// Add adds a bit. At an alarm it returns how many bits ago the change probably came, and the detector begins anew.
func (d *Detector) Add(one bool) (since int64, alarm bool) {
	sign := -1.0
	if one {
		sign = 1
	}
	mean, most, from := 0.0, 0.0, int64(0)
	for i, stake := range stakes {
		factor := 1 + stake*sign
		d.sums[i] = (d.sums[i] + 1) * factor
		mean += d.sums[i] / float64(len(stakes))
		if d.recent[i] <= 1 {
			d.recent[i], d.begun[i] = 1, d.bits
		}
		d.recent[i] *= factor
		if d.recent[i] > most {
			most, from = d.recent[i], d.begun[i]
		}
	}
	d.bits++
	if mean < d.bound {
		return 0, false
	}
	since = d.bits - from
	*d = Detector{bound: d.bound}
	return since, true
}

// WatchBound is the bound of each of several detectors that together give at most one false alarm in 30 days on average, if a block has at least a
// length.
func WatchBound(detectors int, block time.Duration) float64 {
	const period = 30 * 24 * time.Hour
	return float64(detectors) * float64(period/max(block, time.Second))
}
