package analysis

import (
	"encoding/json"
	"io"
	"time"

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

type document struct {
	Requests   int     `json:"total_requests"`
	Unique     int     `json:"unique_prefixes"`
	Groups     int     `json:"num_prefix_groups"`
	HitRate    float64 `json:"cache_hit_rate"`
	MinISL     int     `json:"min_isl"`
	MaxISL     int     `json:"max_isl"`
	AvgISL     float64 `json:"avg_isl"`
	MinOSL     int     `json:"min_osl"`
	MaxOSL     int     `json:"max_osl"`
	AvgOSL     float64 `json:"avg_osl"`
	ReuseRatio float64 `json:"prefix_reuse_ratio"`

	ISL          *metric `json:"isl_stats"`
	OSL          *metric `json:"osl_stats"`
	Context      *metric `json:"context_length_stats"`
	UniquePrompt *metric `json:"unique_prompt_length_stats"`
	HitRates     *metric `json:"hit_rate_stats"`

	Trace      documentTrace      `json:"trace"`
	Timestamps *documentTimes     `json:"timestamps"`
	Lengths    map[string]*length `json:"lengths"` // input, output, total
	Sizes      []documentSize     `json:"size_ranges"`
	Intervals  []documentInterval `json:"windows"`
	Prefix     *documentPrefix    `json:"prefix"`
	LRU        []documentCache    `json:"lru"`
	Sessions   *documentSessions  `json:"sessions"`
	Shards     []documentShard    `json:"shards"`
}

// A metric is AIPerf's MetricStats.
type metric struct {
	Mean   float64 `json:"mean"`
	StdDev float64 `json:"std_dev"`
	Min    float64 `json:"min"`
	P25    float64 `json:"p25"`
	Median float64 `json:"median"`
	P75    float64 `json:"p75"`
	Max    float64 `json:"max"`
}

func newMetric(s stats.Summary) *metric {
	if s.Count == 0 {
		return nil
	}
	return &metric{s.Mean, s.StdDev, s.Min, s.P25, s.P50, s.P75, s.Max}
}

func (a Analysis) document() document {
	s, p := a.Stats, a.Stats.Prefix
	d := document{
		Requests: s.Requests, Unique: p.Unique, Groups: p.SharedRoots, HitRate: p.CacheHitRate, ReuseRatio: p.ReuseRatio,
		MinISL: s.Input.Min, MaxISL: s.Input.Max, AvgISL: s.Input.Mean, MinOSL: s.Output.Min, MaxOSL: s.Output.Max, AvgOSL: s.Output.Mean,
		ISL: newMetric(s.Input.Summary()), OSL: newMetric(s.Output.Summary()), Context: newMetric(a.Context.Summary()),
		UniquePrompt: newMetric(a.UniquePrompt.Summary()), HitRates: newMetric(a.HitRate),
		Trace: documentTrace{
			s.Path, s.Format, s.SHA256, s.Bytes, s.BlockTokens, s.Prompts.Synthesized, s.RowsWithIDs, s.Prompts.Text,
			s.Prompts.Messages, s.Prompts.Payload, append([]string{}, s.Warnings...),
		},
		Timestamps: a.documentTimes(),
		Lengths: map[string]*length{
			"input":  newLength(s.Input.Summary(), &s.Input.Sum),
			"output": newLength(s.Output.Summary(), &s.Output.Sum),
			"total":  newLength(a.Total.Summary(), &a.Total.Sum),
		},
	}
	for _, z := range a.Sizes {
		size := documentSize{z.From, &z.Below, z.Rows, z.Share}
		if z.Below == 0 {
			size.Below = nil
		}
		d.Sizes = append(d.Sizes, size)
	}
	for _, v := range a.Intervals {
		d.Intervals = append(d.Intervals, documentInterval{
			v.From.Seconds(), v.To.Seconds(), v.Requests, v.PerMinute(), v.InputTokens, v.OutputTokens, v.CacheTokens,
			ratio(v.CacheTokens, v.InputTokens),
		})
	}
	if s.RowsWithIDs > 0 {
		d.Prefix = &documentPrefix{
			p.Blocks, s.SurplusRows, p.IDs, p.Moved, p.Resized, p.HitBlocks, p.HitBlockRatio, p.HitTokens, p.HitTokenRatio,
			p.Unique, a.Tree.Reused, a.Tree.Roots, p.SharedRoots, a.Tree.Leaves, a.Tree.MaxDepth, a.Tree.MeanDepth,
		}
		for _, c := range a.Caches {
			d.LRU = append(d.LRU, documentCache{
				c.Blocks, int64(c.Blocks) * int64(s.BlockTokens), c.HitBlocks, c.HitTokens, ratio(c.HitBlocks, p.Blocks), ratio(c.HitTokens, s.Input.Sum),
			})
		}
	}
	if s.Sessions > 0 {
		d.Sessions = &documentSessions{
			s.Sessions, newLength(a.Turns.Summary(), &a.Turns.Sum), newLength(a.TurnGaps, nil), newLength(a.Delays, nil), nil, nil,
		}
		if u := a.Reuse; s.RowsWithIDs > 0 {
			d.Sessions.Reuse = &documentReuse{
				u.WithinBlocks, u.WithinTokens, ratio(u.WithinTokens, s.Input.Sum), u.AcrossBlocks, u.AcrossTokens, ratio(u.AcrossTokens, s.Input.Sum),
			}
		}
		if g := a.Graph; g.Parents > 0 {
			d.Sessions.Graph = &documentGraph{
				g.Parents, g.Joins, g.Forks, newLength(g.Waits, nil), newLength(g.Depth.Summary(), nil), newLength(g.Agents.Summary(), &g.Agents.Sum), g.Parallel,
			}
		}
	}
	for _, b := range s.Balance {
		d.Shards = append(d.Shards, documentShard(b))
	}
	return d
}

func (a Analysis) documentTimes() *documentTimes {
	s := a.Stats
	if !s.HasTimestamps {
		return nil
	}
	t := &documentTimes{
		Sorted: s.Sorted, First: s.First.Seconds(), Last: s.Span.Seconds(), Duration: (s.Span - s.First).Seconds(), Distinct: s.Instants,
		AtOne: s.Burst, Tick: s.Tick.Seconds(), PerSecond: s.Rate, PerMinute: s.Rate * time.Minute.Seconds(), GapCV: s.GapCV,
		Gaps: newLength(a.Gaps, nil),
	}
	for _, v := range []Dispersion{a.Seconds, a.Minutes} {
		if v.Windows > 0 {
			t.Dispersion = append(t.Dispersion, documentDisperse{v.Window.Seconds(), v.Windows, v.Mean, v.Peak, v.Index, v.PeakToMean})
		}
	}
	return t
}

// ratio returns part / whole, or 0 if whole is 0.
func ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
