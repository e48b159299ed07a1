package report

import (
	"fmt"
	"time"

	"replayd/internal/chart"
	"replayd/internal/export"
	"replayd/internal/number"
)

// pageSlices is the most slices of a run that has no configured slice duration.
const pageSlices = 18

func (l runData) slices() Section {
	s := Section{Short: "Slices"}
	run := l.Run
	if run.Settings.Slice <= 0 && l.seconds > 0 {
		run.Settings.Slice = time.Duration(timeBin(l.seconds, pageSlices) * float64(time.Second))
	}
	all := run.Slices()
	trend, ok := export.NewTrend(all)
	if !ok {
		return s
	}
	s.Title = fmt.Sprintf("Slices of %s: mean %s from %s to %s", number.Value(run.Settings.Slice.Seconds(), "s"), trend.Name, number.Value(trend.Least, "ms"), number.Value(trend.Most, "ms"))
	s.Text = trend.Lines()
	if text := export.NotInSlices(l.Run); text != "" {
		s.Text = append(s.Text, text)
	}
	t := chart.Table{Title: "Slices", Folded: true}
	t.Columns = chart.Columns("from", "sent", "ok", "TTFT mean", "TTFT p90", "latency mean", "latency p90",
		"tokens/s", "<")
	latency := chart.Series{Name: "mean", Kind: chart.Line}
	p90 := chart.Series{Name: "p90", Kind: chart.Line, Ramp: 2}
	rate := chart.Series{Kind: chart.Step}
	for _, slice := range all {
		cell := func(tag string, p float64) string {
			m, known := slice.Figures.Metric(tag)
			switch {
			case !known:
				return "–"
			case p > 0:
				return number.Value(m.Of.Percentile(p), "ms")
			case m.Single:
				return number.Grouped(m.Value, 1)
			}
			return number.Value(m.Avg(), "ms")
		}
		note := ""
		if !slice.Complete {
			note = "not complete"
		}
		from := l.at(slice.Start)
		t.Rows = append(t.Rows, []string{
			number.Value(from, "s"), number.Whole(len(slice.Rows)), number.Whole(slice.Figures.OK), cell("time_to_first_token", 0), cell("time_to_first_token", 90),
			cell("request_latency", 0), cell("request_latency", 90), cell("output_token_throughput", 0), note,
		})
		if m, known := slice.Figures.Metric(trend.Metric); known {
			middle := from + run.Settings.Slice.Seconds()/2
			latency.Add(middle, m.Avg())
			p90.Add(middle, m.Of.Percentile(90))
		}
		if m, known := slice.Figures.Metric("output_token_throughput"); known {
			rate.Add(from, m.Value)
		}
	}
	x := chart.Axis{Label: "time of sending", Unit: "s"}
	s.Plots = append(s.Plots, chart.Plot{Title: fmt.Sprintf("%s: %s in the first slice, %s in the last", trend.Name, number.Value(trend.First, "ms"), number.Value(trend.Last, "ms")), X: x, Y: chart.Axis{Label: trend.Name, Unit: "ms"}, Series: []chart.Series{latency, p90}, Table: &t})
	if n := len(rate.X); n > 1 {
		rate.Add(rate.X[n-1]+run.Settings.Slice.Seconds(), rate.Y[n-1])
		s.Plots = append(s.Plots, chart.Plot{
			Title: fmt.Sprintf("Output: %s to %s tokens per second", number.Short(trend.Rates[0]), number.Short(trend.Rates[1])), X: x, Y: chart.Axis{Label: "output", Unit: "tokens/s"}, Series: []chart.Series{rate}, Table: &t,
			Note: "Of the requests sent in a slice, over the time from the first of them to the last one’s end.",
		})
	}
	return s
}
