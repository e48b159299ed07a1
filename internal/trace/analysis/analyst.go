package analysis

import (
	"time"

	"replayd/internal/stats"
	"replayd/internal/trace"
	"replayd/internal/trace/prefix"
)

type analyst struct {
	stats        *trace.Stats
	input, total stats.Counts
	intervals    []Interval
	width        time.Duration
	from         time.Duration // start of the first interval

	prefixes  prefix.Tree
	recency   *recency
	recurring *recurring
	fronts    map[float64]int64
	parents   []bool // by node: it has a child
	depth     int

	context, own stats.Counts

	rows     int64
	last     time.Duration
	gaps     stats.DurationCounts
	sessions sessions
}

func newAnalyst(s *trace.Stats) *analyst {
	g := &analyst{
		stats: s, width: interval, prefixes: prefix.New(s.BlockTokens), recency: newRecency(),
		recurring: &recurring{more: map[rowPlace]bool{}}, fronts: map[float64]int64{},
		sessions: sessions{open: map[string]session{}},
	}
	if !s.HasTimestamps {
		return g
	}
	for g.from = s.First.Truncate(g.width); (s.Span-g.from)/g.width >= maxIntervals; g.from = s.First.Truncate(g.width) {
		g.width *= 2
	}
	g.intervals = make([]Interval, (s.Span-g.from)/g.width+1)
	for i := range g.intervals {
		g.intervals[i].From = g.from + time.Duration(i)*g.width
		g.intervals[i].To = min(g.intervals[i].From+g.width, s.Span)
	}
	return g
}

func (g *analyst) add(r *trace.Record) {
	var had prefix.Share
	if r.InputTokens > 0 {
		g.input.Add(r.InputTokens)
		g.total.Add(r.InputTokens + r.OutputTokens)
		had = g.prefixes.Add(r.Blocks, r.InputTokens)
	}
	if len(r.Blocks) > 0 {
		g.fronts[had.Front]++
		g.recency.add(g.prefixes.Row)
		g.recurring.add(g.prefixes.Row)
		g.grow(g.prefixes.Row)
	}
	g.sessions.add(r, g.stats.HasTimestamps)
	if g.stats.HasTimestamps {
		g.time(r, had.Tokens)
	}
	g.rows++
	g.last = r.Offset
}

func (g *analyst) grow(row []prefix.Step) {
	for len(g.parents) < g.prefixes.Len() {
		g.parents = prefix.Push(g.parents, false)
	}
	for _, s := range row[:len(row)-1] {
		g.parents[s.Node] = true
	}
	g.depth = max(g.depth, len(row))
}

func (g *analyst) time(r *trace.Record, hits int64) {
	w := &g.intervals[(r.Offset-g.from)/g.width]
	w.Requests++
	w.InputTokens += int64(r.InputTokens)
	w.OutputTokens += int64(r.OutputTokens)
	w.CacheTokens += hits
	if g.rows > 0 {
		g.gaps.Add(r.Offset - g.last)
	}
}

// addContext adds a row during the second reading, when all repeated ids are known.
func (g *analyst) addContext(r *trace.Record) {
	if r.InputTokens == 0 {
		return
	}
	shared := g.recurring.tokens(&g.prefixes.Numbers, r.Blocks, r.InputTokens, g.stats.BlockTokens)
	g.context.Add(shared)
	g.own.Add(r.InputTokens - shared)
}

func (g *analyst) analysis() Analysis {
	a := Analysis{
		Stats: *g.stats, Total: g.total.Summary(), Interval: g.width, Intervals: g.intervals,
		Context: g.context.Summary(), UniquePrompt: g.own.Summary(), HitRate: stats.Weigh(g.fronts).Summary(),
		LRU: g.recency.lru(), Gaps: g.gaps.Seconds().Summary(),
	}
	g.sessions.fill(&a)
	for i, from := range sizes {
		s := Size{From: from}
		if i+1 < len(sizes) {
			s.Below = sizes[i+1]
		}
		s.Rows = g.total.Between(s.From, s.Below)
		if a.Total.Count > 0 {
			s.Share = float64(s.Rows) / float64(a.Total.Count)
		}
		a.Sizes = append(a.Sizes, s)
	}
	if g.prefixes.Rows > 0 {
		a.Tree = g.tree()
	} else {
		a.Context.Count = a.UniquePrompt.Count // every row's context is 0
	}
	return a
}

func (g *analyst) tree() Tree {
	t := Tree{MaxDepth: g.depth, MeanDepth: float64(g.stats.Prefix.Blocks) / float64(g.prefixes.Rows)}
	for _, has := range g.parents[1:] {
		if !has {
			t.Leaves++
		}
	}
	t.Roots, t.Reused = g.prefixes.Roots, g.prefixes.Again
	return t
}
