// Package prefix finds which rows of a trace begin with the same blocks. It builds the tree of all id sequences.
package prefix

import (
	"slices"

	"replayd/internal/trace/ids"
)

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

// A Tree is the tree of all id sequences. Nearly every id of a real trace has one place in the tree. That place has the id's number, and
// only further places need more. A Tree takes 24 bytes per distinct id, up to 36 if ids count from 0, and 40 per further place.
type Tree struct {
	size int // tokens of a block

	Numbers ids.Table         // numbers each id; a further place uses up a number
	nodes   ids.Pages[node]   // by number; 0 is the root, the parent of all first ids
	more    ids.Table         // further places: parent and id, as one
	further ids.Pages[uint32] // by number in more, from 1: the node

	sums   Sharing // without what Stats computes
	reused int64   // occurrences of nodes that occur more than once
	Again  int     // these nodes
	Roots  int
	Rows   int
	fronts float64 // sum of Share.Front over rows

	Row []Step // of the last row added
}

// A Step is one block of a row: the number of its id, the node, and how many of its tokens an earlier row had there. Numbers and nodes
// are from 1 on and below Len; the first node of an id has the number of the id.
type Step struct {
	Number, Node uint32
	Known        int32 // tokens; 0 if the prefix is new
}

// A Share is how much of one row came before.
type Share struct {
	Tokens int64   // hit by a cache that never forgets
	Front  float64 // share of the row's ids, counted from the front, that came before anywhere
}

// A node is one distinct prefix.
type node struct {
	parent uint32 // only of an id's first node
	last   uint32 // most tokens of its last block, and flags
}

// Flags of a node. Those of an id are in its first node.
const (
	again   = 1 << 31 // the prefix occurred more than once
	moved   = 1 << 30 // the id follows more than one prefix
	resized = 1 << 29 // the id has more than one length; until then each node of it has the same one

	tokensOf = resized - 1
)

// New returns an empty tree for blocks of size tokens.
func New(size int) Tree { return Tree{size: size} }

// Len returns how many nodes there are, with the root.
func (p *Tree) Len() int { return max(1, p.nodes.Len()) }

// Add adds a row and returns its Share. A row has at most as many ids as its tokens have blocks.
func (p *Tree) Add(blocks []uint64, tokens int) (had Share) {
	p.Row = p.Row[:0]
	if len(blocks) == 0 {
		return Share{}
	}
	var parent uint32
	front, inFront, hit := 0, true, true
	for _, id := range blocks {
		size := uint32(min(tokens, p.size))
		tokens -= int(size)
		at, fresh := p.know(id, size)
		number := at
		if inFront = inFront && !fresh; inFront {
			front++
		}
		if fresh {
			p.push(node{parent: parent})
		} else {
			at, fresh = p.enter(number, parent)
		}
		n := p.nodes.At(at)
		known := min(size, n.last&tokensOf) // 0 if it is fresh
		p.Row = append(p.Row, Step{number, at, int32(known)})
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
		n.last = n.last&^tokensOf | max(n.last&tokensOf, size)
		parent = at
	}
	p.Rows++
	p.sums.Blocks += int64(len(blocks))
	p.sums.HitTokens += had.Tokens
	had.Front = float64(front) / float64(len(blocks))
	p.fronts += had.Front
	return had
}

// know returns the number of an id, and whether it is new.
func (p *Tree) know(id uint64, tokens uint32) (number uint32, fresh bool) {
	number, known := p.Numbers.Add(id)
	if !known {
		return number, true
	}
	if n := p.nodes.At(number); n.last&resized == 0 && n.last&tokensOf != tokens {
		n.last |= resized
		p.sums.Resized++
	}
	return number, false
}

// enter returns the node of a known id below parent, and whether the node is new.
func (p *Tree) enter(number, parent uint32) (at uint32, fresh bool) {
	first := p.nodes.At(number)
	if first.parent == parent {
		return number, false
	}
	place, known := p.more.Add(uint64(parent)<<32 | uint64(number))
	if known {
		return *p.further.At(place - 1), false
	}
	if first.last&moved == 0 {
		first.last |= moved
		p.sums.Moved++
	}
	at = p.Numbers.Skip()
	p.push(node{})
	p.further.Push(at)
	return at, true
}

func (p *Tree) push(n node) {
	if p.nodes.Len() == 0 {
		p.nodes.Push(node{})
	}
	p.nodes.Push(n)
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
	if n.last&again != 0 {
		return
	}
	n.last |= again
	p.Again++
	p.reused++ // count the first occurrence too
	if root {
		p.sums.SharedRoots++
	}
}

// Stats returns what the rows share. inputTokens is the total over all rows, including rows without ids.
func (p *Tree) Stats(inputTokens int64) Sharing {
	s := p.sums
	s.IDs, s.Unique = p.Len()-1-p.more.Len(), p.Len()-1
	if p.Rows > 0 {
		s.HitBlockRatio = float64(s.HitBlocks) / float64(s.Blocks)
		s.HitTokenRatio = float64(s.HitTokens) / float64(inputTokens)
		s.CacheHitRate = p.fronts / float64(p.Rows)
		s.ReuseRatio = float64(p.reused) / float64(s.Blocks) // a row has as many prefixes as blocks
	}
	return s
}
