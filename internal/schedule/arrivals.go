package schedule

import "time"

// arrivals yields the instants of a loop's rows at a rate, in order.
//
// A row is due when the integral of the rate reaches the row's count: 1, 2, 3 … with Constant, 0, 1, 2 … with Users, and the sum
// of drawn gaps with mean 1 with Poisson and Gamma. So the first row comes after the first gap, as in AIPerf
// (src/aiperf/timing/strategies/request_rate.py) and in vLLM's bench (vllm/benchmarks/serve.py, which then scales the gaps to
// their exact mean; this package does not), and the first user comes at once, as in AIPerf (user_centric_rate.py). Gaps depend
// on the seed only: row i has the same instant in every loop, every process and every shard.
type arrivals struct {
	rate     profile
	gaps     *gammaGaps // nil: all are 1
	expected float64    // integral of the rate at the next row's instant
}

func (p *Plan) arrivals() *arrivals {
	a := &arrivals{rate: p.rate}
	switch p.o.Arrival {
	case Poisson:
		a.gaps = newGammaGaps(1, p.o.Seed)
	case Gamma:
		a.gaps = newGammaGaps(p.o.Burstiness, p.o.Seed)
	case Users:
		return a
	}
	a.expected = a.gap()
	return a
}

func (a *arrivals) gap() float64 {
	if a.gaps == nil {
		return 1
	}
	return a.gaps.next()
}

// next returns the next row's time after the loop's start; ok is false if that row never comes.
func (a *arrivals) next() (at time.Duration, ok bool) {
	at, ok = a.rate.at(a.expected)
	a.expected += a.gap()
	return at, ok
}

// within reports whether a row at a time after its loop's start is part of the loop.
func (p *Plan) within(at time.Duration) bool {
	return p.o.Duration == 0 || at < p.o.Duration || at == p.o.Duration && p.o.byGaps()
}

// maxRows bounds the rows of a loop at a rate, because New counts each of them.
const maxRows = 100_000_000

// countArrivals sets the number of rows of a loop, at most the given number (0: any), and the instant of the last row. It returns
// the loop's own length: the time until the row after its last one would be due, less the gap at the begin of the next loop; or
// the time until Duration or the end of the rate if that ends the loop.
func (p *Plan) countArrivals(most int) (natural time.Duration, err error) {
	a := p.arrivals()
	at, ok := a.next()
	p.first = at
	for ok && (most == 0 || p.rows < most) && p.within(at) {
		if p.rows == maxRows {
			return 0, faulty("synthetic.requests", "want at most %d rows in a loop, got more", maxRows)
		}
		if p.rows > 0 {
			p.gaps += gap(at - p.length)
		}
		p.length = at
		p.rows++
		at, ok = a.next()
	}
	all := most > 0 && p.rows == most
	last := p.rate[len(p.rate)-1]
	end, ends := last.begin, last.to == 0 // with rate 0 nothing is due any more
	switch {
	case all && p.o.byGaps():
		return max(1, p.length), nil
	case all:
		return max(at, p.length+1), nil
	case p.o.Duration > 0 && ends:
		natural = min(p.o.Duration, end)
	case p.o.Duration > 0:
		natural = p.o.Duration
	case ends:
		natural = end
	default:
		return 0, faulty("rate", "want one at which a loop lasts at most %v, got %v", Longest, p.o.Rate)
	}
	if p.rows == 0 {
		return 0, faulty("rate", "want a loop with a row in it, got none in %v", natural)
	}
	return natural, nil
}
