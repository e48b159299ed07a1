package trace

import (
	"bufio"
	"fmt"
	"io"
	"time"
)

// WriteTable writes the analysis for people: AIPerf's figures, then those of a dataset as AIPerf's documents show them, then
// lengths, prefixes, caches, bursts and sessions.
func (a Analysis) WriteTable(w io.Writer) error {
	t := tables{bufio.NewWriter(w)}
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
	return t.Flush()
}

func (a Analysis) writeAIPerf(t tables) {
	s, p := a.Stats, a.Stats.Prefix
	t.grid(
		[]string{"Total requests", grouped(int64(s.Requests))},
		[]string{"Unique prefixes", grouped(int64(p.Unique))},
		[]string{"Prefix groups", grouped(int64(p.SharedRoots))},
		[]string{"Cache hit rate", percent(p.CacheHitRate, 2)},
		[]string{"Prefix reuse ratio", percent(p.ReuseRatio, 2)},
	)
	rows := [][]string{{"", "mean", "std dev", "min", "p25", "median", "p75", "max"}}
	for _, m := range a.AIPerf() {
		row := []string{m.Name}
		for _, v := range []float64{m.Mean, m.StdDev, m.Min, m.P25, m.P50, m.P75, m.Max} {
			row = append(row, number(v, 2, m.Count))
		}
		rows = append(rows, row)
	}
	t.line("")
	t.grid(rows...)
}

func (a Analysis) writeDataset(t tables) {
	s := a.Stats
	t.heading("Overall")
	rows := [][]string{{"Total requests", grouped(int64(s.Requests))}}
	if length := s.Span - s.First; s.HasTimestamps {
		rows = append(rows,
			[]string{"Duration", decimal(length.Minutes(), 1) + " minutes (" + decimal(length.Seconds(), 0) + " seconds)"},
			[]string{"Average rate", decimal(s.Rate*60, 1) + " requests/minute"})
	}
	t.left(rows...)
	if a.Total.Count == 0 {
		t.line("No row says how long it is.")
		return
	}
	t.heading("Tokens of a request (input + output)")
	d := a.Total
	t.grid([]string{"", "mean", "p25", "median", "p75", "p90", "p99", "max"}, []string{
		"tokens", decimal(d.Mean, 0), decimal(d.P25, 0), decimal(d.P50, 0), decimal(d.P75, 0), decimal(d.P90, 0), decimal(d.P99, 0),
		grouped(int64(d.Max)),
	})
	t.heading("Requests by tokens")
	rows = [][]string{{"tokens", "requests", "share", ""}}
	for _, z := range a.Sizes {
		name := fmt.Sprintf("%7s - %7s", grouped(int64(z.From)), grouped(int64(z.Below)))
		if z.Below == 0 {
			name = fmt.Sprintf("%7s +", grouped(int64(z.From)))
		}
		rows = append(rows, []string{name, grouped(z.Rows), percent(z.Share, 1), bar(z.Share)})
	}
	t.grid(rows...)
	a.writeArrivals(t)
}

