package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// An engine's figures that all loads share, and the noise of single requests. They are such that the loads show the
// findings' figures, and the noises its rates.
const (
	stepSeconds  = 0.0035 // of a step without tokens
	chunkTokens  = 256    // prompt tokens of a step
	networkTime  = 0.025  // seconds that each first token takes besides
	requestNoise = 0.035  // deviation of the logarithm of a request's prefill
	stepNoise    = 0.02   // deviation of a step's length
	mostJump     = 1.0    // seconds of steps that are taken at once
)

// A job is a request at a pod.
type job struct {
	at     float64 // seconds
	tokens float64 // of the prompt, as many as its prefill takes the time of
	output int     // tokens
	row    int     // of the replayed requests; −1: another user's
}

// An answered request has the instants of its first and its last token, in seconds; 0: not yet.
type answered struct{ first, last float64 }

// A pod is an engine that answers in steps: each computes a chunk of the prompts that wait, in order, and a token of
// each answer in the batch.
type pod struct {
	load     *load
	decode   float64 // factor of what a step takes besides prompts
	clock    *clock
	rng      *rand.Rand
	now      float64
	steps    int64
	inbox    []job      // not yet sent
	waiting  []job      // for their first token
	decoding []seat     // in order of their ends
	out      []answered // by row
}

// run goes on until an instant.
func (p *pod) run(until float64) {
	for p.now < until {
		for len(p.inbox) > 0 && p.inbox[0].at <= p.now {
			p.waiting, p.inbox = append(p.waiting, p.inbox[0]), p.inbox[1:]
		}
		p.now += p.clock.pause(p.now)
		switch {
		case len(p.waiting) > 0:
			p.mixed()
		case len(p.decoding) > 0:
			p.decodeOnly(until)
		case len(p.inbox) > 0 && p.inbox[0].at < until:
			p.now = max(p.now, p.inbox[0].at)
		default:
			p.now = max(p.now, until)
		}
	}
}

// step is the length of a step without prompts.
func (p *pod) step() float64 {
	return p.decode * (stepSeconds + p.load.perDecode*float64(len(p.decoding)))
}

// mixed is a step with prompts.
func (p *pod) mixed() {
	budget, tokens, whole := float64(chunkTokens), 0.0, 0
	for i := range p.waiting {
		j := &p.waiting[i]
		part := min(j.tokens, budget)
		j.tokens -= part
		budget -= part
		tokens += part
		if j.tokens > 0 {
			break
		}
		whole++
	}
	p.pass(1, p.length(1, p.step()+tokens/p.load.prefill))
	for _, j := range p.waiting[:whole] {
		if j.row >= 0 {
			p.out[j.row].first = p.now
		}
		if j.output > 1 {
			s := seat{p.steps + int64(j.output) - 1, j.row}
			place, _ := slices.BinarySearchFunc(p.decoding, s, func(a, b seat) int { return cmp.Compare(a.end, b.end) })
			p.decoding = slices.Insert(p.decoding, place, s)
		} else if j.row >= 0 {
			p.out[j.row].last = p.now
		}
	}
	p.waiting = p.waiting[whole:]
}

// decodeOnly takes the steps until an answer ends, a request comes or the clock may have changed.
func (p *pod) decodeOnly(until float64) {
	step := p.step()
	if len(p.inbox) > 0 {
		until = min(until, p.inbox[0].at)
	}
	ahead := min(until-p.now, mostJump)
	step = p.length(max(1, ahead/step), step)
	p.pass(min(max(1, int64(math.Ceil(ahead/step))), p.decoding[0].end-p.steps), step)
}

// length is the mean length of some steps, with noise.
func (p *pod) length(steps, undisturbed float64) float64 {
	return undisturbed * p.clock.factor(p.now) * max(0.1, 1+stepNoise/math.Sqrt(steps)*p.rng.NormFloat64())
}

// pass ends steps.
func (p *pod) pass(steps int64, length float64) {
	p.now += float64(steps) * length
	p.steps += steps
	for ; len(p.decoding) > 0 && p.decoding[0].end <= p.steps; p.decoding = p.decoding[1:] {
		if row := p.decoding[0].row; row >= 0 {
			p.out[row].last = p.now
		}
	}
}

// A seat is an answer in the batch, until a step.
type seat struct {
	end int64
	row int
}
