package canary

import "time"

// A spell is the latest consecutive pairs for which something holds on one side.
type spell struct {
	since time.Time // planned instant of the first
	pairs int
	both  int // pairs for which it held on the other side too
}

func (s *spell) add(at time.Time, holds, other bool) {
	if !holds {
		*s = spell{}
		return
	}
	if s.pairs++; s.pairs == 1 {
		s.since = at
	}
	if other {
		s.both++
	}
}

func (s *spell) lasts(at time.Time, pairs int, long time.Duration) bool {
	return s.pairs >= pairs && at.Sub(s.since) >= long
}

// A trouble keeps a side from ever having an instant without a queue. Without a rule of its own, no block would end then.
type trouble struct {
	down   spell // it answers nothing
	behind spell // each request meets a queue
}

// behindTimes is how many blocks long a side is behind, before blocks end all the same.
const behindTimes = 10

// observe adds a pair. A void one says nothing.
func (c *Comparison) observe(p *Pair, queued [2]bool) {
	if p.Void != NotVoid {
		return
	}
	var silent [2]bool
	for side, r := range p.Requests {
		silent[side] = r.E2E == 0 && r.First.IsZero()
	}
	for side := range c.troubles {
		t := &c.troubles[side]
		t.down.add(p.At, silent[side], silent[1-side])
		t.behind.add(p.At, queued[side], queued[1-side])
	}
}

// isDown says whether a side has answered nothing for as long as a block lasts: then its requests wait, and there is no queue.
func (c *Comparison) isDown(side Side, at time.Time) bool {
	return c.troubles[side].down.lasts(at, c.options.MinPairs, c.options.MinTime)
}

// isBehind says whether a side has long had a queue at every instant, and the other side at most at half of them: it does not carry a load that the
// other one carries. Of two equal servers at their limit both have a queue.
func (c *Comparison) isBehind(side Side, at time.Time) bool {
	s := &c.troubles[side].behind
	return 2*s.both <= s.pairs && s.lasts(at, behindTimes*c.options.MinPairs, behindTimes*max(c.options.MinTime, time.Second))
}
