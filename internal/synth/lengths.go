package synth

import (
	"math"
	"math/rand/v2"

	"replayd/internal/fault"
	"replayd/internal/trace"
)

// A Normal is a normal distribution without negative values: a negative value is drawn again, as AIPerf does
// (src/aiperf/common/random_generator.py). If Stddev is not small compared with Mean, the mean of the draws is larger.
type Normal struct{ Mean, Stddev float64 }

// tries bounds how often a value is drawn again. As Mean is not negative, half of them are good.
const tries = 100

func (d Normal) draw(rng *rand.Rand) float64 {
	if d.Stddev <= 0 {
		return d.Mean
	}
	for range tries {
		// The conversion keeps a compiler from fusing the two operations, which would round elsewhere.
		if x := d.Mean + float64(d.Stddev*rng.NormFloat64()); x >= 0 {
			return x
		}
	}
	return d.Mean
}

// whole draws an integer from 1 to most. It is rounded to the nearest, where AIPerf rounds up: so the mean is Mean.
func (d Normal) whole(rng *rand.Rand, most int) int {
	return int(max(1, min(math.Round(d.draw(rng)), float64(most))))
}

// check wants a mean from least to most.
func (d Normal) check(f *fault.List, mean, stddev string, least, most float64) {
	if !(d.Mean >= least && d.Mean <= most) { // true for NaN, too
		f.Add(mean, "want a mean of %.0f to %.0f, got %v", least, most, d.Mean)
	}
	f.If(!(d.Stddev >= 0 && d.Stddev <= most), stddev, "want a standard deviation of 0 to %.0f, got %v", most, d.Stddev)
}

// A Pair is one kind of request in a mixture.
type Pair struct {
	Input, Output Normal  // tokens
	Weight        float64 // share = Weight ÷ sum of all weights
}

func pick(pairs []Pair, rng *rand.Rand) *Pair {
	total := 0.0
	for _, p := range pairs {
		total += p.Weight
	}
	x := rng.Float64() * total
	last := 0
	for i, p := range pairs {
		if p.Weight == 0 {
			continue
		}
		if last = i; x < p.Weight {
			break
		}
		x -= p.Weight
	}
	return &pairs[last]
}

// maxTokens bounds every mean and deviation of tokens.
const maxTokens = float64(trace.MaxTokens)
