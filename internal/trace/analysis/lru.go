package analysis

import (
	"slices"
	"sort"

	"replayd/internal/trace/prefix"
)

// LRU is what prefix caches of every size hit in a trace, each of a fixed number of blocks, least recently used out first.
//
// A block is a prefix: the same id behind other ids is another block. When a row comes, its blocks hit from the front
// until the first that is not in the cache. Then all of its blocks are used, its last one first and its first one last: what
// is forgotten first of a prompt is its end, as in vLLM, which frees a request's blocks in reverse. So no block outlives
// the one before it, a block that is in the cache has all before it there too, and "hits" means "is among the N blocks that
// were used last". How many others were used since is the same for every N: one pass gives all sizes exactly (Mattson et al.,
// "Evaluation techniques for storage hierarchies", 1970), in O(log prefixes) a block and 40 bytes a distinct prefix.
//
// Tokens of a hit are those that a row before it had there, as in Prefix: a cache of all prefixes hits Prefix.HitTokens.
type LRU struct {
	blocks, tokens []int64 // hits of a cache of 1, 2, 3 … blocks, until more make no difference
}

// Hits returns the blocks and the tokens that a cache of so many blocks hits.
func (l LRU) Hits(cacheBlocks int) (blocks, tokens int64) {
	i := min(cacheBlocks, len(l.blocks)) - 1
	if i < 0 {
		return 0, 0
	}
	return l.blocks[i], l.tokens[i]
}

// Enough returns the least size, in blocks, that hits the given part of the tokens that a cache of all prefixes hits, 0 to
// 1; 0 where nothing ever hits.
func (l LRU) Enough(part float64) int {
	if len(l.tokens) == 0 {
		return 0
	}
	want := part * float64(l.tokens[len(l.tokens)-1])
	return min(sort.Search(len(l.tokens), func(i int) bool { return float64(l.tokens[i]) >= want }), len(l.tokens)-1) + 1
}

// recency knows how many prefixes were used since each of them was.
type recency struct {
	used  []uint32 // by node: the slot of its last use, from 1; 0: never
	slots []uint32 // by slot, from 1: the node that was used; 0: it was used again since
	marks []uint32 // a Fenwick tree over slots: how many hold a node
	next  int      // slot of the next use
	live  int      // prefixes

	blocks, tokens []int64 // hits by how many prefixes were used since, and itself
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

// before returns how many slots before one hold a node.
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

// compact closes the gaps between slots and leaves room for as many uses as there are prefixes, so that each use pays for
// a constant part of it.
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

// lru returns the curve.
func (r *recency) lru() LRU {
	for i := 1; i < len(r.blocks); i++ {
		r.blocks[i] += r.blocks[i-1]
		r.tokens[i] += r.tokens[i-1]
	}
	return LRU{r.blocks, r.tokens}
}
