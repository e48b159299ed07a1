package main

import (
	"fmt"
	"math"

	"replayd/internal/chart"
	"replayd/internal/number"
	"replayd/internal/report"
	"replayd/internal/stats"
	"replayd/internal/trace/analysis"
)

// cacheSteps is the number of logarithmic steps between the cache sizes of the curve.
const cacheSteps = 200

func analysisPrefixes(a analysis.Analysis) report.Section {
	s := a.Stats
	if s.RowsWithIDs == 0 {
		return report.Section{}
	}
	section := report.Section{
		Title: fmt.Sprintf("%s of the input tokens came before", share(s.Prefix.HitTokenRatio)), Short: "Prefixes and caches",
		Text: []string{fmt.Sprintf("The tree has %s prefixes, %s of them used more than once, from %s; a prompt has %s blocks at the mean, %d at most.",
			number.Value(float64(s.Prefix.Unique), ""), number.Value(float64(a.Tree.Reused), ""), number.Count(a.Tree.Roots, "root"), number.Value(a.Tree.MeanDepth, ""), a.Tree.MaxDepth)},
	}
	if len(a.CurveHits) > 0 {
		section.Plots = append(section.Plots, reuseOverTime(a))
	}
	if s.Prefix.HitTokens > 0 {
		section.Plots = append(section.Plots, cacheCurve(a))
	}
	return section
}

func reuseOverTime(a analysis.Analysis) chart.Plot {
	c := a.Stats.Curve
	hits := overTime(a, func(i int) float64 { return 100 * portion(a.CurveHits[i], c.InputTokens[i]) })
	first, last := portion(a.Intervals[0].CacheTokens, a.Intervals[0].InputTokens), math.NaN()
	for _, v := range a.Intervals {
		if v.InputTokens > 0 {
			last = portion(v.CacheTokens, v.InputTokens)
		}
	}
	title := "Share of the input tokens that came before"
	if len(a.Intervals) > 1 {
		title = fmt.Sprintf("From %s in the first %s to %s in the last", share(first), number.Value(a.Interval.Seconds(), "s"), share(last))
	}
	return chart.Plot{
		Title: title, X: chart.Axis{Label: "time in the trace", Unit: "s"}, Y: chart.Axis{Label: "of the input tokens", Unit: "%", Ends: [2]float64{0, 100}},
		Series: []chart.Series{hits}, Marks: []chart.Mark{{Name: "whole trace", At: 100 * a.Stats.Prefix.HitTokenRatio}}, Wide: true,
		Note: binNote(a) + " A cache that forgets nothing and begins empty.",
	}
}

// cacheCurve returns a plot of the hits of an LRU cache by its size.
func cacheCurve(a analysis.Analysis) chart.Plot {
	s := a.Stats
	tokens, blocks := chart.Series{Name: "of tokens", Kind: chart.Line}, chart.Series{Name: "of blocks", Kind: chart.Line, Soft: true}
	last := 0
	for i := range cacheSteps + 1 {
		n := int(math.Round(math.Pow(float64(s.Prefix.Unique), float64(i)/cacheSteps)))
		if n == last {
			continue
		}
		last = n
		hitBlocks, hitTokens := a.LRU.Hits(n)
		tokens.X, tokens.Y = append(tokens.X, float64(n)), append(tokens.Y, 100*portion(hitTokens, s.Input.Sum))
		blocks.X, blocks.Y = append(blocks.X, float64(n)), append(blocks.Y, 100*portion(hitBlocks, s.Prefix.Blocks))
	}
	t := &chart.Table{Columns: chart.Columns("blocks", "tokens", "hits, of blocks", "hits, of tokens", "of the ideal")}
	for _, c := range a.Caches {
		t.Rows = append(t.Rows, []string{
			fmt.Sprint(c.Blocks), number.Value(float64(c.Blocks)*float64(s.BlockTokens), ""), share(portion(c.HitBlocks, s.Prefix.Blocks)),
			share(portion(c.HitTokens, s.Input.Sum)), share(portion(c.HitTokens, s.Prefix.HitTokens)),
		})
	}
	enough := a.LRU.Enough(0.9)
	return chart.Plot{
		Title: fmt.Sprintf("A cache of %s blocks (%s) hits 90 %% of what an endless one does", number.Value(float64(enough), ""), number.Value(float64(enough)*float64(s.BlockTokens), "tokens")),
		X:     chart.Axis{Label: "size of an LRU cache", Unit: "blocks", Log: true}, Y: chart.Axis{Label: "hits", Unit: "%"},
		Series: []chart.Series{tokens, blocks}, Table: t, Wide: true,
		Marks: []chart.Mark{{Name: "90 %", At: float64(enough), X: true}},
		Note:  fmt.Sprintf("Blocks of %d tokens. A prompt hits from its front on until the first block that is not there; the end of a prompt is forgotten before its front. Exact for each size.", s.BlockTokens),
	}
}

