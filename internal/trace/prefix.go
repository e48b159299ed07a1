package trace

import "slices"

// prefixes is the tree of all id sequences. Nearly every id of a real trace has one place in it, so the place stands with
// the id, and only further ones need a map: about 40 bytes a distinct id, and 30 where ids count from 0.
type prefixes struct {
	size int // tokens of a block

	numbers numbers // id to its place in ids
	ids     []knownID
	more    map[place]uint32 // nodes of ids that have several
	nodes   []node           // 0 is the root, above all first ids

	blocks, hitBlocks, hitTokens int64
	reused                       int64 // occurrences of nodes that occurred more than once
	roots, sharedRoots           int
	moved, resized               int
	rows                         int
	fronts                       float64 // sum over rows of the share of ids in front that came before

	row []step // of the row that came last
}

// A step is one block of a row: its place in ids and in nodes, and how many of its tokens a row before it had there.
type step struct {
	number, node uint32
	known        int32 // tokens; 0 where the prefix is new
}

// A share is what of one row came before.
type share struct {
	tokens int64   // that a cache which never forgets would hit
	front  float64 // part of its ids, counted from the front, that came before anywhere
}

// A knownID is an id that occurred: its first place in the tree, and its length there.
type knownID struct {
	parent, node   uint32
	tokens         int32
	moved, resized bool
}

type place struct{ parent, id uint32 }

// A node is one distinct prefix.
type node struct {
	longest int32 // tokens of its last block, at most
	again   bool  // it occurred more than once
}

func newPrefixes(size int) prefixes {
	return prefixes{size: size, more: map[place]uint32{}, nodes: make([]node, 1)}
}

// add takes a row's ids, of which there are as many as its tokens have blocks.
func (p *prefixes) add(blocks []uint64, tokens int) (had share) {
	p.row = p.row[:0]
	if len(blocks) == 0 {
		return share{}
	}
	var parent uint32
	front, inFront, hit := 0, true, true
	for _, id := range blocks {
		size := int32(min(tokens, p.size))
		tokens -= int(size)
		number, came := p.know(id, parent, size)
		if inFront = inFront && came; inFront {
			front++
		}
		at, fresh := p.enter(number, parent)
		n := &p.nodes[at]
		known := min(size, n.longest)
		p.row = append(p.row, step{number, at, known})
		if hit = hit && !fresh; hit {
			p.hitBlocks++
			had.tokens += int64(known)
		}
		switch {
		case !fresh:
			p.repeat(n, parent == 0)
		case parent == 0:
			p.roots++
		}
		n.longest = max(n.longest, size)
		parent = at
	}
	p.rows++
	p.blocks += int64(len(blocks))
	p.hitTokens += had.tokens
	had.front = float64(front) / float64(len(blocks))
	p.fronts += had.front
	return had
}

// know returns the number of an id and whether it came before. A new one gets a node below parent.
func (p *prefixes) know(id uint64, parent uint32, tokens int32) (number uint32, known bool) {
	number, known = p.numbers.find(id)
	if !known {
		number = uint32(len(p.ids))
		p.numbers.add(id, number)
		p.ids = push(p.ids, knownID{parent: parent, tokens: tokens})
		return number, false
	}
	if k := &p.ids[number]; k.tokens != tokens && !k.resized {
		k.resized = true
		p.resized++
	}
	return number, true
}

// enter returns the node of an id below parent, and whether it is new.
func (p *prefixes) enter(number, parent uint32) (at uint32, fresh bool) {
	k := &p.ids[number]
	switch {
	case k.node == 0: // the root is nobody's place
		k.node = uint32(len(p.nodes))
	case k.parent == parent:
		return k.node, false
	default:
		if at, ok := p.more[place{parent, number}]; ok {
			return at, false
		}
		p.more[place{parent, number}] = uint32(len(p.nodes))
		if !k.moved {
			k.moved = true
			p.moved++
		}
	}
	p.nodes = push(p.nodes, node{})
	return uint32(len(p.nodes) - 1), true
}

// push doubles what is full: append's own steps of a quarter would copy each of a million elements four times.
func push[T any](s []T, v T) []T {
	if len(s) == cap(s) {
		s = slices.Grow(s, max(len(s), 1024))
	}
	return append(s, v)
}

func (p *prefixes) repeat(n *node, root bool) {
	p.reused++
	if n.again {
		return
	}
	n.again = true
	p.reused++ // its first occurrence
	if root {
		p.sharedRoots++
	}
}

func (p *prefixes) stats(inputTokens int64) Prefix {
	s := Prefix{
		Blocks: p.blocks, IDs: len(p.ids), Moved: p.moved, Resized: p.resized,
		HitBlocks: p.hitBlocks, HitTokens: p.hitTokens,
		Unique: len(p.nodes) - 1, SharedRoots: p.sharedRoots,
	}
	if p.rows > 0 {
		s.HitBlockRatio = float64(p.hitBlocks) / float64(p.blocks)
		s.HitTokenRatio = float64(p.hitTokens) / float64(inputTokens)
		s.CacheHitRate = p.fronts / float64(p.rows)
		s.ReuseRatio = float64(p.reused) / float64(p.blocks) // a row has as many prefixes as blocks
	}
	return s
}
