package analysis

import (
	"slices"

	"replayd/internal/trace/prefix"
)

// LRU holds the hits of prefix caches of every size on a trace. Each cache has a fixed number of blocks and evicts the
// least recently used one.
//
// A block is a prefix: the same id after other ids is another block. The blocks of a row hit from the front up to the
// first block that is not in the cache. Then the row uses all of its blocks, from the last to the first, so the end of
// a prompt is evicted first. vLLM does the same: it frees a request's blocks in reverse. Therefore no block outlives
// the block before it, and if a block is in the cache, all blocks before it are. A block hits a cache of N blocks if it
// is among the N blocks used last. The number of other blocks used since is the same for every N, so one pass gives all
// sizes exactly (Mattson et al., "Evaluation techniques for storage hierarchies", 1970), in O(log prefixes) per block
// and 40 bytes per distinct prefix.
//
// The tokens of a hit are the tokens that an earlier row had there, as in Prefix. A cache of all prefixes hits
// Prefix.HitTokens.
type LRU struct {
	blocks, tokens []int64 // hits of a cache of 1, 2, 3 … blocks, up to the size beyond which hits do not grow
}

// Hits returns the blocks and the tokens that a cache of cacheBlocks blocks hits.
func (l LRU) Hits(cacheBlocks int) (blocks, tokens int64) {
	i := min(cacheBlocks, len(l.blocks)) - 1
	if i < 0 {
		return 0, 0
	}
	return l.blocks[i], l.tokens[i]
}

// recency counts how many prefixes were used since the last use of each prefix.
type recency struct {
	used  []uint32 // by node: the slot of its last use, from 1; 0: never
	slots []uint32 // by slot, from 1: the node that was used; 0 if it was used again since
	marks []uint32 // Fenwick tree over slots: how many hold a node
	next  int      // slot of the next use
	live  int      // number of prefixes used

	blocks, tokens []int64 // hits by the number of prefixes used since, including the prefix itself
}

func newRecency() *recency { return &recency{next: 1} }

// add counts the hits of a row, then uses its blocks.
func (r *recency) add(row []prefix.Step) {
	for _, s := range row {
		if int(s.Node) >= len(r.used) || r.used[s.Node] == 0 {
			break
		}
		rank := r.live - r.before(r.used[s.Node])
		for len(r.blocks) < rank {
			r.blocks, r.tokens = prefix.Push(r.blocks, 0), prefix.Push(r.tokens, 0)
		}
		r.blocks[rank-1]++
		r.tokens[rank-1] += int64(s.Known)
	}
	if r.next+len(row) > len(r.slots) {
		r.compact(len(row))
	}
	for _, s := range slices.Backward(row) {
		r.use(s.Node)
	}
}

// before returns how many earlier slots hold a node.
func (r *recency) before(slot uint32) (n int) {
	for i := slot - 1; i > 0; i &= i - 1 {
		n += int(r.marks[i])
	}
	return n
}

func (r *recency) use(node uint32) {
	for int(node) >= len(r.used) {
		r.used = prefix.Push(r.used, 0)
	}
	if last := r.used[node]; last != 0 {
		r.slots[last] = 0
		r.mark(int(last), ^uint32(0))
	} else {
		r.live++
	}
	r.slots[r.next] = node
	r.used[node] = uint32(r.next)
	r.mark(r.next, 1)
	r.next++
}

func (r *recency) mark(slot int, by uint32) {
	for i := slot; i < len(r.marks); i += i & -i {
		r.marks[i] += by
	}
}

// compact closes the gaps between slots. It leaves room for as many uses as there are prefixes, so that the amortized
// cost per use is constant.
func (r *recency) compact(more int) {
	slots := make([]uint32, 1, max(2*r.live, 4096)+more+1)
	for _, node := range r.slots[:min(r.next, len(r.slots))] {
		if node != 0 {
			r.used[node] = uint32(len(slots))
			slots = append(slots, node)
		}
	}
	r.next = len(slots)
	r.slots = slots[:cap(slots)]
	r.marks = slices.Grow(r.marks[:0], len(r.slots))[:len(r.slots)]
	clear(r.marks)
	for i := 1; i < len(r.marks); i++ {
		if i < r.next {
			r.marks[i]++
		}
		if up := i + i&-i; up < len(r.marks) {
			r.marks[up] += r.marks[i]
		}
	}
}

func (r *recency) lru() LRU {
	for i := 1; i < len(r.blocks); i++ {
		r.blocks[i] += r.blocks[i-1]
		r.tokens[i] += r.tokens[i-1]
	}
	return LRU{r.blocks, r.tokens}
}