func analysisGaps(a analysis.Analysis) report.Section {
	if a.Gaps.Count == 0 || a.Gaps.Max == 0 {
		return report.Section{}
	}
	s := a.Stats
	section := report.Section{
		Title: fmt.Sprintf("Gaps between requests vary %s times as much as a Poisson process's", number.Value(s.GapCV, "")), Short: "Bursts",
		Text: []string{fmt.Sprintf("%s; at most %s at one instant.", number.Count(s.Instants, "distinct instant"), number.Count(s.Burst, "request"))},
	}
	t := chart.Table{Columns: chart.Columns("windows of", "whole ones", "mean requests", "peak", "peak to mean",
		"index of dispersion (Poisson: 1)")}
	for _, d := range []analysis.Dispersion{a.Seconds, a.Minutes} {
		if d.Windows > 0 {
			t.Rows = append(t.Rows, []string{
				number.Value(d.Window.Seconds(), "s"), fmt.Sprint(d.Windows), fmt.Sprintf("%.3f", d.Mean), fmt.Sprint(d.Peak),
				fmt.Sprintf("%.2f", d.PeakToMean), fmt.Sprintf("%.3f", d.Index),
			})
		}
	}
	if len(t.Rows) > 0 {
		section.Tables = []chart.Table{t}
	}
	poisson := chart.Series{Name: "Poisson", Kind: chart.Line, Soft: true}
	for i := range 101 {
		at := a.Gaps.Mean * math.Pow(10, -3+4.5*float64(i)/100)
		poisson.X, poisson.Y = append(poisson.X, at), append(poisson.Y, 100*(1-math.Exp(-at/a.Gaps.Mean)))
	}
	gaps := chart.Series{Name: "gaps", Kind: chart.Step, X: a.GapShape.X, Y: a.GapShape.Below}
	if gaps.X[0] == 0 { // a logarithmic axis has no 0: begin at its left end
		gaps.X = append([]float64{poisson.X[0]}, gaps.X[1:]...)
	}
	title := fmt.Sprintf("Half of the gaps are %s or less", number.Value(a.Gaps.P50, "s"))
	if a.Gaps.P50 == 0 {
		title = fmt.Sprintf("%s of the requests come with the one before, at the same instant", number.Value(a.GapShape.Below[0], "%"))
	}
	section.Plots = []chart.Plot{{
		Title: title, X: chart.Axis{Label: "gap", Unit: "s", Log: true}, Y: chart.Axis{Label: "share at or below", Unit: "%", Ends: [2]float64{0, 100}},
		Series: []chart.Series{gaps, poisson},
		Note:   "Gaps of 0 count in the share at the left end. Poisson: gaps of independent requests at the same rate.",
	}}
	return section
}

func analysisSessions(a analysis.Analysis) report.Section {
	if a.Turns.Count == 0 {
		return report.Section{}
	}
	section := report.Section{
		Title: fmt.Sprintf("%s of %s turns at the mean", number.Count(a.Stats.Sessions, "session"), number.Value(a.Turns.Mean, "")), Short: "Sessions",
	}
	p := histogram("turns", a.Turns, a.TurnShape)
	p.X.Label, p.X.Unit, p.Y.Label = "turns of a session", "", "share of sessions"
	p.Title = fmt.Sprintf("Half of the sessions have %s or fewer turns, the longest %.0f",
		number.Value(a.Turns.P50, ""), a.Turns.Max)
	section.Plots = []chart.Plot{p}
	t := chart.Table{Columns: chart.Columns("between turns", "turns", "mean", "p50", "p90", "max")}
	for _, m := range []struct {
		name string
		of   stats.Summary
	}{{"from due to due", a.TurnGaps}, {"delay after the answer", a.Delays}, {"wait after a parent", a.Graph.Waits}} {
		if m.of.Count > 0 {
			t.Rows = append(t.Rows, []string{
				m.name, fmt.Sprint(m.of.Count), number.Value(m.of.Mean, "s"), number.Value(m.of.P50, "s"), number.Value(m.of.P90, "s"), number.Value(m.of.Max, "s"),
			})
		}
	}
	if len(t.Rows) > 0 {
		section.Tables = []chart.Table{t}
	}
	if g := a.Graph; g.Parents > 0 {
		section.Text = append(section.Text, fmt.Sprintf("%s, at most %d of a session at once. The longest chain of rows that wait for each other has %s.",
			number.Count(int(g.Agents.Sum), "sub-agent"), g.Parallel, number.Count(int(g.Depth.Max), "row")))
	}
	if u := a.Reuse; a.Stats.RowsWithIDs > 0 {
		section.Text = append(section.Text, fmt.Sprintf("A cache of all prefixes hits %s of the input tokens from the same session and %s from others.",
			number.Value(100*float64(u.WithinTokens)/float64(a.Stats.Input.Sum), "%"), number.Value(100*float64(u.AcrossTokens)/float64(a.Stats.Input.Sum), "%")))
	}
	return section
}

// analysisAIPerf returns AIPerf's report as a table.
func analysisAIPerf(a analysis.Analysis) report.Section {
	s := a.Stats
	section := report.Section{
		Title: "The same as AIPerf has it", Short: "AIPerf's figures",
		Text: []string{fmt.Sprintf("Unique prefixes %d, prefix groups %d, cache hit rate %.10f, prefix reuse ratio %.10f.",
			s.Prefix.Unique, s.Prefix.SharedRoots, s.Prefix.CacheHitRate, s.Prefix.ReuseRatio)},
	}
	t := chart.Table{Columns: chart.Columns("", "mean", "std dev", "min", "p25", "median", "p75", "max")}
	for _, m := range a.AIPerf() {
		row := []string{m.Name}
		for _, v := range []float64{m.Mean, m.StdDev, m.Min, m.P25, m.P50, m.P75, m.Max} {
			if m.Count == 0 {
				v = math.NaN()
			}
			row = append(row, number.Value(v, ""))
		}
		t.Rows = append(t.Rows, row)
	}
	section.Tables = []chart.Table{t}
	return section
}
