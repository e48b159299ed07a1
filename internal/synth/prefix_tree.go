package synth

import "math"

// A forest is the tree of all prefixes of a trace, with the ids of the blocks that scaling makes of its nodes.
type forest struct {
	RescaleOptions
	nodes []node // 0 is the root, above all first ids
	below map[edge]uint32
	first map[uint64]uint32 // first node of each id
	names map[label]uint64
	last  uint64 // the latest new id
}

// A node is a block behind a sequence of blocks.
type node struct {
	id   uint64
	rows int // number of rows through the node
}

type edge struct {
	parent uint32
	id     uint64
}

// A label identifies a block without an id.
type label struct {
	tree, copied int
	node         uint32 // 0 where the id alone says it
	id           uint64
}

func newForest(s RescaleOptions) *forest {
	return &forest{
		RescaleOptions: s, nodes: make([]node, 1),
		below: map[edge]uint32{}, first: map[uint64]uint32{}, names: map[label]uint64{},
	}
}

func (f *forest) plant(ids []uint64) []uint32 {
	path := make([]uint32, len(ids))
	parent := uint32(0)
	for i, id := range ids {
		at, known := f.below[edge{parent, id}]
		if !known {
			at = uint32(len(f.nodes))
			f.nodes = append(f.nodes, node{id: id})
			f.below[edge{parent, id}] = at
			if _, known := f.first[id]; !known {
				f.first[id] = at
			}
			f.last = max(f.last, id)
		}
		f.nodes[at].rows++
		path[i], parent = at, at
	}
	return path
}

func (f *forest) scaled(depth int) int {
	return int(math.Floor(float64(depth)*f.PrefixLen + 0.5))
}

// parts of a scaled prompt.
type parts struct {
	shared int // nodes in front that other rows have too
	prefix int // tokens that they become
	own    int // tokens behind them
}

func (p *parts) tokens() int { return p.prefix + p.own }

func (f *forest) part(path []uint32, tokens int) parts {
	var p parts
	for p.shared < len(path) && f.nodes[path[p.shared]].rows > 1 {
		p.shared++
	}
	if own := tokens - p.shared*f.BlockTokens; own > 0 {
		p.prefix = f.scaled(p.shared) * f.BlockTokens
		p.own = max(1, int(math.Round(float64(own)*f.PromptLen)))
		return p
	}
	// All is shared, the last block perhaps in part. It has that part of each block that it becomes.
	before := f.scaled(p.shared - 1)
	part := tokens - (p.shared-1)*f.BlockTokens
	p.prefix = max(1, before*f.BlockTokens+part*(f.scaled(p.shared)-before))
	return p
}

// name returns the ids of a scaled prompt, one for each block.
func (f *forest) name(path []uint32, p parts, tree int) []uint64 {
	prefix, all := blocks(p.prefix, f.BlockTokens), blocks(p.tokens(), f.BlockTokens)
	ids := make([]uint64, 0, all)
	for depth := 0; depth < p.shared && len(ids) < prefix; depth++ {
		for copied := range f.scaled(depth+1) - f.scaled(depth) {
			if len(ids) < prefix {
				ids = append(ids, f.block(path[depth], copied, tree))
			}
		}
	}
	if len(ids) < prefix { // one token that is left of a prefix that was scaled to nothing
		ids = append(ids, f.block(path[p.shared-1], 0, tree))
	}
	for depth := p.shared; len(ids) < all; depth++ {
		if depth < len(path) {
			ids = append(ids, f.block(path[depth], 0, tree))
		} else {
			ids = append(ids, f.unused())
		}
	}
	return ids
}

// block is the id of one of the blocks that a node becomes. The first one, in the first tree, keeps the node's.
func (f *forest) block(at uint32, copied, tree int) uint64 {
	id := f.nodes[at].id
	l := label{tree: tree, copied: copied, id: id}
	// An id may stand at several places. Where blocks vanish, two of those could become one, which they must not.
	if f.PrefixLen < 1 && f.first[id] != at {
		l.node = at
	}
	if l == (label{id: id}) {
		return id
	}
	name, known := f.names[l]
	if !known {
		name = f.unused()
		f.names[l] = name
	}
	return name
}

func (f *forest) unused() uint64 {
	for {
		f.last++ // after 2⁶⁴ − 1 comes 0
		if _, known := f.first[f.last]; !known {
			return f.last
		}
	}
}
