package schedule

import (
	"math"
	"time"
)

// A Stage takes the rate to another: from what it was before, Options.Rate at first. From 0 to 100 a second in a minute,
// there for two, then 200 at once is
//
//	[]Stage{{Rate: 100, Over: time.Minute, Hold: 2 * time.Minute}, {Rate: 200}}
//
// with Options.Rate 0. The last stage's rate stays; with rate 0 nothing is due any more.
type Stage struct {
	Rate float64       `koanf:"rate"` // requests per second at the end of Over
	Over time.Duration `koanf:"over"` // time of the linear change to Rate; 0: at once
	Hold time.Duration `koanf:"hold"` // time at Rate before the next stage; the last stage has none
}

// A profile is a rate as a function of time, and the count of requests that it makes expected: its integral, in pieces that
// are straight lines.
type profile []piece

type piece struct {
	begin    time.Duration
	before   float64 // requests expected until begin
	from, to float64 // rate at its two ends, per second
	seconds  float64 // from one to the other; +Inf for the last piece
}

func newProfile(rate float64, stages []Stage) profile {
	var p profile
	var begin time.Duration
	before := 0.0
	add := func(from, to float64, length time.Duration) {
		s := float64(length) / float64(time.Second)
		p = append(p, piece{begin, before, from, to, s})
		begin += length
		before += float64((from + to) / 2 * s)
	}
	for _, s := range stages {
		if s.Over > 0 {
			add(rate, s.Rate, s.Over)
		}
		if rate = s.Rate; s.Hold > 0 {
			add(rate, rate, s.Hold)
		}
	}
	return append(p, piece{begin, before, rate, rate, math.Inf(1)})
}

// at returns the first instant at which the integral of the rate reaches a count, to the nearest nanosecond if that is 13 days
// (2⁵⁰ ns) or less after the begin of its piece; ok is false if that is never, or beyond Longest.
func (p profile) at(count float64) (at time.Duration, ok bool) {
	for len(p) > 1 && count > p[1].before {
		p = p[1:]
	}
	within := math.Round(p[0].nanoseconds(count - p[0].before))
	if !(within <= float64(Longest)) { // in this form NaN is none either
		return 0, false
	}
	at = p[0].begin + time.Duration(within)
	return at, at <= Longest
}

// nanoseconds returns the time from the piece's begin until the integral has grown by more.
func (p *piece) nanoseconds(more float64) float64 {
	const second = 1e9
	switch {
	case more <= 0:
		return 0
	case p.from == p.to:
		return more * second / p.from // one rounding where more is whole, and a division
	}
	// from t + slope t² / 2 = more, solved for t in the form that loses no digits.
	slope := (p.to - p.from) / p.seconds
	root := math.Sqrt(max(0, float64(p.from*p.from)+float64(2*slope*more)))
	return min(2*more/(p.from+root), p.seconds) * second
}
