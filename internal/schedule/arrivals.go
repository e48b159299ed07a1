package schedule

import "time"

// arrivals are the instants of a loop's rows at a rate, one after the other.
//
// A row is due when as many requests are expected as its place among the rows says: with Constant 1, 2, 3 …, with Users
// 0, 1, 2 …, with Poisson and Gamma after gaps that are drawn, of 1 in the mean. So the first row comes after the first gap,
// as in AIPerf (src/aiperf/timing/strategies/request_rate.py) and in vLLM's bench (vllm/benchmarks/serve.py, which then
// stretches its gaps so that they make the mean exactly; nothing is stretched here), and the first user at once, as in
// AIPerf (user_centric_rate.py). Gaps are drawn by the seed and nothing else: row i has the same instant in every loop, in
// every process, and of every shard.
type arrivals struct {
	rate     profile
	gaps     *gammaGaps // nil: all are 1
	expected float64    // requests at the next row's instant
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

// next is the next row's time after the loop's start; not ok where it never comes.
func (a *arrivals) next() (at time.Duration, ok bool) {
	at, ok = a.rate.at(a.expected)
	a.expected += a.gap()
	return at, ok
}

// within says whether a row that is due so long after its loop's start is part of the loop.
func (p *Plan) within(at time.Duration) bool {
	return p.o.Duration == 0 || at < p.o.Duration || at == p.o.Duration && p.afterGap()
}

// afterGap says whether the first row comes after a gap. Such a loop has the instant of its end, and not that of its
// start: it has as many rows as are expected in its time, and the last may be due when the next loop begins.
func (p *Plan) afterGap() bool {
	return p.o.Arrival == Constant || p.o.Arrival == Poisson || p.o.Arrival == Gamma
}

// mostRows bounds the rows of a loop that has instants by a rate; each of them is counted when the plan is made.
const mostRows = 100_000_000

// countArrivals settles how many rows a loop has, at most so many, 0: any number, and when the last is due. It returns how
// long the loop lasts by itself: until the next row would be due after its last one, less the gap that the next loop begins
// with; or until Duration, or the end of the rate, where these cut it off.
func (p *Plan) countArrivals(most int) (natural time.Duration, err error) {
	a := p.arrivals()
	at, ok := a.next()
	for ok && (most == 0 || p.rows < most) && p.within(at) {
		if p.rows == mostRows {
			return 0, faulty("rows, duration", "want at most %d rows in a loop, got more", mostRows)
		}
		p.length = at
		p.rows++
		at, ok = a.next()
	}
	all := most > 0 && p.rows == most
	end, ends := p.rate.ends()
	switch {
	case all && p.afterGap():
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
		return 0, faulty("rate, duration", "want a loop with a row in it, got none in %v", natural)
	}
	return natural, nil
}
