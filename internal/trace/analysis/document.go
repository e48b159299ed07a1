package analysis

import (
	"replayd/internal/stats"
	"replayd/internal/trace"
)

// The types below hold the figures that AIPerf's analysis does not have. Times are in seconds; ratios are not
// percentages.

type documentTrace struct {
	Path        string       `json:"path"`
	Format      trace.Format `json:"format"`
	SHA256      string       `json:"sha256"`
	Bytes       int64        `json:"bytes"`
	BlockTokens int          `json:"block_tokens"`
	ByLength    int          `json:"prompts_by_length"`
	WithIDs     int          `json:"prompts_with_ids"`
	Text        int          `json:"prompts_text"`
	Messages    int          `json:"prompts_messages"`
	Payload     int          `json:"prompts_payload"`
	Warnings    []string     `json:"warnings"`
}

type documentTimes struct {
	Sorted     bool               `json:"sorted"`
	First      float64            `json:"first_seconds"`
	Last       float64            `json:"last_seconds"`
	Duration   float64            `json:"duration_seconds"`
	Distinct   int                `json:"distinct"`
	AtOne      int                `json:"most_at_one"`
	Tick       float64            `json:"tick_seconds"`
	PerSecond  float64            `json:"requests_per_second"`
	PerMinute  float64            `json:"requests_per_minute"`
	Gaps       *length            `json:"gap_seconds"`
	GapCV      float64            `json:"gap_cv"`
	Dispersion []documentDisperse `json:"dispersion"`
}

type documentDisperse struct {
	Window  float64 `json:"window_seconds"`
	Windows int64   `json:"whole_windows"`
	Mean    float64 `json:"mean_requests"`
	Peak    int64   `json:"peak_requests"`
	Index   float64 `json:"index_of_dispersion"`
	Ratio   float64 `json:"peak_to_mean"`
}

// A length is a distribution with replayd's percentiles.
type length struct {
	Count  int64   `json:"count"`
	Sum    *int64  `json:"sum,omitempty"`
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"std_dev"`
	Min    float64 `json:"min"`
	P25    float64 `json:"p25"`
	P50    float64 `json:"p50"`
	P75    float64 `json:"p75"`
	P90    float64 `json:"p90"`
	P99    float64 `json:"p99"`
	Max    float64 `json:"max"`
}

func newLength(s stats.Summary, sum *int64) *length {
	if s.Count == 0 {
		return nil
	}
	return &length{s.Count, sum, s.Mean, s.StdDev, s.Min, s.P25, s.P50, s.P75, s.P90, s.P99, s.Max}
}

type documentSize struct {
	From  int     `json:"from_tokens"`
	Below *int    `json:"below_tokens"`
	Rows  int64   `json:"requests"`
	Share float64 `json:"share"`
}

type documentInterval struct {
	From        float64 `json:"from_seconds"`
	To          float64 `json:"to_seconds"`
	Requests    int64   `json:"requests"`
	PerMinute   float64 `json:"requests_per_minute"`
	Input       int64   `json:"input_tokens"`
	Output      int64   `json:"output_tokens"`
	CacheTokens int64   `json:"ideal_hit_tokens"`
	CacheRatio  float64 `json:"ideal_hit_token_ratio"`
}

type documentPrefix struct {
	Blocks        int64   `json:"blocks"`
	Surplus       int     `json:"rows_with_surplus_ids"`
	IDs           int     `json:"distinct_ids"`
	Moved         int     `json:"ids_behind_several_prefixes"`
	Resized       int     `json:"ids_with_several_lengths"`
	HitBlocks     int64   `json:"ideal_hit_blocks"`
	HitBlockRatio float64 `json:"ideal_hit_block_ratio"`
	HitTokens     int64   `json:"ideal_hit_tokens"`
	HitTokenRatio float64 `json:"ideal_hit_token_ratio"`
	Unique        int     `json:"unique_prefixes"`
	Reused        int     `json:"prefixes_used_more_than_once"`
	Roots         int     `json:"roots"`
	SharedRoots   int     `json:"roots_used_more_than_once"`
	Leaves        int     `json:"leaves"`
	MaxDepth      int     `json:"max_depth_blocks"`
	MeanDepth     float64 `json:"mean_depth_blocks"`
}

type documentCache struct {
	Blocks        int     `json:"cache_blocks"`
	Tokens        int64   `json:"cache_tokens"`
	HitBlocks     int64   `json:"hit_blocks"`
	HitTokens     int64   `json:"hit_tokens"`
	HitBlockRatio float64 `json:"hit_block_ratio"`
	HitTokenRatio float64 `json:"hit_token_ratio"`
}

type documentSessions struct {
	Count    int     `json:"count"`
	Turns    *length `json:"turns"`
	TurnGaps *length `json:"turn_gap_seconds"`
	Delays   *length `json:"turn_delay_seconds"`

	Reuse *documentReuse `json:"reuse,omitempty"`
	Graph *documentGraph `json:"graph,omitempty"`
}

// documentReuse divides the hits of a cache of all prefixes by who had the blocks before.
type documentReuse struct {
	WithinBlocks int64   `json:"within_blocks"`
	WithinTokens int64   `json:"within_tokens"`
	WithinRatio  float64 `json:"within_token_ratio"`
	AcrossBlocks int64   `json:"across_blocks"`
	AcrossTokens int64   `json:"across_tokens"`
	AcrossRatio  float64 `json:"across_token_ratio"`
}

type documentGraph struct {
	Parents  int     `json:"parents"`
	Joins    int     `json:"joins"`
	Forks    int     `json:"forks"`
	Waits    *length `json:"wait_seconds"`
	Depth    *length `json:"depth"`
	Agents   *length `json:"sub_agents"`
	Parallel int     `json:"most_parallel_sub_agents"`
}

type documentShard struct {
	Shards  int     `json:"shards"`
	Largest float64 `json:"largest_over_mean"`
}
