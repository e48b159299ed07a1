package canary

import (
	"cmp"
	"slices"
	"time"
)

// Bounds of a History.
const (
	MostBlocks  = 2000 // of the plots
	MostSlowest = 20   // pairs, of each latency
	MostBad     = 10   // pairs, of each side
)

// A History keeps blocks and pairs for people, in bounded memory. The zero value is empty. It is not safe for concurrent use.
type History struct {
	// Slowest are the calm pairs by how much longer the candidate took, longest first: of each latency those that the verdict is about.
	Slowest [E2E + 1][]Pair
	Bad     [2][]Pair // the first pairs with a bad request, of each side

	blocks []Block // of the numbers 1, 1 + every, 1 + 2·every …
	every  int64
	last   Block
}

// Block adds the block that has ended. After MostBlocks it keeps every second of the blocks so far, and of those to come.
func (h *History) Block(b Block) {
	h.last = b
	h.every = max(1, h.every)
	if (b.Number-1)%h.every != 0 {
		return
	}
	if len(h.blocks) == MostBlocks {
		h.every *= 2
		for i := range MostBlocks / 2 {
			h.blocks[i] = h.blocks[2*i]
		}
		h.blocks = h.blocks[:MostBlocks/2]
	}
	h.blocks = append(h.blocks, b) // the number of blocks is even, so that this one stays in step
}

// Blocks returns the blocks that are kept, in their order, with the latest. Every says that they are every second, or fourth, and so on.
func (h *History) Blocks() (blocks []Block, every int64) {
	blocks = slices.Clone(h.blocks)
	if n := len(blocks); n > 0 && blocks[n-1].Number != h.last.Number {
		blocks = append(blocks, h.last)
	}
	return blocks, max(1, h.every)
}

// Pair looks at a pair after its Add.
func (h *History) Pair(p *Pair) {
	if p.Void != NotVoid {
		return
	}
	for side := range p.Requests {
		if p.Requests[side].Bad && len(h.Bad[side]) < MostBad {
			h.Bad[side] = append(h.Bad[side], *p)
		}
	}
	if !p.Calm {
		return
	}
	for m := range h.Slowest {
		list, excess := h.Slowest[m], p.excess(Metric(m))
		if excess <= 0 || len(list) == MostSlowest && list[MostSlowest-1].excess(Metric(m)) >= excess {
			continue
		}
		at, _ := slices.BinarySearchFunc(list, excess, func(q Pair, d time.Duration) int { return cmp.Compare(d, q.excess(Metric(m))) })
		h.Slowest[m] = slices.Insert(list[:min(len(list), MostSlowest-1)], at, *p)
	}
}

// Latency returns a latency of a request; 0: it has none.
func (r *Request) Latency(m Metric) time.Duration {
	return [...]time.Duration{r.TTFT, r.TPOT, r.E2E}[m]
}

// excess is how much longer a latency of the candidate is; 0 if a side has none.
func (p *Pair) excess(m Metric) time.Duration {
	base, cand := p.Requests[Baseline].Latency(m), p.Requests[Candidate].Latency(m)
	if base == 0 || cand == 0 {
		return 0
	}
	return cand - base
}
