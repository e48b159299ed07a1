package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"replayd/internal/chart"
	"replayd/internal/number"
	"replayd/internal/result"
)

const (
	maxSeriesRows  = 300
	maxSeriesPlots = 8
	maxSeriesLines = 6 // per plot
)

func (l runData) serverMetrics() Section {
	s := Section{Short: "Server and GPUs"}
	t := chart.Table{Title: "Series", Folded: true}
	t.Columns = chart.Columns("series", "<labels", "<unit", "per second", "min", "mean", "max")
	byName := map[string][]result.ServerSeries{}
	var gpus, names []string
	for _, b := range l.ServerSeries {
		f, ok := b.Statistics()
		if !ok {
			continue
		}
		perSecond, mean := number.Short(f.Avg), "–"
		if b.Kind == result.Gauge {
			perSecond, mean = mean, perSecond
		}
		if len(t.Rows) < maxSeriesRows {
			t.Rows = append(t.Rows, []string{b.Name, labelsOf(b), b.Unit, perSecond, number.Short(f.Of.Min()), mean, number.Short(f.Of.Max())})
		}
		if b.Kind == result.Gauge && f.Of.Std > 0 {
			switch {
			case byName[b.Name] != nil:
			case b.GPU:
				gpus = append(gpus, b.Name)
			default:
				names = append(names, b.Name)
			}
			byName[b.Name] = append(byName[b.Name], b)
		}
	}
	if len(t.Rows) == 0 {
		return s
	}
	s.Title = fmt.Sprintf("Metrics of the server and the GPUs during the run: %d series", len(l.ServerSeries))
	s.Tables = []chart.Table{t}
	names = append(gpus, names...) // they have fewer series and cost the most
	for _, name := range names[:min(len(names), maxSeriesPlots)] {
		s.Plots = append(s.Plots, l.seriesPlot(name, byName[name]))
	}
	return s
}

func (l runData) seriesPlot(name string, all []result.ServerSeries) chart.Plot {
	first := all[0]
	p := chart.Plot{Title: cmp.Or(first.Help, name), X: chart.Axis{Label: "time", Unit: "s"}, Y: chart.Axis{Label: name, Unit: first.Unit}}
	if len(all) > maxSeriesLines {
		p.Note = fmt.Sprintf("%d of %d series.", maxSeriesLines, len(all))
	}
	for _, b := range all[:min(len(all), maxSeriesLines)] {
		line := chart.Series{Kind: chart.Line}
		if len(all) > 1 {
			line.Name = labelsOf(b)
		}
		for i := range min(len(b.Times), len(b.Values)) {
			line.Add(l.at(b.Times[i].UnixNano()), b.Values[i])
		}
		p.Series = append(p.Series, line)
	}
	return p
}

// labelsOf formats the labels of a series in sorted order. A GPU shows only its number.
func labelsOf(b result.ServerSeries) string {
	if b.GPU && b.Labels["gpu"] != "" {
		return "GPU " + b.Labels["gpu"]
	}
	var parts []string
	for name, value := range b.Labels {
		parts = append(parts, name+"="+value)
	}
	slices.Sort(parts)
	return cutText(strings.Join(parts, " "), 80)
}
