package main

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"

	"replayd/internal/chart"
	"replayd/internal/number"
	"replayd/internal/report"
	"replayd/internal/stats"
	"replayd/internal/trace/analysis"
)

// analysisPage returns an analysis as a page with charts.
func analysisPage(a analysis.Analysis) report.Page {
	s := a.Stats
	p := report.Page{
		Title: filepath.Base(s.Path), Warnings: s.Warnings,
		Facts: report.Facts{
			{Name: "file", Text: s.Path},
			{Name: "content", Text: fmt.Sprintf("%s, %s", s.Format, number.Value(float64(s.Bytes), "bytes"))},
			{Name: "sha256", Text: s.SHA256},
		},
		Tiles: []report.Tile{{Name: "requests", Text: number.Value(float64(s.Requests), "")}},
	}
	lead := []string{number.Count(s.Requests, "request")}
	if length := (s.Span - s.First).Seconds(); length > 0 {
		lead[0] += " in " + number.Value(length, "s")
		p.Tiles = append(p.Tiles,
			report.Tile{Name: "requests per minute", Text: number.Value(s.Rate*60, "")},
			report.Tile{Name: "variation of gaps", Text: number.Value(s.GapCV, ""), Note: "Poisson: 1"})
	}
	for _, m := range []struct {
		name string
		of   stats.Summary
	}{{"input", s.Input}, {"output", s.Output}} {
		if m.of.Count > 0 {
			p.Tiles = append(p.Tiles, report.Tile{Name: m.name, Text: number.Value(m.of.Mean, "tokens"), Note: "mean; p99 " + number.Value(m.of.P99, "")})
			lead = append(lead, number.Value(m.of.Mean, "tokens")+" of "+m.name+" at the mean")
		}
	}
	if s.RowsWithIDs > 0 {
		p.Facts = append(p.Facts, report.Fact{Name: "blocks", Text: fmt.Sprintf("%s of %d tokens", number.Value(float64(s.Prefix.Blocks), ""), s.BlockTokens)})
		p.Tiles = append(p.Tiles, report.Tile{Name: "input that came before", Text: share(s.Prefix.HitTokenRatio), Note: "what an endless cache hits"})
		lead = append(lead, share(s.Prefix.HitTokenRatio)+" of the input came before")
	}
	p.Lead = strings.Join(lead, ", ") + "."
	p.Add(analysisLoad(a), analysisLengths(a), analysisPrefixes(a), analysisGaps(a), analysisSessions(a))
	p.Add(analysisAIPerf(a))
	return p
}

func share(part float64) string { return number.Value(100*part, "%") }

// overTime returns a series with a value for each bin of the trace's curve. It leaves out the last bin, which may be
// incomplete, unless that is the only one.
func overTime(a analysis.Analysis, value func(bin int) float64) chart.Series {
	s := chart.Series{Kind: chart.Step}
	width := a.Stats.Curve.Bin.Seconds()
	bins := len(a.Stats.Curve.Requests)
	if bins > 1 {
		bins--
	}
	for i := range bins + 1 { // the last value holds until the end of its bin
		s.X, s.Y = append(s.X, float64(i)*width), append(s.Y, value(min(i, bins-1)))
	}
	return s
}

func binNote(a analysis.Analysis) string {
	return fmt.Sprintf("By %s of the trace; a last one that is not whole is left out.", number.Value(a.Stats.Curve.Bin.Seconds(), "s"))
}

func analysisLoad(a analysis.Analysis) report.Section {
	c := a.Stats.Curve
	if len(c.Requests) == 0 {
		return report.Section{}
	}
	section := report.Section{Title: "Requests over time", Short: "Load"}
	if d := a.Minutes; d.Windows > 0 {
		section.Title = fmt.Sprintf("The busiest minute has %s, %s times the mean", number.Value(float64(d.Peak), "requests"), number.Value(d.PeakToMean, ""))
	}
	per := func(values []int64) chart.Series {
		return overTime(a, func(i int) float64 { return float64(values[i]) / c.Bin.Seconds() })
	}
	time := chart.Axis{Label: "time in the trace", Unit: "s"}
	in, out := per(c.InputTokens), per(c.OutputTokens)
	in.Name, out.Name = "input", "output"
	section.Plots = []chart.Plot{
		{
			Title: fmt.Sprintf("%s requests/s at the mean", number.Value(a.Stats.Rate, "")), X: time,
			Y: chart.Axis{Label: "requests", Unit: "requests/s"}, Series: []chart.Series{per(c.Requests)}, Note: binNote(a), Wide: true,
		},
		{Title: tokenRates(a), X: time, Y: chart.Axis{Label: "tokens", Unit: "tokens/s"}, Series: []chart.Series{in, out}, Note: binNote(a), Wide: true},
	}
	t := chart.Table{
		Title: "Windows of " + number.Value(a.Interval.Seconds(), "s"), Folded: true,
		Columns: chart.Columns("from, min", "to, min", "requests", "per minute",
			"input tokens", "output tokens", "ideal hits"),
	}
	for _, v := range a.Intervals {
		t.Rows = append(t.Rows, []string{
			fmt.Sprintf("%.4g", v.From.Minutes()), fmt.Sprintf("%.4g", v.To.Minutes()), fmt.Sprint(v.Requests), fmt.Sprintf("%.1f", v.PerMinute()),
			fmt.Sprint(v.InputTokens), fmt.Sprint(v.OutputTokens), share(portion(v.CacheTokens, v.InputTokens)),
		})
	}
	section.Tables = []chart.Table{t}
	return section
}

