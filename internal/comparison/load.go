package comparison

import "math"

// A load is the output tokens of a side since the epoch began: those of the engine, and those of replayd's own answers.
type load struct {
	seen       bool
	known      bool    // now: the pages are read, and count them
	first, now float64 // tokens of the engine, as its pages count them
	own        float64
}

func (l *load) see(e Engine) {
	if l.known = e.Generates; !l.known {
		return
	}
	if !l.seen || e.Generated < l.now { // or the pages are read anew
		l.first, l.seen, l.own = e.Generated, true, 0
	}
	l.now = e.Generated
}

// leastTokens is how many output tokens the share of others takes. The page counts a request when it ends, or earlier.
const leastTokens = 10_000

// others is the share of the engine's output tokens that other clients have got; NaN: it is not known.
func (l *load) others() float64 {
	all := l.now - l.first
	if !l.known || all < leastTokens {
		return math.NaN()
	}
	return max(0, all-l.own) / all
}
