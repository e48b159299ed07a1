package trace

import "time"

// analyst gathers an Analysis.
type analyst struct {
	stats         *Stats
	input, output counts
	total         counts
	intervals     []Interval
	width         time.Duration
	from          time.Duration // of the first interval
	curveHits     []int64

	prefixes  prefixes
	recency   *recency
	recurring *recurring
	fronts    map[float64]int64
	parents   []bool // by node: one stands behind it
	depth     int

	context, own counts

	rows            int64
	last            time.Duration
	gaps            spread
	seconds, minute dispersion
	sessions        sessions
}

func newAnalyst(s *Stats) *analyst {
	g := &analyst{
		stats: s, width: interval, prefixes: newPrefixes(s.BlockTokens), recency: newRecency(), recurring: newRecurring(),
		fronts: map[float64]int64{}, sessions: sessions{open: map[string]session{}},
		seconds: dispersion{window: time.Second}, minute: dispersion{window: time.Minute},
		curveHits: make([]int64, len(s.Curve.Requests)),
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

func (g *analyst) add(r *Record) {
	var had share
	if r.InputTokens > 0 {
		g.input.add(r.InputTokens)
		g.total.add(r.InputTokens + r.OutputTokens)
		had = g.prefixes.add(r.Blocks, r.InputTokens)
	}
	if r.OutputTokens > 0 {
		g.output.add(r.OutputTokens)
	}
	if len(r.Blocks) > 0 {
		g.fronts[had.front]++
		g.recency.add(g.prefixes.row)
		g.recurring.add(g.prefixes.row)
		g.grow(g.prefixes.row)
	}
	g.sessions.add(r, g.stats.HasTimestamps)
	if g.stats.HasTimestamps {
		g.time(r, had.tokens)
	}
	g.rows++
	g.last = r.Offset
}

func (g *analyst) grow(row []step) {
	for len(g.parents) < len(g.prefixes.nodes) {
		g.parents = push(g.parents, false)
	}
	for _, s := range row[:len(row)-1] {
		g.parents[s.node] = true
	}
	g.depth = max(g.depth, len(row))
}

func (g *analyst) time(r *Record, hits int64) {
	w := &g.intervals[(r.Offset-g.from)/g.width]
	w.Requests++
	w.InputTokens += int64(r.InputTokens)
	w.OutputTokens += int64(r.OutputTokens)
	w.CacheTokens += hits
	g.curveHits[r.Offset/g.stats.Curve.Bin] += hits
	g.seconds.add(r.Offset)
	g.minute.add(r.Offset)
	if g.rows > 0 {
		g.gaps.add(r.Offset - g.last)
	}
}

// addContext is the second look, when it is known which ids come again.
func (g *analyst) addContext(r *Record) {
	if r.InputTokens == 0 {
		return
	}
	shared := g.recurring.tokens(&g.prefixes.numbers, r.Blocks, r.InputTokens, g.stats.BlockTokens)
	g.context.add(shared)
	g.own.add(r.InputTokens - shared)
}

func (g *analyst) analysis() Analysis {
	gaps := g.gaps.seconds()
	a := Analysis{
		Stats: *g.stats, Total: g.total.distribution(), Interval: g.width, Intervals: g.intervals, CurveHits: g.curveHits,
		Context: g.context.distribution(), UniquePrompt: g.own.distribution(), HitRate: weigh(g.fronts).summary(),
		LRU: g.recency.lru(), Seconds: g.seconds.figures(), Minutes: g.minute.figures(), Gaps: gaps.summary(),
		InputShape: g.input.weighted().shape(), OutputShape: g.output.weighted().shape(),
	}
	a.GapShape.X, a.GapShape.Below = gaps.steps(a.Gaps.Count)
	g.sessions.fill(&a)
	for i, from := range sizes {
		s := Size{From: from}
		if i+1 < len(sizes) {
			s.Below = sizes[i+1]
		}
		s.Rows = g.total.between(s.From, s.Below)
		if a.Total.Count > 0 {
			s.Share = float64(s.Rows) / float64(a.Total.Count)
		}
		a.Sizes = append(a.Sizes, s)
	}
	if g.prefixes.rows > 0 {
		a.Tree = g.tree()
	}
	return a
}

func (g *analyst) tree() Tree {
	t := Tree{MaxDepth: g.depth, MeanDepth: float64(g.prefixes.blocks) / float64(g.prefixes.rows)}
	for i, n := range g.prefixes.nodes[1:] {
		if !g.parents[i+1] {
			t.Leaves++
		}
		if n.again {
			t.Reused++
		}
	}
	t.Roots = g.prefixes.roots
	return t
}
