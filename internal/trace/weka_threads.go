package trace

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"replayd/internal/fault"
)

// wekaJoinSlack is how much earlier than its marker a sub-agent's request may be for t to be absolute, as in AIPerf.
const wekaJoinSlack = time.Microsecond

// weka adds a session. It hangs the requests of a thread on each other: the wait is the time between the end of an answer and
// the next request. A sub-agent's first request hangs on the request that spawned it: the last of the session's thread that
// begins no later. The thread's next request also hangs on the sub-agents that have ended by then; others run beside it.
func (l *lowering) weka(ids *wekaIDs, line int, text []byte) (fault.List, error) {
	s, found := readWeka(text)
	if len(found) == 0 {
		found = l.begin(&s, line)
	}
	if len(found) > 0 {
		return found, nil
	}
	g := wekaGraph{session: &s, ids: ids}
	ids.begin()
	g.relative = s.relative()
	for i := range s.calls {
		if c := &s.calls[i]; c.agent != nil {
			g.spawn(c)
		} else {
			g.call(c)
		}
	}
	if slices.ContainsFunc(g.rows, func(r Record) bool { return r.Offset >= maxNanos }) {
		return fault.List{fault.New("requests", fmt.Sprintf("instants ≤ %d s", int64(maxMillis/1000)), "a later one")}, nil
	}
	l.untimed += g.untimed
	l.kinds |= s.kinds
	return nil, l.session(g.rows)
}

// begin checks a session against those before it.
func (l *lowering) begin(s *wekaSession, line int) fault.List {
	at := l.faults.at(line)
	if other, known := l.ids[s.id]; known {
		return fault.List{fault.New("id", "one that no other session has", fmt.Sprintf("%q, that of %s", s.id, other))}
	}
	l.ids[s.id] = at
	l.block = cmp.Or(l.block, s.block)
	if s.block != l.block {
		return fault.List{fault.New("block_size", fmt.Sprintf("%d, as in the session before", l.block), fmt.Sprint(s.block))}
	}
	return nil
}

// relative reports whether t of the sub-agents' requests counts from the start of the sub-agent, as kv-cache-tester writes it,
// and not from the start of the session, as in SemiAnalysis' copies. It does if any request of a sub-agent would else be earlier
// than the sub-agent's marker. AIPerf has the same rule, for all sessions together.
func (s *wekaSession) relative() bool {
	return slices.ContainsFunc(s.calls, func(c wekaCall) bool {
		early := func(inner wekaCall) bool { return inner.at+wekaJoinSlack < c.at }
		return c.agent != nil && slices.ContainsFunc(c.agent.calls, early)
	})
}

// A wekaGraph is the rows of a session so far.
type wekaGraph struct {
	session  *wekaSession
	ids      *wekaIDs
	relative bool
	rows     []Record
	main     []wekaSent // of the session's own thread
	untimed  int        // requests without the time of their answer
	running  []wekaSent // last requests of the sub-agents that no request has waited for
}

// A wekaSent is a request that has a row.
type wekaSent struct {
	row     int
	at, end time.Duration // end is at if the time of the answer is not known
}

func (g *wekaGraph) call(c *wekaCall) {
	if len(g.main) == 0 {
		g.ids.share("", c.ids[:min(len(c.ids), g.session.prefix/g.session.block)])
	}
	after := []Edge{}
	if n := len(g.main); n > 0 {
		after = append(after, g.main[n-1].edge(c.at))
	}
	running := g.running[:0]
	for _, last := range g.running {
		if last.end > c.at || len(after) == MaxParents {
			running = append(running, last)
			continue
		}
		after = append(after, last.edge(c.at))
	}
	g.running = running
	g.main = append(g.main, g.row(c, c.at, "", after))
}

// edge returns the edge from the request before in a thread.
func (w wekaSent) edge(at time.Duration) Edge { return Edge{w.row, max(0, at-w.end)} }

func (g *wekaGraph) row(c *wekaCall, at time.Duration, agent string, after []Edge) wekaSent {
	offset := at
	if len(after) > 0 {
		offset = allowed(after, func(row int) int64 { return int64(g.rows[row].Offset) })
	}
	g.rows = append(g.rows, Record{
		Offset: offset, InputTokens: c.input, OutputTokens: c.output, Blocks: g.ids.number(c.ids, g.session.global),
		Session: g.session.id, Agent: agent, After: after, Floating: len(after) > 0,
	})
	if !c.timed {
		g.untimed++
	}
	return wekaSent{len(g.rows) - 1, at, later(at, c.took)}
}

func (g *wekaGraph) spawn(marker *wekaCall) {
	a := marker.agent
	start := time.Duration(0)
	if g.relative {
		start = marker.begin()
	}
	var before *wekaSent // in the thread; of the first request the one that spawned it
	for i := range a.calls {
		c := &a.calls[i]
		at := later(start, c.at)
		if i == 0 {
			g.ids.share(a.kind, c.ids[:min(len(c.ids), a.prefix/g.session.block)])
			before = g.at(at)
		}
		after := []Edge{}
		if before != nil {
			after = append(after, before.edge(at))
		}
		sent := g.row(c, at, a.id, after)
		before = &sent
	}
	if len(a.calls) > 0 {
		g.running = append(g.running, *before)
	}
}

// begin returns when a sub-agent began. The marker has the instant at which the call that spawned it returned: of a sub-agent
// with a duration its end, else, as the session did not wait for it, its start. In the 63 sub-agents of kv-cache-tester's traces
// this is 0.2 to 1 s after the end of the request before in all but two.
func (c *wekaCall) begin() time.Duration {
	if !c.agent.timed {
		return c.at
	}
	return max(0, c.at-c.agent.took)
}

// at returns the last request of the session's thread that begins no later than an instant; nil: none does.
func (g *wekaGraph) at(instant time.Duration) *wekaSent {
	for i := len(g.main) - 1; i >= 0; i-- {
		if g.main[i].at <= instant {
			return &g.main[i]
		}
	}
	return nil
}
