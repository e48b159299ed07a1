// Package prefix finds which rows of a trace begin with the same blocks. It builds the tree of all id sequences.
package prefix

import "slices"

// Sharing is what rows have in common, by their ids in due order. A prefix is a sequence of ids that begins with a
// row's first id.
type Sharing struct {
	Blocks  int64 // of all rows
	IDs     int   // distinct
	Moved   int   // ids that follow more than one prefix
	Resized int   // ids that occur with more than one length

	// The hits of a cache that never forgets: each row hits its longest prefix that came before. If a block had another
	// length before, the hit counts the shorter of the two lengths.
	HitBlocks, HitTokens         int64
	HitBlockRatio, HitTokenRatio float64 // of Blocks; of all input tokens, including rows without ids

	Unique      int // distinct prefixes
	SharedRoots int // distinct first ids that more than one row begins with

	// AIPerf's metrics. CacheHitRate: the share of a row's ids, counted from the front, that came before anywhere in
	// the trace; the mean over rows with ids. ReuseRatio: the share of prefix occurrences whose prefix occurs more than
	// once.
	CacheHitRate, ReuseRatio float64
}

// A Tree is the tree of all id sequences. Nearly every id of a real trace has one place in the tree. That place is
// stored with the id, and only further places need a map. A Tree takes about 40 bytes per distinct id, or 30 if ids
// count from 0.
type Tree struct {
	size int // tokens of a block

	Numbers Numbers // id to its index in ids
	ids     []knownID
	more    map[place]uint32 // further nodes of ids that have several
	Nodes   []node           // 0 is the root, the parent of all first ids

	sums   Sharing // without what Stats computes
	reused int64   // occurrences of nodes that occur more than once
	Roots  int
	Rows   int
	fronts float64 // sum of Share.Front over rows

	Row []Step // of the last row added
}

// A Step is one block of a row: its index in ids, its index in Nodes, and how many of its tokens an earlier row had
// there.
type Step struct {
	Number, Node uint32
	Known        int32 // tokens; 0 if the prefix is new
}

// A Share is how much of one row came before.
type Share struct {
	Tokens int64   // hit by a cache that never forgets
	Front  float64 // share of the row's ids, counted from the front, that came before anywhere
}

// A knownID is an id that has occurred: its first place in the tree, and its length there.
type knownID struct {
	parent, node   uint32
	tokens         int32
	moved, resized bool
}

type place struct{ parent, id uint32 }

// A node is one distinct prefix.
type node struct {
	longest int32 // most tokens of its last block
	Again   bool  // it occurred more than once
}

// New returns an empty tree for blocks of size tokens.
func New(size int) Tree {
	return Tree{size: size, more: map[place]uint32{}, Nodes: make([]node, 1)}
}

// Add adds a row and returns its Share. A row has no ids or exactly as many as its tokens have blocks.
func (p *Tree) Add(blocks []uint64, tokens int) (had Share) {
	p.Row = p.Row[:0]
	if len(blocks) == 0 {
		return Share{}
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
		n := &p.Nodes[at]
		known := min(size, n.longest)
		p.Row = append(p.Row, Step{number, at, known})
		if hit = hit && !fresh; hit {
			p.sums.HitBlocks++
			had.Tokens += int64(known)
		}
		switch {
		case !fresh:
			p.repeat(n, parent == 0)
		case parent == 0:
			p.Roots++
		}
		n.longest = max(n.longest, size)
		parent = at
	}
	p.Rows++
	p.sums.Blocks += int64(len(blocks))
	p.sums.HitTokens += had.Tokens
	had.Front = float64(front) / float64(len(blocks))
	p.fronts += had.Front
	return had
}

// know returns the number of an id and whether the id came before. It records parent as the place of a new id.
func (p *Tree) know(id uint64, parent uint32, tokens int32) (number uint32, known bool) {
	number, known = p.Numbers.Find(id)
	if !known {
		number = uint32(len(p.ids))
		p.Numbers.add(id, number)
		p.ids = Push(p.ids, knownID{parent: parent, tokens: tokens})
		return number, false
	}
	if k := &p.ids[number]; k.tokens != tokens && !k.resized {
		k.resized = true
		p.sums.Resized++
	}
	return number, true
}

// enter returns the node of an id below parent, and whether the node is new.
func (p *Tree) enter(number, parent uint32) (at uint32, fresh bool) {
	k := &p.ids[number]
	switch {
	case k.node == 0: // the id has no node yet: node 0 is the root
		k.node = uint32(len(p.Nodes))
	case k.parent == parent:
		return k.node, false
	default:
		if at, ok := p.more[place{parent, number}]; ok {
			return at, false
		}
		p.more[place{parent, number}] = uint32(len(p.Nodes))
		if !k.moved {
			k.moved = true
			p.sums.Moved++
		}
	}
	p.Nodes = Push(p.Nodes, node{})
	return uint32(len(p.Nodes) - 1), true
}

// Push appends v and doubles the capacity of a full slice. append grows a large slice by only a quarter, and so would
// copy each of a million elements four times.
func Push[T any](s []T, v T) []T {
	if len(s) == cap(s) {
		s = slices.Grow(s, max(len(s), 1024))
	}
	return append(s, v)
}

func (p *Tree) repeat(n *node, root bool) {
	p.reused++
	if n.Again {
		return
	}
	n.Again = true
	p.reused++ // count the first occurrence too
	if root {
		p.sums.SharedRoots++
	}
}

// Stats returns what the rows share. inputTokens is the total over all rows, including rows without ids.
func (p *Tree) Stats(inputTokens int64) Sharing {
	s := p.sums
	s.IDs, s.Unique = len(p.ids), len(p.Nodes)-1
	if p.Rows > 0 {
		s.HitBlockRatio = float64(s.HitBlocks) / float64(s.Blocks)
		s.HitTokenRatio = float64(s.HitTokens) / float64(inputTokens)
		s.CacheHitRate = p.fronts / float64(p.Rows)
		s.ReuseRatio = float64(p.reused) / float64(s.Blocks) // a row has as many prefixes as blocks
	}
	return s
}
