package trace

import (
	"cmp"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// maxHistory bounds the keys of a prompt: the latest ones count.
	maxHistory = 4096
	// maxReach is how many calls before it, in its trace, a call can have an answer from.
	maxReach = MaxParents
)

// settle puts the calls in the order of their traces and starts, and sets their parents.
func (t *spansReader) settle() error {
	l := t.lowering
	order := make([]int, len(t.calls))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &t.calls[a], &t.calls[b]
		return cmp.Or(cmp.Compare(x.trace, y.trace), cmp.Compare(x.start, y.start))
	})
	rows := make([]lowered, 0, len(order))
	l.parents = l.parents[:0]
	for len(order) > 0 {
		n := 1
		for n < len(order) && t.calls[order[n]].trace == t.calls[order[0]].trace {
			n++
		}
		g := spanGraph{calls: t.inner(order[:n]), first: len(rows), answers: map[uint64][]int{}}
		for i := range g.calls {
			rows = l.hang(rows, g.calls[i].row, g.parents(i))
		}
		order = order[n:]
	}
	l.rows = rows
	t.warn(len(rows))
	return nil
}

// A sentCall is a call with its row.
type sentCall struct {
	*spanCall
	row int
}

// inner returns the calls of a trace without those around another one, which is their child and lies within their time:
// a client's and a gateway's span of one call, or an agent's span that its instrumentation names chat. A parent alone
// says less: in a conversation it can be the turn before.
func (t *spansReader) inner(order []int) (calls []sentCall) {
	spans, around := map[uint64]*spanCall{}, map[uint64]bool{}
	for _, i := range order {
		spans[t.calls[i].span] = &t.calls[i]
	}
	for _, i := range order {
		c := &t.calls[i]
		if p := spans[c.parent]; p != nil && p != c && p.start <= c.start && p.end >= c.end {
			around[p.span] = true
		}
	}
	for _, i := range order {
		c := &t.calls[i]
		if around[c.span] {
			t.count.outer++
			continue
		}
		calls = append(calls, sentCall{c, i})
	}
	return calls
}

// A spanGraph hangs the calls of a trace on each other, as inference-perf does (otel_trace_to_replay_graph.py,
// build_graph). A call waits for each earlier call whose answer is a message of its prompt, unless it waits for that
// one through another; and for the one before it that began last and ended before it began. All waits are the time
// since the last of these ended.
//
// Unlike there, an answer with calls of tools is known by their ids alone, because the same call can be made often; an
// answer without must equal a message, and not only be a part of it; and it must have ended before the call began.
type spanGraph struct {
	calls   []sentCall       // by start
	first   int              // row of the first one
	answers map[uint64][]int // by the first key of their answers: the calls so far
	reach   []*big.Int       // by call: bit d is the call d before it, if its answer came into the prompt on any way
}

func (g *spanGraph) parents(i int) []Edge {
	c := g.calls[i]
	found := g.found(i)
	reach := new(big.Int)
	var parents []int
	for d := 1; d <= min(i, maxReach) && len(parents) < MaxParents-1; d++ {
		if !found[i-d] || reach.Bit(d) == 1 {
			continue
		}
		parents = append(parents, i-d)
		reach.SetBit(reach, d, 1)
		reach.Or(reach, new(big.Int).Lsh(g.reach[i-d], uint(d)))
	}
	g.reach = append(g.reach, reach.And(reach, reachable))
	for j := i - 1; j >= 0; j-- {
		if g.calls[j].end <= c.start {
			if !slices.Contains(parents, j) {
				parents = append(parents, j)
			}
			break
		}
	}
	latest := time.Duration(0)
	for _, j := range parents {
		latest = max(latest, g.calls[j].end)
	}
	after := make([]Edge, len(parents))
	for n, j := range parents {
		after[n] = Edge{g.first + j, c.start - latest}
	}
	if len(c.answer) > 0 {
		g.answers[c.answer[0]] = append(g.answers[c.answer[0]], i)
	}
	return after
}

// reachable has a bit for each call within maxReach.
var reachable = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), maxReach+1), big.NewInt(1))

// found returns the earlier calls with an answer that is in the prompt of a call: the ids of its calls of tools, or
// without these the same text.
func (g *spanGraph) found(i int) map[int]bool {
	c := g.calls[i]
	history := make(map[uint64]bool, len(c.history))
	for _, key := range c.history {
		history[key] = true
	}
	found := map[int]bool{}
	for key := range history {
		of := g.answers[key]
		for n := len(of) - 1; n >= 0 && i-of[n] <= maxReach; n-- {
			before := g.calls[of[n]]
			lacks := func(key uint64) bool { return !history[key] }
			if before.end <= c.start && !slices.ContainsFunc(before.answer, lacks) {
				found[of[n]] = true
			}
		}
	}
	return found
}

func (t *spansReader) warn(rows int) {
	l, n := t.lowering, &t.count
	all := 0
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(t.left)) {
		all += t.left[kind]
		kinds = append(kinds, kind+" "+strconv.Itoa(t.left[kind]))
	}
	l.warn(all, "spans that are no LLM calls are left out: %d (%s)", all, strings.Join(kinds, ", "))
	l.warn(n.twice, "spans that say the same as another one are left out: %d", n.twice)
	l.warn(n.failed, "LLM calls that failed without an answer are left out: %d", n.failed)
	l.warn(n.empty, "LLM calls without messages that can be sent and without input tokens are left out: %d", n.empty)
	l.warn(n.outer, "LLM calls around another one are left out: %d", n.outer)
	const made = "the prompt of each is made up"
	l.warn(n.bare, "LLM calls without messages: %d of %d: %s", n.bare, rows, made)
	l.warn(n.cut, "LLM calls with messages that are cut or that the chat API does not have: %d of %d: %s",
		n.cut, rows, made)
	l.warn(n.tools, "LLM calls with tools that the chat API does not have: %d of %d: they are left out", n.tools, rows)
	l.warn(n.thoughts, "parts of messages with reasoning are left out: %d", n.thoughts)
	l.warn(n.estimated, "LLM calls without output tokens: %d of %d: the length of each answer is its characters ÷ 4",
		n.estimated, rows)
	l.warn(n.open, "LLM calls without an end: %d of %d: the wait after each includes the time of its answer", n.open, rows)
}
