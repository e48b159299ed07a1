package synth

import (
	_ "embed" // sample.jsonl
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"replayd/internal/fault"
	"replayd/internal/trace"
)

// A Draft describes a synthetic trace by its rate, its lengths and what its prompts share.
type Draft struct {
	Rate float64       // conversations per second; with one turn each, requests
	Span time.Duration // length of the trace
	Even bool          // conversations begin at equal distances, else by a Poisson process; the first one at 0

	Rows        Synthetic // lengths, turns and delays; Users must be 0
	BlockTokens int
	Tree        Tree
	Seed        uint64
}

// A Tree is what first messages share, behind the system prompt. It has Roots beginnings, each of which goes on in Branching ways,
// and so on: a path of Depth pieces of the same length. A row takes one path, at random, for the share Shared of its first
// message's tokens, in whole blocks; what is behind is its own. The zero value shares nothing.
type Tree struct {
	Roots, Branching, Depth int
	Shared                  float64 // 0 to 1
}

// Bounds of a Draft.
const (
	MaxRows  = 10_000_000 // mean number of rows
	maxPaths = 1 << 40
)

// Check returns every fault, with the field in lower case as its key.
func (d *Draft) Check() (f fault.List) {
	rate := d.Rate > 0 && !math.IsInf(d.Rate, 1)
	f.If(!rate, "rate", "want more than 0 requests per second, got %v", d.Rate)
	f.If(d.Span <= 0, "span", "want more than 0s, got %v", d.Span)
	if n := d.Rate * d.Span.Seconds() * max(1, d.Rows.Turns.Mean); rate && d.Span > 0 && n > MaxRows {
		f.Add("span", "want at most %d rows, got about %.0f", MaxRows, n)
	}
	f.If(d.BlockTokens < 1 || d.BlockTokens > trace.MaxTokens,
		"block_tokens", "want 1 to %d, got %d", trace.MaxTokens, d.BlockTokens)
	f.If(d.Rows.Users != 0 || d.Rows.Rate != 0, "users", "want none, got %d", d.Rows.Users)
	return slices.Concat(f, d.Rows.Check(), d.Tree.check())
}

func (t *Tree) check() (f fault.List) {
	switch {
	case *t == Tree{}:
		return nil
	case !(t.Shared > 0 && t.Shared <= 1):
		f.Add("tree.shared", "want more than 0, and at most 1, of a prompt's tokens, got %v", t.Shared)
		return f
	}
	paths := float64(t.Roots) * math.Pow(float64(t.Branching), float64(t.Depth-1))
	if t.Roots < 1 || t.Branching < 1 || t.Depth < 1 || paths > maxPaths {
		f.Add("tree", "want roots, branching and depth ≥ 1, and at most %d paths, got %d, %d and %d", maxPaths, t.Roots, t.Branching, t.Depth)
	}
	return f
}

// Records makes the trace, in due order and with ids from 0 in order of use. Instants are whole milliseconds. Later turns are due
// with the first one of their conversation and have their delay: they go out when the turn before has ended. The same draft
// gives the same trace.
func (d *Draft) Records() ([]trace.Record, error) {
	if err := d.Check().Err(); err != nil {
		return nil, err
	}
	source := newStream(d.Seed, 0, arriveDomain, 0)
	m := drafting{Draft: d, rng: rand.New(&source), ids: map[block]uint64{}}
	s := d.Rows
	s.Seed = d.Seed
	next := s.Rows()
	r := next()
	for n, at := 0, 0.0; ; n++ {
		if d.Even {
			at = float64(n) / d.Rate
		} else if n > 0 {
			at += m.rng.ExpFloat64() / d.Rate
		}
		due := time.Duration(at * float64(time.Second)).Round(time.Millisecond)
		if due >= d.Span {
			number(m.rows)
			return m.rows, nil
		}
		m.findShared(&r)
		for first := r.Session; ; {
			m.add(r, due)
			if r = next(); first == "" || r.Session != first {
				break
			}
		}
	}
}

type drafting struct {
	*Draft
	rng  *rand.Rand
	rows []trace.Record
	ids  map[block]uint64 // of the tree
	last uint64           // id given

	known []uint64 // full blocks that the next turn begins with
}

// A block is one of a tree's: the at-th behind the node of a level that has a number.
type block struct {
	level, at int
	node      uint64
}

func (m *drafting) findShared(r *trace.Record) {
	m.known = nil
	size, system := m.BlockTokens, m.Rows.System
	for i := range system / size {
		m.known = append(m.known, m.id(block{level: -1, at: i}))
	}
	if m.Tree.Shared == 0 {
		return
	}
	message := r.InputTokens - system
	reach := int(math.Round((float64(system) + m.Tree.Shared*float64(message)) / float64(size)))
	reach = min(reach, (r.InputTokens-1)/size) // the last block is the row's own
	piece := max(1, int(math.Ceil(m.Tree.Shared*m.mean()/float64(size)/float64(m.Tree.Depth))))
	node := m.rng.Uint64N(uint64(m.Tree.Roots))
	level := 0
	for i := len(m.known); i < reach; i++ {
		for at := min((i-system/size)/piece, m.Tree.Depth-1); level < at; level++ {
			node = node*uint64(m.Tree.Branching) + m.rng.Uint64N(uint64(m.Tree.Branching))
		}
		m.known = append(m.known, m.id(block{level, i, node}))
	}
}

func (m *drafting) mean() float64 {
	if len(m.Rows.Pairs) == 0 {
		return m.Rows.Input.Mean
	}
	sum, weight := 0.0, 0.0
	for _, p := range m.Rows.Pairs {
		sum += p.Weight * p.Input.Mean
		weight += p.Weight
	}
	return sum / weight
}

// add adds a row that begins with the known blocks, which its own full ones then are too.
func (m *drafting) add(r trace.Record, due time.Duration) {
	r.Offset, r.Parts = due, nil
	r.Delay = r.Delay.Round(time.Millisecond)
	r.Blocks = slices.Clone(m.known)
	for range blocks(r.InputTokens, m.BlockTokens) - len(m.known) {
		m.last++
		r.Blocks = append(r.Blocks, m.last)
	}
	m.known = r.Blocks[:r.InputTokens/m.BlockTokens]
	m.rows = append(m.rows, r)
}

func (m *drafting) id(b block) uint64 {
	id, known := m.ids[b]
	if !known {
		m.last++
		id = m.last
		m.ids[b] = id
	}
	return id
}

// number numbers the rows, and renames ids and sessions in the order of their first use.
func number(rows []trace.Record) {
	ids, sessions := map[uint64]uint64{}, map[string]string{"": ""}
	for i := range rows {
		r := &rows[i]
		r.Number, r.Line = i, i+1
		for j, id := range r.Blocks {
			if _, ok := ids[id]; !ok {
				ids[id] = uint64(len(ids))
			}
			r.Blocks[j] = ids[id]
		}
		if _, ok := sessions[r.Session]; !ok {
			sessions[r.Session] = "s" + strconv.Itoa(len(sessions))
		}
		r.Session = sessions[r.Session]
	}
}

// Sample is the bundled trace, in Mooncake's format: what its generator in shape_test.go makes of a seed.
//
//go:embed sample.jsonl
var Sample []byte
