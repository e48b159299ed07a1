package sim

import (
	"math"
	"time"
)

// A pace is the noise of one request: factors of its prefill time and of the time of each further token.
type pace struct{ prefill, decode float64 }

// even is the pace of all requests without Jitter and SlowShare.
var even = pace{1, 1}

// pace draws the noise of a request from the seed and its id. The draws are apart from those of faults, words and lengths, so an answer has
// the same text with and without noise.
func (o *Options) pace(id string) pace {
	if o.Jitter == 0 && o.SlowShare == 0 {
		return even
	}
	r := draws(^o.Seed, id)
	p := pace{math.Exp(o.Jitter * r.NormFloat64()), math.Exp(o.Jitter * r.NormFloat64())}
	if r.Float64() < o.SlowShare {
		p.prefill *= o.SlowFactor
		p.decode *= o.SlowFactor
	}
	return p
}

func scale(d time.Duration, factor float64) time.Duration {
	if factor == 1 {
		return d // exact
	}
	return seconds(d.Seconds() * factor)
}
