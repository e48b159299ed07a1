package analysis

import (
	"cmp"
	"slices"
	"time"

	"replayd/internal/stats"
	"replayd/internal/trace"
)

// Graph is how the rows of sessions wait for each other. All figures are 0 if no row names its parents.
type Graph struct {
	Parents  int           // named by all rows
	Joins    int           // rows that wait for more than one
	Forks    int           // rows that more than one waits for
	Waits    stats.Summary // seconds after the end of a parent
	Depth    stats.Summary // by session: most rows that wait for each other in a chain
	Agents   stats.Summary // by session: sub-agents
	Parallel int           // most sub-agents of a session at once, from first row to last, if a request takes no time
}

// graph collects the figures of a Graph. It keeps 8 bytes a row and 16 a sub-agent.
type graph struct {
	rows   []graphRow // by Record.Number
	joins  int
	waits  stats.DurationCounts
	deep   map[string]int32 // by session
	agents map[string]map[string]stay
	edges  int
}

type graphRow struct{ depth, children int32 }

// A stay is the time from the first row of a sub-agent to its last.
type stay struct{ from, to time.Duration }

func (g *graph) add(r *trace.Record) {
	if n := r.Number + 1 - len(g.rows); n > 0 {
		g.rows = append(g.rows, make([]graphRow, n)...)
	}
	depth := int32(1)
	for _, e := range r.After {
		parent := &g.rows[e.Row]
		parent.children++
		depth = max(depth, parent.depth+1)
		g.waits.Add(e.Wait)
	}
	g.edges += len(r.After)
	if len(r.After) > 1 {
		g.joins++
	}
	g.rows[r.Number].depth = depth
	if r.Session == "" {
		return
	}
	g.deep[r.Session] = max(g.deep[r.Session], depth)
	if r.Agent == "" {
		return
	}
	agents := g.agents[r.Session]
	if agents == nil {
		agents = map[string]stay{}
		g.agents[r.Session] = agents
	}
	s, known := agents[r.Agent]
	if !known {
		s.from = r.Offset
	}
	agents[r.Agent] = stay{s.from, max(s.to, r.Offset)}
}

func (g *graph) figures() Graph {
	out := Graph{Parents: g.edges, Joins: g.joins, Waits: g.waits.Seconds().Summary()}
	for _, r := range g.rows {
		if r.children > 1 {
			out.Forks++
		}
	}
	var depth, agents stats.Counts
	for session, deep := range g.deep {
		depth.Add(int(deep))
		of := g.agents[session]
		agents.Add(len(of))
		out.Parallel = max(out.Parallel, parallel(of))
	}
	out.Depth, out.Agents = depth.Summary(), agents.Summary()
	return out
}

// parallel returns the most stays that overlap. One that begins when another ends is counted with it.
func parallel(of map[string]stay) int {
	type change struct {
		at   time.Duration
		step int
	}
	var changes []change
	for _, s := range of {
		changes = append(changes, change{s.from, 1}, change{s.to, -1})
	}
	slices.SortFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), b.step-a.step) // first those that begin
	})
	most, now := 0, 0
	for _, c := range changes {
		now += c.step
		most = max(most, now)
	}
	return most
}
