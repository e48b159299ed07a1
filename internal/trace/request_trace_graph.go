package trace

import (
	"cmp"
	"slices"
)

// A requestGraph hangs the requests of a request trace on each other, as Dynamo's own replay does. A request waits for the one
// before it in its session. The first of a child session waits for the last request of the parent session that began no later; if
// it began while that one ran, it is due with it. The first request of the parent session after the end of the child waits for it.
// Tools need no edge, because they lie between two requests.
type requestGraph struct {
	requests []traced         // by start
	sessions map[string][]int // requests of each session
	parents  map[string]string
	joins    map[int][]int // by request: last requests of child sessions
	after    [][]Edge
}

// settle sets the parents and sessions of all rows and puts the rows in the order of their starts.
func (t *requestTraceReader) settle() error {
	slices.SortFunc(t.requests, func(a, b traced) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end), cmp.Compare(a.row, b.row))
	})
	g := requestGraph{
		requests: t.requests, sessions: map[string][]int{}, parents: t.parents, joins: map[int][]int{}, after: make([][]Edge, len(t.requests)),
	}
	for i, r := range t.requests {
		if r.session != "" {
			g.sessions[r.session] = append(g.sessions[r.session], i)
		}
	}
	g.join()
	l := t.lowering
	rows := make([]lowered, 0, len(t.requests))
	l.parents = l.parents[:0]
	names := map[subAgent]int32{}
	for i, r := range t.requests {
		g.hang(i)
		rows = l.hang(rows, r.row, g.after[i])
		if r.session != "" {
			name := g.name(r.session)
			if names[name] == 0 {
				l.names = append(l.names, name)
				names[name] = int32(len(l.names))
			}
			rows[i].name = names[name]
		}
	}
	l.rows = rows
	return nil
}

// name returns the session of ours that a session belongs to: the first of its parents. Others are its sub-agents.
func (g *requestGraph) name(session string) subAgent {
	first := session
	for range len(g.parents) { // a cycle ends here
		parent := g.parents[first]
		if parent == "" || g.sessions[parent] == nil {
			break
		}
		first = parent
	}
	if first == session {
		return subAgent{session: session}
	}
	return subAgent{first, session}
}

// join finds the requests that wait for child sessions.
func (g *requestGraph) join() {
	for child, parent := range g.parents {
		requests := g.sessions[child]
		if len(requests) == 0 {
			continue
		}
		last := slices.MaxFunc(requests, func(a, b int) int { return cmp.Compare(g.requests[a].end, g.requests[b].end) })
		for _, i := range g.sessions[parent] {
			if g.requests[i].start >= g.requests[last].end && i > last {
				g.joins[i] = append(g.joins[i], last)
				break
			}
		}
	}
	for _, list := range g.joins {
		slices.Sort(list)
	}
}

func (g *requestGraph) hang(i int) {
	r := g.requests[i]
	own := g.sessions[r.session]
	place, _ := slices.BinarySearch(own, i)
	after := []Edge{}
	switch {
	case r.session == "":
	case place > 0:
		after = append(after, g.edge(own[place-1], i))
	default:
		after = g.spawn(g.sessions[g.parents[r.session]], i)
	}
	for _, child := range g.joins[i] {
		if len(after) < MaxParents && g.name(g.requests[child].session).session == g.name(r.session).session {
			after = AddEdge(after, g.edge(child, i))
		}
	}
	g.after[i] = after
}

func (g *requestGraph) edge(parent, child int) Edge {
	return Edge{parent, max(0, g.requests[child].start-g.requests[parent].end)}
}

// spawn returns the edges of the first request of a child session.
func (g *requestGraph) spawn(parents []int, i int) []Edge {
	place, _ := slices.BinarySearch(parents, i)
	if place == 0 || g.name(g.requests[parents[0]].session).session != g.name(g.requests[i].session).session {
		return []Edge{}
	}
	parent := parents[place-1]
	if g.requests[i].start >= g.requests[parent].end {
		return []Edge{g.edge(parent, i)}
	}
	after := slices.Clone(g.after[parent])
	for j := range after {
		after[j].Wait = later(after[j].Wait, g.requests[i].start-g.requests[parent].start)
	}
	return after
}
