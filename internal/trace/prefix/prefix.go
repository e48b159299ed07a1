// Package prefix knows which rows of a trace begin with the same blocks: the tree of all sequences of ids.
package prefix

import "slices"

// Sharing is what rows share, by their ids in due order. A prefix is a sequence of ids from the first on.
type Sharing struct {
	Blocks  int64 // of all rows
	IDs     int   // distinct
	Moved   int   // ids that stand behind more than one prefix
	Resized int   // ids that have more than one length

	// What a cache that never forgets would hit: the longest prefix that came before. Where a block was
	// shorter then than it is now, or longer, the tokens that both have.
	HitBlocks, HitTokens         int64
	HitBlockRatio, HitTokenRatio float64 // of Blocks; of all input tokens, rows without ids included

	Unique      int // distinct prefixes
	SharedRoots int // distinct first ids that more than one row begins with

	// AIPerf's words. CacheHitRate: the mean over rows with ids of the share of their ids, counted from the front, that
	// came before anywhere. ReuseRatio: of all occurrences of prefixes, those of prefixes that occur more than once.
	CacheHitRate, ReuseRatio float64
}

// A Tree is the tree of all id sequences. Nearly every id of a real trace has one place in it, so the place stands with
// the id, and only further ones need a map: about 40 bytes a distinct id, and 30 where ids count from 0.
type Tree struct {
	size int // tokens of a block

	Numbers Numbers // id to its place in ids
	ids     []knownID
	more    map[place]uint32 // nodes of ids that have several
	Nodes   []node           // 0 is the root, above all first ids

	Blocks, hitBlocks, hitTokens int64
	reused                       int64 // occurrences of nodes that occurred more than once
	Roots, sharedRoots           int
	moved, resized               int
	Rows                         int
	fronts                       float64 // sum over rows of the share of ids in front that came before

	Row []Step // of the row that came last
}

// A Step is one block of a row: its place in ids and in nodes, and how many of its tokens a row before it had there.
type Step struct {
	Number, Node uint32
	Known        int32 // tokens; 0 where the prefix is new
}

// A Share is what of one row came before.
type Share struct {
	Tokens int64   // that a cache which never forgets would hit
	Front  float64 // part of its ids, counted from the front, that came before anywhere
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
	Again   bool  // it occurred more than once
}

// New is the tree of no rows, for blocks of so many tokens.
func New(size int) Tree {
	return Tree{size: size, more: map[place]uint32{}, Nodes: make([]node, 1)}
}

// Add takes a row's ids, of which there are as many as its tokens have blocks.
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
			p.hitBlocks++
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
	p.Blocks += int64(len(blocks))
	p.hitTokens += had.Tokens
	had.Front = float64(front) / float64(len(blocks))
	p.fronts += had.Front
	return had
}

// know returns the number of an id and whether it came before. A new one gets a node below parent.
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
		p.resized++
	}
	return number, true
}

// enter returns the node of an id below parent, and whether it is new.
func (p *Tree) enter(number, parent uint32) (at uint32, fresh bool) {
	k := &p.ids[number]
	switch {
	case k.node == 0: // the root is the place of no id
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
			p.moved++
		}
	}
	p.Nodes = Push(p.Nodes, node{})
	return uint32(len(p.Nodes) - 1), true
}

// Push doubles what is full: append's own steps of a quarter would copy each of a million elements four times.
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
	p.reused++ // its first occurrence
	if root {
		p.sharedRoots++
	}
}

// Stats is what the rows share; inputTokens are those of all rows, without ids included.
func (p *Tree) Stats(inputTokens int64) Sharing {
	s := Sharing{
		Blocks: p.Blocks, IDs: len(p.ids), Moved: p.moved, Resized: p.resized,
		HitBlocks: p.hitBlocks, HitTokens: p.hitTokens,
		Unique: len(p.Nodes) - 1, SharedRoots: p.sharedRoots,
	}
	if p.Rows > 0 {
		s.HitBlockRatio = float64(p.hitBlocks) / float64(p.Blocks)
		s.HitTokenRatio = float64(p.hitTokens) / float64(inputTokens)
		s.CacheHitRate = p.fronts / float64(p.Rows)
		s.ReuseRatio = float64(p.reused) / float64(p.Blocks) // a row has as many prefixes as blocks
	}
	return s
}
