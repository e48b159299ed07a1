package main

import (
	"math"
	"math/rand/v2"

	"replayd/internal/canary"
)

const minute, hour = 60.0, 3600.0

// A noise is how two equal servers differ. Each acts on each side on its own. Times are in seconds; 0: none.
type noise struct {
	name    string
	users   users
	drift   drift
	spread  float64 // deviation of the logarithm of a pod's speed, which never changes
	slow    spells  // steps take longer
	slowBy  float64 // share of the engine's time that is taken away
	warm    float64 // how much longer the candidate's steps take at first
	pauses  spells  // the engine does nothing
	errors  float64 // share of the requests that fail
	bursts  spells  // more of them fail
	burstBy float64 // share of the requests that fail in a burst
	network float64 // least delay by the network, Pareto's with exponent 1.5
	cache   float64 // share of a prompt that a full cache spares

	// In so many rollouts of 2 h, at a load, the judge of 9eee7a9 convicted equal servers. Of none: not known. nil: L1.
	seen rate
	at   *load
}

// A drift is an AR(1) of the logarithm of a pod's speed.
type drift struct{ sd, time float64 }

// Users are a server's own sticky sessions: so many at a time. Each has a prompt of its own, which it sends again and
// again.
type users struct {
	sessions  int
	long, gap float64 // mean length of a session, and mean time between its requests
}

// Spells come and go. Their mean length is long, one in each time on average; exact: one in each, as long as any other.
type spells struct {
	long, each float64
	exact      bool
}

const (
	driftTick = 10.0        // seconds for which a drift stays as it is
	warmTime  = 10 * minute // until a cold candidate's excess is 1/e
	emptied   = 30 * minute // from one emptying of a cache to the next
	fillTime  = 10 * minute // until 1/e of a cache is still empty
)

var noises = []noise{
	{name: "independent", seen: rate{1, 500}},
	{name: "1 % errors on both", errors: 0.01, seen: rate{0, 500}},
	{name: "network tails (Pareto)", network: 0.002, seen: rate{0, 500}},
	{name: "stalls of 1 s a minute", pauses: spells{long: 1, each: minute}, seen: rate{1, 500}},
	{name: "stalls of 30 s each 15 min", pauses: spells{long: 30, each: 15 * minute, exact: true}, seen: rate{0, 500}},
	{name: "hangs of 5 min each 2 h", pauses: spells{long: 5 * minute, each: 2 * hour, exact: true}, seen: rate{0, 500}},
	{
		name: "throttling by 12 %, 10 min of each hour", slow: spells{10 * minute, hour, true},
		slowBy: 0.12, seen: rate{0, 500},
	},
	{name: "60 sessions of 15 min, each 30 s", users: users{60, 15 * minute, 30}, seen: rate{34, 500}},
	{name: "20 sessions of 30 min, each 10 s", users: users{20, 30 * minute, 10}, seen: rate{148, 500}},
	{name: "200 sessions of 15 min, each 100 s", users: users{200, 15 * minute, 100}, seen: rate{4, 500}},
	{name: "1,000 sessions of 15 min, each 500 s", users: users{1000, 15 * minute, 500}, seen: rate{0, 500}},
	{name: "60 sessions of 5 min, each 30 s", users: users{60, 5 * minute, 30}, seen: rate{4, 500}},
	{name: "100 sessions of 15 min, each 20 s", users: users{100, 15 * minute, 20}, seen: rate{21, 300}, at: &fastL1},
	{name: "drift 3 %, 10 min", drift: drift{0.03, 10 * minute}, seen: rate{13, 500}},
	{name: "drift 5 %, 10 min", drift: drift{0.05, 10 * minute}, seen: rate{49, 500}},
	{name: "drift 5 %, 60 min", drift: drift{0.05, hour}, seen: rate{115, 500}},
	{name: "neighbor 20 %, 10 min each 2 h", slow: spells{10 * minute, 2 * hour, false}, slowBy: 0.2, seen: rate{16, 500}},
	{name: "neighbor 10 %, 10 min each 2 h", slow: spells{10 * minute, 2 * hour, false}, slowBy: 0.1, seen: rate{16, 500}},
	{name: "neighbor 30 %, 15 min each 6 h", slow: spells{15 * minute, 6 * hour, false}, slowBy: 0.3, seen: rate{14, 500}},
	{
		name: "bursts of 5 % errors, 15 min each 6 h", bursts: spells{15 * minute, 6 * hour, false},
		burstBy: 0.05, seen: rate{18, 500},
	},
	{name: "hardware 1 %", spread: 0.01, seen: rate{0, 500}},
	{name: "hardware 2 %", spread: 0.02, seen: rate{20, 500}},
	{name: "hardware 3 %", spread: 0.03, seen: rate{71, 500}},
	{name: "warm-up of the candidate, 20 %, 10 min", warm: 0.2, seen: rate{500, 500}},
	{name: "prefix caches, emptied each 30 min", cache: 0.3},
}

