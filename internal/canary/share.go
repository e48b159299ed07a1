package canary

import (
	"math"
	"time"

	"replayd/internal/stats"
)

// outageLeast is the excess of a block that is an outage: one side has far more bad requests. Outages are found in blocks as they come.
const outageLeast = 0.2

// A long block is several blocks together. A few more requests that fail are found in long blocks: errors come in bursts, and one burst fills many
// short ones, which are no evidence of their own. Where servers may wander, so do their users, and the tail is found in long blocks too.
type long struct {
	open   Span // blocks that make the next long one
	blocks int  // in open
}

const longTimes = 10 // blocks in a long one, or times min_time that it lasts

// add adds a block. It returns the long block that ends with it; without pairs: none does.
func (l *long) add(block Span, end time.Time, minTime time.Duration) (ended Tally) {
	if l.blocks == 0 {
		l.open.Begin = block.Begin
	}
	l.open.add(block.Tally)
	l.blocks++
	if l.blocks < longTimes && (minTime == 0 || end.Sub(l.open.Begin) < longTimes*minTime) {
		return Tally{}
	}
	ended = l.open.Tally
	*l = long{}
	return ended
}

// An excess is the sums over blocks of a share's excess: the candidate's share less the baseline's.
type excess struct {
	Blocks  int64   `json:"blocks"`
	Sum     float64 `json:"sum"`
	Squares float64 `json:"squares"`
}

func (e *excess) add(v float64) {
	e.Blocks++
	e.Sum += v
	e.Squares += v * v
}

// times returns the sums over so many times as many blocks like these.
func (e excess) times(factor float64) excess {
	return excess{int64(math.Round(factor * float64(e.Blocks))), factor * e.Sum, factor * e.Squares}
}

// excessLeast is the number of blocks from which on a bound by their mean and variance is one.
const excessLeast = 5

// tuned is ρ² of the confidence sequence, for the narrowest one after about 30 blocks at 1 %.
const tuned = 1.0 / 3

// upper is a bound that the mean of the blocks' excess does not exceed, however often one looks, with a chance of 1 − α: the asymptotic confidence
// sequence of Waudby-Smith and others, Time-uniform central limit theory and asymptotic confidence sequences, Annals
// of Statistics 52(6), 2024, one-sided. It knows that the requests of a block depend on each other. +Inf below five blocks.
func (e excess) upper(alpha float64) float64 {
	if e.Blocks < excessLeast {
		return math.Inf(1)
	}
	n := float64(e.Blocks)
	mean := e.Sum / n
	variance := max(0, e.Squares/n-mean*mean) * n / (n - 1)
	grown := n*tuned + 1
	return mean + math.Sqrt(variance*2*grown/(n*n*tuned)*math.Log1p(math.Sqrt(grown)/(2*alpha)))
}

// pairStakes are those of the bettors against an excess. All are below 1, so that no pair ruins one.
var pairStakes = [...]float64{0.05, 0.1, 0.2, 0.4, 0.7, 0.95}

// excludes says whether the excess of the pairs is below x, however often one looks, with a chance of 1 − α: bettors against x have won 1/α. Each
// multiplies its capital by 1 + λ(x − v), where v is 1, −1 or 0 as the pair counts on the candidate, the baseline, or neither: fair or worse if the mean of
// v is x or more (Waudby-Smith and Ramdas, Estimating means of bounded random variables by betting, Journal of the Royal Statistical Society B 86(1),
// 2024). It holds without a variance: where no request fails, a number of pairs is needed all the same. A pair that counts on both sides is taken for
// two, which makes it harder.
func (t Tally) excludes(x, alpha float64) bool {
	candidate, baseline := float64(t.Candidate), float64(t.Baseline)
	neither := max(0, float64(t.Pairs)-candidate-baseline)
	capital := math.Inf(-1)
	for _, stake := range pairStakes {
		ln := candidate*math.Log1p(stake*(x-1)) + baseline*math.Log1p(stake*(x+1)) + neither*math.Log1p(stake*x)
		capital = addLog10(capital, ln/math.Ln10)
	}
	return capital-math.Log10(float64(len(pairStakes))) >= -math.Log10(alpha)
}

// upper is the least bound from 0 on that the pairs exclude; +Inf: there is none.
func (t Tally) upper(alpha float64) float64 {
	low, high := 0.0, 1.0 // low is not excluded, high is
	switch {
	case t.excludes(low, alpha):
		return low
	case !t.excludes(high, alpha):
		return math.Inf(1)
	}
	return stats.Bisect(low, high, 20, func(x float64) bool { return t.excludes(x, alpha) })
}

func (t Tally) times(factor float64) Tally {
	scaled := func(n int64) int64 { return int64(math.Round(factor * float64(n))) }
	return Tally{scaled(t.Baseline), scaled(t.Candidate), scaled(t.Pairs)}
}

// upper is a bound of a share's excess: the greater one of the bound over blocks and that over pairs.
func (t *test) upper(o *Options) float64 {
	alpha := t.alpha(o)
	return max(t.Excess.upper(alpha), t.All.upper(alpha))
}

// isWithin says whether the excess of a share is surely within its tolerance, after so many times as many blocks like those so far.
func (t *test) isWithin(factor float64, o *Options) bool {
	alpha := t.alpha(o)
	return t.Excess.times(factor).upper(alpha) <= t.threshold && t.All.times(factor).excludes(t.threshold, alpha)
}

// maxFactor bounds how far ahead the need of pairs is estimated.
const maxFactor = 1 << 14

// excessToPass is how many more blocks like those so far bring the bound of a share's excess to its tolerance; −1: they never do.
func (t *test) excessToPass(o *Options) int64 {
	switch {
	case t.Excess.Blocks < excessLeast:
		return excessLeast - t.Excess.Blocks
	case !t.isWithin(maxFactor, o):
		return -1
	}
	octaves := stats.Bisect(0, math.Log2(maxFactor), 40, func(v float64) bool { return t.isWithin(math.Exp2(v), o) })
	return max(1, int64(math.Ceil((math.Exp2(octaves)-1)*float64(t.Excess.Blocks))))
}
