// Package analysis takes a second look at a trace: lengths, prefixes, caches of every size, bursts, sessions.
package analysis

import (
	"context"
	"fmt"
	"time"

	"replayd/internal/stats"
	"replayd/internal/trace"
)

// Analysis is what a second look at a trace finds beyond its Stats. Figures that need timestamps are 0 without them,
// figures of prefixes without ids; lengths are those of the rows that say them.
type Analysis struct {
	Stats trace.Stats

	Total     stats.CountSummary // tokens of a row, in and out
	Sizes     []Size             // rows by Total
	Interval  time.Duration
	Intervals []Interval // without timestamps none

	// AIPerf's words, tokens. Context: a row's blocks whose id stands at the same place of another row too, wherever that row
	// stands. UniquePrompt: the others. HitRate: of each row with ids, what Prefix.CacheHitRate is the mean of.
	Context, UniquePrompt stats.CountSummary
	HitRate               stats.Summary

	Tree      Tree
	LRU       LRU
	Caches    []Cache // LRU at the sizes that were asked for
	CurveHits []int64 // tokens that a cache of all prefixes hits, by the bins of Stats.Curve

	Seconds, Minutes Dispersion
	Gaps             stats.Summary // between rows, seconds; where more than 65,536 differ, percentiles to 1/128

	Turns            stats.CountSummary // of the sessions
	TurnGaps, Delays stats.Summary      // seconds between turns: from due to due, and where rows say it from the end of the turn before

	InputShape, OutputShape, GapShape, TurnShape stats.Shape // of GapShape only X and Below
}

// A Named is a figure of AIPerf's report.
type Named struct {
	Name string
	stats.Summary
}

// AIPerf returns the distributions of AIPerf's report, in its order; their Count is 0 where no row has such a figure.
func (a Analysis) AIPerf() []Named {
	return []Named{
		{"Input length", a.Stats.Input.Summary()},
		{"Context length", a.Context.Summary()},
		{"Unique prompt length", a.UniquePrompt.Summary()},
		{"Output length", a.Stats.Output.Summary()},
		{"Theoretical hit rate", a.HitRate},
	}
}

// A Size is a range of lengths: From ≤ tokens < Below.
type Size struct {
	From, Below int // tokens; Below 0: no end
	Rows        int64
	Share       float64 // of rows with a length
}

// sizes are the ranges in which AIPerf's documents describe a dataset.
var sizes = []int{0, 5_000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000}

// An Interval is what is due from one offset on until another.
type Interval struct {
	From, To                               time.Duration // To is that of the last row in the last interval
	Requests                               int64
	InputTokens, OutputTokens, CacheTokens int64 // CacheTokens: of the input, what a cache of all prefixes hits
}

// PerMinute is how many requests a minute are due. An interval that is nothing but its last row's instant has no rate: 0.
func (w Interval) PerMinute() float64 {
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

// Intervals of a trace are five minutes long, and double until there are at most maxIntervals.
const (
	interval     = 5 * time.Minute
	maxIntervals = 288 // a day
)

// A Cache is what an LRU cache of one size hits.
type Cache struct {
	Blocks               int
	HitBlocks, HitTokens int64
}

// maxCaches is how many sizes of a cache an analysis shows.
const maxCaches = 1000

// Analyze reads the rows again, and once more where some have ids. Its memory grows with distinct prefixes (a trace of 4.6
// million takes 660 MB, of which Open takes 390), sessions and lengths, not with rows.
//
// caches are the sizes to show of LRU caches, blocks; nil: a dozen of 1, 2, 5, 10, 20, 50 and so on, until one holds every prefix.
func Analyze(ctx context.Context, f *trace.File, caches []int) (Analysis, error) {
	for _, n := range caches {
		if n < 1 || len(caches) > maxCaches {
			return Analysis{}, fmt.Errorf("cache blocks: want 1 or more, at most %d sizes, got %d, %d sizes", maxCaches, n, len(caches))
		}
	}
	g := newAnalyst(&f.Stats)
	if err := f.Each(ctx, g.add); err != nil {
		return Analysis{}, err
	}
	if g.prefixes.Rows == 0 {
		g.own, g.context.N = g.input, g.input.N // nothing is shared, as often as there are rows
	} else if err := f.Each(ctx, g.addContext); err != nil {
		return Analysis{}, err
	}
	g.sessions.settle()
	a := g.analysis()
	if caches == nil && f.Stats.RowsWithIDs > 0 {
		caches = roundSizes(f.Stats.Prefix.Unique)
	}
	for _, n := range caches {
		c := Cache{Blocks: n}
		c.HitBlocks, c.HitTokens = a.LRU.Hits(n)
		a.Caches = append(a.Caches, c)
	}
	return a, nil
}

// roundSizes are sizes such as 100, 200, 500, 1000 and so on, the last one of them not below most.
func roundSizes(most int) (sizes []int) {
	first := 1
	for first*2000 <= most {
		first *= 10
	}
	for decade := first; ; decade *= 10 {
		for _, n := range []int{1, 2, 5} {
			if sizes = append(sizes, n*decade); n*decade >= most {
				return sizes
			}
		}
	}
}