// noiseOf returns the noise of a name.
func noiseOf(name string) noise {
	for _, n := range noises {
		if n.name == name {
			return n
		}
	}
	panic("no noise " + name)
}

// A clock says how fast a pod is. Its instants never go back.
type clock struct {
	rng                  *rand.Rand
	noise                *noise
	constant, warm       float64
	level, nextTick, rho float64
	slow, pauses         calendar
	emptied              float64 // how long ago the cache was, at first
}

func newClock(n *noise, side canary.Side, slower float64, rng *rand.Rand) *clock {
	c := &clock{rng: rng, noise: n, constant: slower * math.Exp(n.spread*rng.NormFloat64())}
	if side == canary.Candidate {
		c.warm = n.warm
	}
	c.level = n.drift.sd * rng.NormFloat64()
	c.nextTick, c.rho = driftTick, math.Exp(-driftTick/max(n.drift.time, 1))
	c.slow, c.pauses = newCalendar(n.slow, rng), newCalendar(n.pauses, rng)
	c.emptied = emptied * rng.Float64()
	return c
}

// factor is how many times as long as on an undisturbed engine steps take at an instant.
func (c *clock) factor(at float64) float64 {
	f := c.constant
	if sd := c.noise.drift.sd; sd > 0 {
		for ; c.nextTick <= at; c.nextTick += driftTick {
			c.level = c.rho*c.level + sd*math.Sqrt(1-c.rho*c.rho)*c.rng.NormFloat64()
		}
		f *= math.Exp(c.level)
	}
	if c.slow.isOn(at, c.rng) {
		f /= 1 - c.noise.slowBy
	}
	if c.warm > 0 {
		f *= 1 + c.warm*math.Exp(-at/warmTime)
	}
	return f
}

// pause is how long the engine does nothing from an instant on.
func (c *clock) pause(at float64) float64 {
	if c.pauses.isOn(at, c.rng) {
		return c.pauses.end - at
	}
	return 0
}

// computed is the share of a prompt that the cache does not spare.
func (c *clock) computed(at float64) float64 {
	return 1 - c.noise.cache*(1-math.Exp(-math.Mod(at+c.emptied, emptied)/fillTime))
}

// A calendar has the present spell, or the next one.
type calendar struct {
	spells
	begin, end float64
}

// newCalendar begins at any time of the spells: maybe within one.
func newCalendar(s spells, rng *rand.Rand) calendar {
	c := calendar{s, math.Inf(1), math.Inf(1)}
	switch {
	case s.each == 0:
	case s.exact:
		c.begin = s.each*rng.Float64() - s.long
		c.end = c.begin + s.long
	case rng.Float64() < s.long/s.each:
		c.begin, c.end = 0, s.long*rng.ExpFloat64()
	default:
		c.begin = (s.each - s.long) * rng.ExpFloat64()
		c.end = c.begin + s.long*rng.ExpFloat64()
	}
	return c
}

// isOn says whether a spell lasts at an instant, which is not before the one of the last call.
func (c *calendar) isOn(at float64, rng *rand.Rand) bool {
	for at >= c.end {
		if c.exact {
			c.begin, c.end = c.begin+c.each, c.end+c.each
			continue
		}
		c.begin = c.end + (c.each-c.long)*rng.ExpFloat64()
		c.end = c.begin + c.long*rng.ExpFloat64()
	}
	return at >= c.begin
}