func tokenRates(a analysis.Analysis) string {
	length := (a.Stats.Span - a.Stats.First).Seconds()
	if length == 0 {
		return "Tokens asked for"
	}
	return fmt.Sprintf("%s in and %s out at the mean", number.Value(float64(a.Stats.Input.Sum)/length, "tokens/s"), number.Value(float64(a.Stats.Output.Sum)/length, "tokens/s"))
}

func portion(part, whole int64) float64 {
	if whole == 0 {
		return math.NaN()
	}
	return float64(part) / float64(whole)
}

func analysisLengths(a analysis.Analysis) report.Section {
	s := a.Stats
	if a.Total.Count == 0 {
		return report.Section{}
	}
	section := report.Section{
		Short: "Lengths",
		Title: fmt.Sprintf("Half of the prompts have %s or less, one in a hundred over %s", number.Value(s.Input.P50, "tokens"), number.Value(s.Input.P99, "tokens")),
	}
	both := chart.Plot{Title: "Share of requests up to a length", Y: chart.Axis{Label: "share at or below", Unit: "%", Ends: [2]float64{0, 100}}}
	for _, m := range []struct {
		name  string
		of    stats.Summary
		shape stats.Shape
	}{{"input", s.Input, a.InputShape}, {"output", s.Output, a.OutputShape}} {
		if m.of.Count == 0 {
			continue
		}
		section.Plots = append(section.Plots, histogram(m.name, m.of, m.shape))
		both.X = chart.Axis{Label: "length", Unit: "tokens", Log: both.X.Log || m.shape.Log}
		both.Series = append(both.Series, chart.Series{Name: m.name, Kind: chart.Step, X: m.shape.X, Y: m.shape.Below})
	}
	ranges := chart.Plot{
		X: chart.Axis{Label: "tokens"}, Y: chart.Axis{Label: "share of requests", Unit: "%"},
		Table: &chart.Table{Columns: chart.Columns("tokens", "requests", "share")},
	}
	bars := chart.Series{Kind: chart.Bars}
	most := 0
	for i, z := range a.Sizes {
		name := fmt.Sprintf("%d–%dk", z.From/1000, z.Below/1000)
		if z.Below == 0 {
			name = fmt.Sprintf("%dk +", z.From/1000)
		}
		ranges.X.Names = append(ranges.X.Names, name)
		bars.X, bars.Y = append(bars.X, float64(i)), append(bars.Y, 100*z.Share)
		ranges.Table.Rows = append(ranges.Table.Rows, []string{name, fmt.Sprint(z.Rows), share(z.Share)})
		if z.Rows > a.Sizes[most].Rows {
			most = i
		}
	}
	ranges.Title = fmt.Sprintf("%s of requests have %s tokens, in and out", share(a.Sizes[most].Share), ranges.X.Names[most])
	ranges.Series = []chart.Series{bars}
	section.Plots = append(section.Plots, both, ranges)
	return section
}

func histogram(name string, of stats.Summary, shape stats.Shape) chart.Plot {
	p := chart.Plot{
		Title: fmt.Sprintf("%s: p50 %s, p90 %s, p99 %s", strings.ToUpper(name[:1])+name[1:], number.Value(of.P50, ""), number.Value(of.P90, ""), number.Value(of.P99, "tokens")),
		X:     chart.Axis{Label: name, Unit: "tokens", Log: shape.Log}, Y: chart.Axis{Label: "share of requests", Unit: "%"},
	}
	bars := chart.Series{Kind: chart.Bars, X: shape.Edges}
	for _, n := range shape.Counts {
		bars.Y = append(bars.Y, 100*float64(n)/float64(of.Count))
	}
	p.Series = []chart.Series{bars}
	p.Marks = []chart.Mark{
		{Name: "p50", At: of.P50, X: true}, {Name: "p90", At: of.P90, X: true}, {Name: "p99", At: of.P99, X: true},
	}
	return p
}