func (a Analysis) writeArrivals(t tables) {
	if len(a.Intervals) == 0 {
		return
	}
	t.heading(fmt.Sprintf("Arrivals (windows of %s minutes)", decimal(a.Interval.Minutes(), 0)))
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
			rate = decimal(v.PerMinute(), 1)
		}
		rows = append(rows, []string{
			fmt.Sprintf("%5s - %5s", minutes(v.From), minutes(v.To)), grouped(v.Requests), rate, grouped(v.InputTokens), hits,
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
	rows := [][]string{{"", "mean", "std dev", "min", "p25", "p50", "p75", "p90", "p99", "max", "sum", "requests"}}
	for _, m := range []struct {
		name string
		of   Distribution
	}{{"input", a.Stats.Input}, {"output", a.Stats.Output}} {
		s, row := m.of.summary(), []string{m.name}
		for _, v := range []float64{s.Mean, s.StdDev, s.Min, s.P25, s.P50, s.P75, s.P90, s.P99, s.Max} {
			row = append(row, number(v, 1, s.Count))
		}
		rows = append(rows, append(row, grouped(m.of.Sum), grouped(s.Count)))
	}
	t.grid(rows...)
}

func (a Analysis) writeTree(t tables) {
	p := a.Stats.Prefix
	t.heading("Prefix tree and caches")
	if a.Stats.RowsWithIDs == 0 {
		t.line("No row has hash_ids.")
		return
	}
	t.left(
		[]string{"Unique prefixes", fmt.Sprintf("%s; used more than once: %s; leaves: %s", grouped(int64(p.Unique)),
			grouped(int64(a.Tree.Reused)), grouped(int64(a.Tree.Leaves)))},
		[]string{"Roots", fmt.Sprintf("%s; used more than once: %s", grouped(int64(a.Tree.Roots)), grouped(int64(p.SharedRoots)))},
		[]string{"Depth", fmt.Sprintf("%s blocks at the mean, %s at most; blocks of %d tokens", decimal(a.Tree.MeanDepth, 1),
			grouped(int64(a.Tree.MaxDepth)), a.Stats.BlockTokens)},
		[]string{"Ideal hits", fmt.Sprintf("%s of %s blocks, %s; %s of %s tokens, %s", grouped(p.HitBlocks), grouped(p.Blocks),
			percent(p.HitBlockRatio, 2), grouped(p.HitTokens), grouped(a.Stats.Input.Sum), percent(p.HitTokenRatio, 2))},
	)
	rows := [][]string{{"LRU cache, blocks", "tokens", "hits, blocks", "hits, tokens", "of the ideal", ""}}
	for _, c := range a.Caches {
		part := ratio(c.HitTokens, p.HitTokens)
		rows = append(rows, []string{
			grouped(int64(c.Blocks)), grouped(int64(c.Blocks) * int64(a.Stats.BlockTokens)), percent(ratio(c.HitBlocks, p.Blocks), 2),
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
		{"Instants", fmt.Sprintf("%s distinct, at most %s at one", grouped(int64(s.Instants)), requests(int64(s.Burst)))},
	}
	if a.Gaps.Count > 0 {
		rows = append(rows, []string{"Gaps", fmt.Sprintf("coefficient of variation %.4f (Poisson: 1); mean %s, p50 %s, p90 %s, p99 %s, max %s", s.GapCV,
			seconds(a.Gaps.Mean), seconds(a.Gaps.P50), seconds(a.Gaps.P90), seconds(a.Gaps.P99), seconds(a.Gaps.Max))})
	}
	for _, d := range []Dispersion{a.Seconds, a.Minutes} {
		if d.Windows > 0 {
			rows = append(rows, []string{"By the " + map[time.Duration]string{time.Second: "second", time.Minute: "minute"}[d.Window], fmt.Sprintf(
				"index of dispersion %.3f (Poisson: 1); peak %s, %.2f times the mean of %.3f", d.Index, requests(d.Peak), d.PeakToMean, d.Mean)})
		}
	}
	t.left(rows...)
}

func (a Analysis) writeSessions(t tables) {
	if a.Stats.Sessions == 0 {
		return
	}
	t.heading("Sessions")
	rows := [][]string{
		{"Sessions", grouped(int64(a.Stats.Sessions))},
		{"Turns", fmt.Sprintf("mean %.2f, p50 %s, p90 %s, max %s", a.Turns.Mean, decimal(a.Turns.P50, 1), decimal(a.Turns.P90, 1), grouped(int64(a.Turns.Max)))},
	}
	for _, m := range []struct {
		name string
		of   Summary
	}{{"Due to due", a.TurnGaps}, {"Delays", a.Delays}} {
		if m.of.Count > 0 {
			rows = append(rows, []string{m.name, fmt.Sprintf("mean %s, p50 %s, p90 %s, max %s; turns: %s", seconds(m.of.Mean), seconds(m.of.P50),
				seconds(m.of.P90), seconds(m.of.Max), grouped(m.of.Count))})
		}
	}
	t.left(rows...)
}
