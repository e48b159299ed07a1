package trace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// Analysis is what a second look at a trace finds beyond its Stats. Figures that need timestamps are 0 without them,
// figures of prefixes without ids; lengths are those of the rows that say them.
type Analysis struct {
	Stats Stats

	Total   Distribution // tokens of a row, in and out
	Sizes   []Size       // rows by Total
	Window  time.Duration
	Windows []Window // without timestamps none

	// AIPerf's words, tokens. Context: a row's blocks whose id stands at the same place of another row too, wherever that row
	// stands. UniquePrompt: the others. HitRate: of each row with ids, what Prefix.CacheHitRate is the mean of.
	Context, UniquePrompt Distribution
	HitRate               Summary

	Tree      Tree
	LRU       LRU
	CurveHits []int64 // tokens that a cache of all prefixes hits, by the bins of Stats.Curve

	Seconds, Minutes Dispersion
	Gaps             Summary // between rows, seconds; percentiles to 1/128

	Turns            Distribution // of the sessions
	TurnGaps, Delays Summary      // seconds between turns: from due to due, and where rows say it from the end of the turn before

	InputShape, OutputShape, GapShape, TurnShape Shape // of GapShape only X and Below
}

// A Size is a range of lengths: From ≤ tokens < Below.
type Size struct {
	From, Below int // tokens; Below 0: no end
	Rows        int64
	Share       float64 // of rows with a length
}

// sizes are the ranges in which AIPerf's documents describe a dataset.
var sizes = []int{0, 5_000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000}

// A Window is what is due from one offset on until another.
type Window struct {
	From, To                               time.Duration // To is that of the last row in the last window
	Requests                               int64
	InputTokens, OutputTokens, CacheTokens int64 // CacheTokens: of the input, what a cache of all prefixes hits
}

// PerMinute is how many requests a minute are due. A window that is nothing but its last row's instant has no rate: 0.
func (w Window) PerMinute() float64 {
	if w.To <= w.From {
		return 0
	}
	return float64(w.Requests) / (w.To - w.From).Minutes()
}

// Tree is the shape of the tree of prefixes.
type Tree struct {
	Roots, Leaves int
	Reused        int     // prefixes that more than one row has
	MaxDepth      int     // blocks of the row with most of them
	MeanDepth     float64 // blocks of a row with ids
}

// Windows of a trace are of five minutes, or twice as long again and again until there are not more than maxWindows.
const (
	window     = 5 * time.Minute
	maxWindows = 288 // a day
)

// Analyze reads the rows twice more. Its memory grows with distinct prefixes (about
// 120 bytes each, most of it what Open takes too), distinct sessions and distinct lengths; not with rows.
func (f *File) Analyze(ctx context.Context) (Analysis, error) {
	g := newAnalyst(&f.Stats)
	if err := f.each(ctx, g.add); err != nil {
		return Analysis{}, err
	}
	g.sessions.settle()
	if err := f.each(ctx, g.addContext); err != nil {
		return Analysis{}, err
	}
	return g.analysis(), nil
}

// each calls do with every row, in due order.
func (f *File) each(ctx context.Context, do func(*Record)) error {
	rows, err := f.Rows(0)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		r, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && n%markRows == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
		do(&r)
	}
}

// analyst gathers an Analysis.
type analyst struct {
	stats         *Stats
	input, output counts
	total         counts
	windows       []Window
	width         time.Duration
	from          time.Duration // of the first window
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
		stats: s, width: window, prefixes: newPrefixes(s.BlockTokens), recency: newRecency(), recurring: newRecurring(),
		fronts: map[float64]int64{}, sessions: sessions{open: map[string]session{}},
		seconds: dispersion{window: time.Second}, minute: dispersion{window: time.Minute},
		curveHits: make([]int64, len(s.Curve.Requests)),
	}
	if !s.HasTimestamps {
		return g
	}
	for (s.Span-s.First)/g.width >= maxWindows-1 && g.width <= math.MaxInt64/2 {
		g.width *= 2
	}
	g.from = s.First - s.First%g.width
	g.windows = make([]Window, (s.Span-g.from)/g.width+1)
	for i := range g.windows {
		g.windows[i].From = g.from + time.Duration(i)*g.width
		g.windows[i].To = min(g.windows[i].From+g.width, s.Span)
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
	w := &g.windows[(r.Offset-g.from)/g.width]
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
	shared := g.recurring.tokens(g.prefixes.numbers, r.Blocks, r.InputTokens, g.stats.BlockTokens)
	g.context.add(shared)
	g.own.add(r.InputTokens - shared)
}

func (g *analyst) analysis() Analysis {
	gaps := g.gaps.seconds()
	a := Analysis{
		Stats: *g.stats, Total: g.total.distribution(), Window: g.width, Windows: g.windows, CurveHits: g.curveHits,
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
