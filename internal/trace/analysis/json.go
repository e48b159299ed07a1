package analysis

import (
	"encoding/json"
	"io"
	"time"

	"replayd/internal/number"
	"replayd/internal/stats"
)

// WriteJSON writes the analysis as one JSON object. The first level holds AIPerf's analysis under AIPerf's names
// (AnalysisStats in its src/aiperf/dataset/synthesis, read in 2026), so a script for AIPerf's file can read it. Figures
// that AIPerf does not have are in nested objects. Ratios are unrounded; undefined figures are null.
func (a Analysis) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(a.document())
}

func (a Analysis) document() number.Object {
	s, p := a.Stats, a.Stats.Prefix
	var times, prefixes, sessions any
	if s.HasTimestamps {
		times = a.times()
	}
	if s.RowsWithIDs > 0 {
		prefixes = a.prefixes()
	}
	if s.Sessions > 0 {
		sessions = a.turns()
	}
	var sizes, windows, caches, shards []number.Object
	for _, z := range a.Sizes {
		below := &z.Below
		if z.Below == 0 {
			below = nil
		}
		sizes = append(sizes, number.Object{
			"from_tokens", z.From, "below_tokens", below, "requests", z.Rows, "share", z.Share,
		})
	}
	for _, v := range a.Intervals {
		windows = append(windows, number.Object{
			"from_seconds", v.From.Seconds(), "to_seconds", v.To.Seconds(),
			"requests", v.Requests, "requests_per_minute", v.PerMinute(),
			"input_tokens", v.InputTokens, "output_tokens", v.OutputTokens,
			"ideal_hit_tokens", v.CacheTokens, "ideal_hit_token_ratio", ratio(v.CacheTokens, v.InputTokens),
		})
	}
	if s.RowsWithIDs > 0 {
		for _, c := range a.Caches {
			caches = append(caches, number.Object{
				"cache_blocks", c.Blocks, "cache_tokens", int64(c.Blocks) * int64(s.BlockTokens),
				"hit_blocks", c.HitBlocks, "hit_tokens", c.HitTokens,
				"hit_block_ratio", ratio(c.HitBlocks, p.Blocks), "hit_token_ratio", ratio(c.HitTokens, s.Input.Sum),
			})
		}
	}
	for _, b := range s.Balance {
		shards = append(shards, number.Object{"shards", b.Shards, "largest_over_mean", b.Largest})
	}
	return number.Object{
		"total_requests", s.Requests, "unique_prefixes", p.Unique, "num_prefix_groups", p.SharedRoots,
		"cache_hit_rate", p.CacheHitRate,
		"min_isl", s.Input.Min, "max_isl", s.Input.Max, "avg_isl", s.Input.Mean,
		"min_osl", s.Output.Min, "max_osl", s.Output.Max, "avg_osl", s.Output.Mean,
		"prefix_reuse_ratio", p.ReuseRatio,
		"isl_stats", metric(s.Input), "osl_stats", metric(s.Output),
		"context_length_stats", metric(a.Context),
		"unique_prompt_length_stats", metric(a.UniquePrompt), "hit_rate_stats", metric(a.HitRate),

		"trace",
		number.Object{
			"path", s.Path, "format", s.Format, "sha256", s.SHA256, "bytes", s.Bytes, "block_tokens", s.BlockTokens,
			"prompts_by_length", s.Prompts.Synthesized, "prompts_with_ids", s.RowsWithIDs,
			"prompts_text", s.Prompts.Text, "prompts_messages", s.Prompts.Messages,
			"prompts_payload", s.Prompts.Payload,
			"warnings", append([]string{}, s.Warnings...),
		},
		"timestamps", times,
		"lengths",
		number.Object{"input", count(s.Input), "output", count(s.Output), "total", count(a.Total)},
		"size_ranges", sizes, "windows", windows, "prefix", prefixes, "lru", caches, "sessions", sessions,
		"shards", shards,
	}
}

// The objects below hold the figures that AIPerf's analysis does not have. Times are in seconds; ratios are not
// percentages.

func (a Analysis) times() number.Object {
	s := a.Stats
	return number.Object{
		"sorted", s.Sorted, "first_seconds", s.First.Seconds(), "last_seconds", s.Span.Seconds(),
		"duration_seconds", (s.Span - s.First).Seconds(), "distinct", s.Instants, "most_at_one", s.Burst,
		"tick_seconds", s.Tick.Seconds(),
		"requests_per_second", s.Rate, "requests_per_minute", s.Rate * time.Minute.Seconds(),
		"gap_seconds", length(a.Gaps), "gap_cv", s.GapCV,
	}
}

func (a Analysis) prefixes() number.Object {
	s, p := a.Stats, a.Stats.Prefix
	return number.Object{
		"blocks", p.Blocks, "rows_with_surplus_ids", s.SurplusRows, "rows_with_fewer_ids", s.ShortRows, "distinct_ids", p.IDs,
		"ids_behind_several_prefixes", p.Moved, "ids_with_several_lengths", p.Resized,
		"ideal_hit_blocks", p.HitBlocks, "ideal_hit_block_ratio", p.HitBlockRatio,
		"ideal_hit_tokens", p.HitTokens, "ideal_hit_token_ratio", p.HitTokenRatio, "unique_prefixes", p.Unique,
		"prefixes_used_more_than_once", a.Tree.Reused,
		"roots", a.Tree.Roots, "roots_used_more_than_once", p.SharedRoots,
		"leaves", a.Tree.Leaves, "max_depth_blocks", a.Tree.MaxDepth, "mean_depth_blocks", a.Tree.MeanDepth,
	}
}

func (a Analysis) turns() number.Object {
	return number.Object{
		"count", a.Stats.Sessions, "turns", count(a.Turns),
		"turn_gap_seconds", length(a.TurnGaps), "turn_delay_seconds", length(a.Delays),
	}
}

// metric returns AIPerf's MetricStats; nil if there are no values.
func metric(s stats.Summary) any {
	if s.Count == 0 {
		return nil
	}
	return number.Object{
		"mean", s.Mean, "std_dev", s.StdDev, "min", s.Min, "p25", s.P25, "median", s.P50, "p75", s.P75, "max", s.Max,
	}
}

// length returns a distribution with replayd's percentiles; nil if there are no values. sum is a member of it, or there
// is none.
func length(s stats.Summary, sum ...int64) any {
	if s.Count == 0 {
		return nil
	}
	o := number.Object{"count", s.Count}
	for _, v := range sum {
		o.Add("sum", v)
	}
	return append(o, number.Object{
		"mean", s.Mean, "std_dev", s.StdDev, "min", s.Min, "p25", s.P25, "p50", s.P50, "p75", s.P75, "p90", s.P90,
		"p99", s.P99, "max", s.Max,
	}...)
}

// count is length for counts, which have a sum.
func count(s stats.Summary) any { return length(s, s.Sum) }

func ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
