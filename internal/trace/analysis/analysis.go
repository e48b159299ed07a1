// Package analysis analyzes a trace in detail: lengths, prefixes, caches of every size, bursts, sessions.
package analysis

import (
	"context"
	"fmt"
	"time"

	"replayd/internal/stats"
	"replayd/internal/trace"
)

// Analysis is what Analyze finds beyond the Stats of a trace. Figures that need timestamps are 0 without timestamps;
// prefix figures are 0 without ids. Lengths are those of the rows that have them.
type Analysis struct {
	Stats trace.Stats

	Total     stats.Summary // input and output tokens of a row
	Sizes     []Size        // rows by Total
	Interval  time.Duration
	Intervals []Interval // none without timestamps

	// AIPerf's metrics, in tokens. Context: a row's blocks whose id occurs at the same position of another row, earlier
	// or later. UniquePrompt: the row's other blocks. HitRate: the values for each row with ids; their mean is
	// Prefix.CacheHitRate.
	Context, UniquePrompt, HitRate stats.Summary

	Tree   Tree
	LRU    LRU
	Caches []Cache // LRU at the requested sizes

	Gaps stats.Summary // between rows, seconds; percentiles to 1/128 if more than 65,536 gaps differ

	Turns            stats.Summary // turns per session
	TurnGaps, Delays stats.Summary // seconds: between due times of turns; delays of the rows that have one
}

// A Size is a range of lengths: From ≤ tokens < Below.
type Size struct {
	From, Below int // tokens; Below 0: no upper bound
	Rows        int64
	Share       float64 // of rows with a length
}

// sizes are the lower bounds of the ranges in which AIPerf's documents describe a dataset.
var sizes = []int{0, 5_000, 10_000, 20_000, 40_000, 60_000, 80_000, 100_000}

// An Interval is the requests due from offset From to offset To.
type Interval struct {
	From, To                               time.Duration // in the last interval, To is the offset of the last row
	Requests                               int64
	InputTokens, OutputTokens, CacheTokens int64 // CacheTokens: input tokens that a cache of all prefixes hits
}

// PerMinute returns how many requests are due per minute. It returns 0 for an interval of length 0, at the last row's
// instant.
func (w Interval) PerMinute() float64 {
	if w.To <= w.From {
		return 0
	}
	return float64(w.Requests) / (w.To - w.From).Minutes()
}

// Tree is the shape of the tree of prefixes.
type Tree struct {
	Roots, Leaves int
	Reused        int     // prefixes of more than one row
	MaxDepth      int     // most blocks of a row
	MeanDepth     float64 // mean blocks of a row with ids
}

// Intervals start at five minutes and double until there are at most maxIntervals.
const (
	interval     = 5 * time.Minute
	maxIntervals = 288 // a day
)

// A Cache is the hits of an LRU cache of one size.
type Cache struct {
	Blocks               int
	HitBlocks, HitTokens int64
}

// maxCaches is the most cache sizes in one analysis.
const maxCaches = 1000

// Analyze reads the rows again, and once more if any row has ids. Its memory grows with distinct prefixes, sessions and
// lengths, not with rows: a trace of 4.6 million distinct prefixes takes 660 MB, of which Open takes 390 MB.
//
// caches are the sizes of the LRU caches to show, in blocks. nil means about a dozen sizes (1, 2, 5, 10, 20, 50 and so
// on) up to the first that holds every prefix.
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
		g.own = g.input
	} else if err := f.Each(ctx, g.addContext); err != nil {
		return Analysis{}, err
	}
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

// roundSizes returns sizes such as 100, 200, 500, 1000 and so on, up to the first that is at least most.
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
