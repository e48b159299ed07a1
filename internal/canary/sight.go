package canary

import (
	"time"
)

// A Sight is pairs, by how much they say about latencies.
type Sight struct {
	Pairs  int64 `json:"pairs"`
	Void   int64 `json:"void"`
	Valued int64 `json:"valued"` // judged pairs with latencies on both sides
	Calm   int64 `json:"calm"`   // of those, pairs that met no queue
	Queued int64 `json:"queued"` // judged pairs that met a queue on either side
}

// valued reports whether a pair is judged and has latencies on both sides.
func (p *Pair) valued() bool {
	return p.Void == NotVoid && p.Requests[Baseline].E2E > 0 && p.Requests[Candidate].E2E > 0
}

func (s *Sight) add(p *Pair, queued [2]bool) {
	s.Pairs++
	if p.Void != NotVoid {
		s.Void++
		return
	}
	if queued != [2]bool{} {
		s.Queued++
	}
	if p.valued() {
		s.Valued++
		if queued == [2]bool{} {
			s.Calm++
		}
	}
}

func (s Sight) plus(other Sight) Sight {
	return Sight{
		s.Pairs + other.Pairs, s.Void + other.Void, s.Valued + other.Valued, s.Calm + other.Calm, s.Queued + other.Queued,
	}
}

// A sight is what a comparison sees of latencies since the evidence about them began. A comparison that sees nothing is blind. It does not say that
// nothing has changed.
type sight struct {
	// Begun and Missed are of a comparison that was restored: how long before the next pair begin and since are.
	SightSnapshot

	// of the first pair at all, and of the first one since the latest useful block; zero: the next pair sets them
	begin, since time.Time
	answered     time.Time // of the latest judged pair with latencies; zero: there is none, or it was before a restore
}

// meet sets the instants of a comparison that has begun, or goes on.
func (s *sight) meet(at time.Time) {
	if s.begin.IsZero() {
		s.begin = at.Add(-s.Begun)
	}
	if s.since.IsZero() {
		s.since = at.Add(-s.Missed)
		s.Missed = 0
	}
}

// end adds a block that ends at an instant. useful says whether it has given bits for latencies.
func (s *sight) end(block Sight, useful bool, at time.Time) {
	s.Unseen = s.Unseen.plus(block)
	if !useful {
		return
	}
	s.Seen, s.Unseen = s.Seen.plus(s.Unseen), Sight{}
	s.since = time.Time{}
	s.Useful++
	s.Took = at.Sub(s.begin)
}

// blockTime is the mean time of a block with bits for latencies, those without them included; 0: there is none.
func (s *sight) blockTime() time.Duration {
	if s.Useful == 0 {
		return 0
	}
	return s.Took / time.Duration(s.Useful)
}

// calmShare is the share of the pairs with latencies that met no queue; NaN: there are none.
func (s *sight) calmShare() float64 {
	all := s.Seen.plus(s.Unseen)
	return float64(all.Calm) / float64(all.Valued)
}

const (
	blindBlocks = 2 // blocks' time without one for latencies: the one that is due, and one more
	usualBlocks = 4 // the same, in times that such blocks have taken so far
)

// blind says why the comparison sees nothing of latencies at present, by the pairs since the latest block that did; "": it sees, or no block is due yet.
func (c *Comparison) blind() (Reason, Sight) {
	s, block := c.sight.Unseen.plus(c.block.sight), max(c.options.MinTime, time.Second)
	limit := max(blindBlocks*block, usualBlocks*c.sight.blockTime())
	if s.Pairs < blindBlocks*int64(c.options.MinPairs) || c.sight.since.IsZero() || c.last.Sub(c.sight.since) < limit {
		return "", s
	}
	judged := s.Pairs - s.Void
	switch {
	case float64(s.Void) > maxVoid*float64(s.Pairs):
		return TooVoid, s
	case 2*s.Queued >= judged:
		return Queues, s
	case c.last.Sub(later(c.sight.answered, c.sight.since)) >= blindBlocks*block:
		return NoValues, s
	}
	return FewCalm, s
}

// An overall has the ratios of a latency in judged pairs, also in those that met a queue, as countRatio counts them: to
// 20 times. They are shown beside those that are judged.
type overall [2*overallCells + 1]int64

const (
	overallCells = 300
	overallStep  = 0.01
)
