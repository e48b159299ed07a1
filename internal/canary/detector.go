package canary

import (
	"math"
	"time"
)

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
	bound   float64
	bettors [len(stakes)]bettor
}

// A bettor is a detector's capital at one stake.
type bettor struct {
	Sum    float64 `json:"sum"`    // M
	Recent float64 `json:"recent"` // as M, of a bettor that begins anew whenever it has lost
	Since  Span    `json:"since"`  // the blocks since that one last began
}

// A Span is consecutive blocks: the instant at which the first began, and the requests of a share in all of them.
type Span struct {
	Begin time.Time `json:"begin"`
	Tally
}

// A Tally counts the requests of a share, by side, among pairs.
type Tally struct {
	Baseline  int64 `json:"baseline"`
	Candidate int64 `json:"candidate"`
	Pairs     int64 `json:"pairs"`
}

func (t *Tally) add(b Tally) {
	t.Baseline += b.Baseline
	t.Candidate += b.Candidate
	t.Pairs += b.Pairs
}

// excess is how much larger the candidate's share is than the baseline's.
func (t *Tally) excess() float64 {
	if t.Pairs == 0 {
		return 0
	}
	return float64(t.Candidate-t.Baseline) / float64(t.Pairs)
}

// known is the excess, NaN without a pair.
func (t *Tally) known() float64 {
	if t.Pairs == 0 {
		return math.NaN()
	}
	return t.excess()
}

// Add adds the bit of a block. At an alarm it returns the blocks since the change, by the bettor that has won most since it last began, and the
// detector begins anew.
func (d *Detector) Add(one bool, block Span) (since Span, alarm bool) {
	sign := -1.0
	if one {
		sign = 1
	}
	most := 0.0
	for i, stake := range stakes {
		b := &d.bettors[i]
		b.Sum = (b.Sum + 1) * (1 + stake*sign)
		if b.Recent <= 1 {
			b.Recent, b.Since = 1, block
		} else {
			b.Since.add(block.Tally)
		}
		b.Recent *= 1 + stake*sign
		if b.Recent > most {
			most, since = b.Recent, b.Since
		}
	}
	if d.mean() < d.bound {
		return Span{}, false
	}
	d.reset()
	return since, true
}

func (d *Detector) reset() { *d = Detector{bound: d.bound} }

// skip counts the requests of a block without a bit.
func (d *Detector) skip(block Tally) {
	for i := range d.bettors {
		d.bettors[i].Since.add(block)
	}
}

func (d *Detector) mean() float64 {
	sum := 0.0
	for i := range d.bettors {
		sum += d.bettors[i].Sum / float64(len(stakes))
	}
	return sum
}

// log10 is the decimal logarithm of the mean of M, at least 0.
func (d *Detector) log10() float64 { return max(0, math.Log10(d.mean())) }

// WatchBound is the bound of each of several detectors that together give at most one false alarm in 30 days on average, if a block has at least a
// length.
func WatchBound(detectors int, block time.Duration) float64 {
	const period = 30 * 24 * time.Hour
	return float64(detectors) * float64(period/max(block, time.Second))
}
