package main

import (
	"math/rand/v2"

	"replayd/internal/canary"
	"replayd/internal/sim"
)

// An effect is a fault of the candidate.
type effect struct {
	name   string
	change func(o *sim.Options)
	errors float64 // share of its requests that fail
}

func slower(prefill, decode float64) func(o *sim.Options) {
	return func(o *sim.Options) { o.PrefillRate /= prefill; o.DecodeRate /= decode }
}

// rare makes a share of the requests a number of times as long.
func rare(share, factor float64) func(o *sim.Options) {
	return func(o *sim.Options) { o.SlowShare, o.SlowFactor = share, factor }
}

var effects = []effect{
	{"equal", slower(1, 1), 0},
	{"prefill 2 % slower", slower(1.02, 1), 0},
	{"prefill 5 % slower", slower(1.05, 1), 0},
	{"prefill 10 % slower", slower(1.1, 1), 0},
	{"prefill 20 % slower", slower(1.2, 1), 0},
	{"decode 2 % slower", slower(1, 1.02), 0},
	{"decode 5 % slower", slower(1, 1.05), 0},
	{"decode 10 % slower", slower(1, 1.1), 0},
	{"decode 20 % slower", slower(1, 1.2), 0},
	{"all 2 % slower", slower(1.02, 1.02), 0},
	{"all 3 % slower", slower(1.03, 1.03), 0},
	{"all 5 % slower", slower(1.05, 1.05), 0},
	{"all 10 % slower", slower(1.1, 1.1), 0},
	{"all 20 % slower", slower(1.2, 1.2), 0},
	{"3 % of requests 3 times as long", rare(0.03, 3), 0},
	{"2 % of requests 6 times as long", rare(0.02, 6), 0}, // p99 of e2e doubles,
	{"2 % more errors", slower(1, 1), 0.02},
	{"1 % more errors", slower(1, 1), 0.01},
	{"0.1 % more errors", slower(1, 1), 0.001},
}

// effectOf returns the effect of a name.
func effectOf(name string) (effect, bool) {
	for _, e := range effects {
		if e.name == name {
			return e, true
		}
	}
	return effect{}, false
}

// spoil makes the candidate's request fail, with the chance of the effect.
func (e *effect) spoil(p *canary.Pair, rng *rand.Rand) {
	if r := &p.Requests[canary.Candidate]; e.errors > 0 && rng.Float64() < e.errors {
		*r = canary.Request{Sent: r.Sent, End: r.First, Bad: true}
	}
}
