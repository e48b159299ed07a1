package analysis

import (
	"fmt"
	"io"

	"replayd/internal/number"
	"replayd/internal/terminal"
)

// WriteTable writes the analysis as tables for people: AIPerf's figures, the dataset as AIPerf's documents show it,
// then lengths, prefixes, caches, bursts and sessions. A table that is wider than width leaves columns out; 0: no limit.
func (a Analysis) WriteTable(w io.Writer, width int) error {
	t := tables{&terminal.Table{Columns: width}}
	t.line("Trace analysis: %s", a.Stats.Path)
	a.writeAIPerf(t)
	a.writeDataset(t)
	a.writeLengths(t)
	a.writeTree(t)
	a.writeBursts(t)
	a.writeSessions(t)
	for i, warning := range a.Stats.Warnings {
		if i == 0 {
			t.line("")
		}
		t.line("warning: %s", warning)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

func (a Analysis) writeAIPerf(t tables) {
	s, p := a.Stats, a.Stats.Prefix
	t.grid(
		[]string{"Total requests", number.Whole(s.Requests)},
		[]string{"Unique prefixes", number.Whole(p.Unique)},
		[]string{"Prefix groups", number.Whole(p.SharedRoots)},
		[]string{"Cache hit rate", percent(p.CacheHitRate, 2)},
		[]string{"Prefix reuse ratio", percent(p.ReuseRatio, 2)},
	)
	t.line("")
	t.distributions(2, []string{"mean", "std dev", "min", "p25", "median", "p75", "max"},
		named{"Input length", s.Input}, named{"Context length", a.Context},
		named{"Unique prompt length", a.UniquePrompt}, named{"Output length", s.Output},
		named{"Theoretical hit rate", a.HitRate})
}

func (a Analysis) writeDataset(t tables) {
	s := a.Stats
	t.heading("Overall")
	rows := [][]string{{"Total requests", number.Whole(s.Requests)}}
	if length := s.Span - s.First; s.HasTimestamps {
		rows = append(rows,
			[]string{"Duration", number.Grouped(length.Minutes(), 1) + " minutes (" + number.Grouped(length.Seconds(), 0) + " seconds)"},
			[]string{"Average rate", number.Grouped(s.Rate*60, 1) + " requests/minute"})
	}
	t.left(rows...)
	if a.Total.Count == 0 {
		t.line("No row says how long it is.")
		return
	}
	t.heading("Tokens of a request (input + output)")
	t.distributions(0, []string{"mean", "p25", "median", "p75", "p90", "p99", "max"}, named{"tokens", a.Total})
	t.heading("Requests by tokens")
	rows = [][]string{{"tokens", "requests", "share", ""}}
	for _, z := range a.Sizes {
		name := fmt.Sprintf("%7s - %7s", number.Whole(z.From), number.Whole(z.Below))
		if z.Below == 0 {
			name = fmt.Sprintf("%7s +", number.Whole(z.From))
		}
		rows = append(rows, []string{name, number.Whole(z.Rows), percent(z.Share, 1), bar(z.Share)})
	}
	t.grid(rows...)
	a.writeArrivals(t)
}

func (a Analysis) writeArrivals(t tables) {
	if len(a.Intervals) == 0 {
		return
	}
	t.heading(fmt.Sprintf("Arrivals (windows of %s minutes)", number.Grouped(a.Interval.Minutes(), 0)))
	var most int64
	for _, v := range a.Intervals {
		most = max(most, v.Requests)
	}
	rows := [][]string{{"minutes", "requests", "per minute", "input tokens", "ideal hits", ""}}
	for _, v := range a.Intervals {
		hits := "n/a"
		if a.Stats.RowsWithIDs > 0 && v.InputTokens > 0 {
			hits = percent(ratio(v.CacheTokens, v.InputTokens), 1)
		}
		rate := "n/a"
		if v.To > v.From {
			rate = number.Grouped(v.PerMinute(), 1)
		}
		rows = append(rows, []string{
			fmt.Sprintf("%5s - %5s", minutes(v.From), minutes(v.To)), number.Whole(v.Requests), rate, number.Whole(v.InputTokens), hits,
			bar(ratio(v.Requests, 2*most)),
		})
	}
	t.grid(rows...)
	if a.Stats.RowsWithIDs > 0 {
		t.line("Ideal hits: the part of the input tokens that a cache which forgets nothing would hit.")
	}
}

func (a Analysis) writeLengths(t tables) {
	t.heading("Lengths, tokens")
	figures := []string{"mean", "std dev", "min", "p25", "p50", "p75", "p90", "p99", "max", "sum", "requests"}
	t.distributions(1, figures, named{"input", a.Stats.Input}, named{"output", a.Stats.Output})
}

func (a Analysis) writeTree(t tables) {
	p := a.Stats.Prefix
	t.heading("Prefix tree and caches")
	if a.Stats.RowsWithIDs == 0 {
		t.line("No row has hash_ids.")
		return
	}
	t.left(
		[]string{"Unique prefixes", fmt.Sprintf("%s; used more than once: %s; leaves: %s", number.Whole(p.Unique),
			number.Whole(a.Tree.Reused), number.Whole(a.Tree.Leaves))},
		[]string{"Roots", fmt.Sprintf("%s; used more than once: %s", number.Whole(a.Tree.Roots), number.Whole(p.SharedRoots))},
		[]string{"Depth", fmt.Sprintf("%s blocks at the mean, %s at most; blocks of %d tokens", number.Grouped(a.Tree.MeanDepth, 1),
			number.Whole(a.Tree.MaxDepth), a.Stats.BlockTokens)},
		[]string{"Ideal hits", fmt.Sprintf("%s of %s blocks, %s; %s of %s tokens, %s", number.Whole(p.HitBlocks), number.Whole(p.Blocks),
			percent(p.HitBlockRatio, 2), number.Whole(p.HitTokens), number.Whole(a.Stats.Input.Sum), percent(p.HitTokenRatio, 2))},
	)
	rows := [][]string{{"LRU cache, blocks", "tokens", "hits, blocks", "hits, tokens", "of the ideal", ""}}
	for _, c := range a.Caches {
		part := ratio(c.HitTokens, p.HitTokens)
		rows = append(rows, []string{
			number.Whole(c.Blocks), number.Whole(int64(c.Blocks) * int64(a.Stats.BlockTokens)), percent(ratio(c.HitBlocks, p.Blocks), 2),
			percent(ratio(c.HitTokens, a.Stats.Input.Sum), 2), percent(part, 1), bar(part / 2),
		})
	}
	t.grid(rows...)
}

func (a Analysis) writeBursts(t tables) {
	if !a.Stats.HasTimestamps {
		return
	}
	s := a.Stats
	t.heading("Bursts")
	rows := [][]string{
		{"Instants", fmt.Sprintf("%s distinct, at most %s at one", number.Whole(s.Instants), number.Count(s.Burst, "request"))},
	}
	if a.Gaps.Count > 0 {
		rows = append(rows, []string{"Gaps", fmt.Sprintf("coefficient of variation %.4f (Poisson: 1); mean %s, p50 %s, p90 %s, p99 %s, max %s", s.GapCV,
			seconds(a.Gaps.Mean), seconds(a.Gaps.P50), seconds(a.Gaps.P90), seconds(a.Gaps.P99), seconds(a.Gaps.Max))})
	}
	t.left(rows...)
}

func (a Analysis) writeSessions(t tables) {
	if a.Stats.Sessions == 0 {
		return
	}
	t.heading("Sessions")
	rows := [][]string{
		{"Sessions", number.Whole(a.Stats.Sessions)},
		{"Turns", fmt.Sprintf("mean %.2f, p50 %s, p90 %s, max %s", a.Turns.Mean, number.Grouped(a.Turns.P50, 1), number.Grouped(a.Turns.P90, 1), number.Whole(a.Turns.Max))},
	}
	for _, d := range []named{{"Due to due", a.TurnGaps}, {"Delays", a.Delays}} {
		if d.Count > 0 {
			rows = append(rows, []string{d.name, fmt.Sprintf("mean %s, p50 %s, p90 %s, max %s; turns: %s", seconds(d.Mean), seconds(d.P50),
				seconds(d.P90), seconds(d.Max), number.Whole(d.Count))})
		}
	}
	t.left(rows...)
}
