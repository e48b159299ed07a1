package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// WriteServerMetrics writes server_metrics_export.json, AIPerf's schema 1.0 (docs/server-metrics/server-metrics-json-schema.md):
// what the server counted while a run went on, by name, series and source; counters as rates, gauges as distributions.
func WriteServerMetrics(w io.Writer, r Run) error {
	groups := map[string][]Beside{}
	var names []string
	var sources sourceTimes
	for _, b := range r.Beside {
		if b.GPU {
			continue
		}
		sources.see(b)
		if groups[b.Name] == nil {
			names = append(names, b.Name)
		}
		groups[b.Name] = append(groups[b.Name], b)
	}
	slices.Sort(names)
	var metrics object
	for _, name := range names {
		series := []object{}
		for _, b := range groups[name] {
			if o, ok := seriesObject(b, percentilesOf(r.Settings)); ok {
				series = append(series, o)
			}
		}
		if len(series) > 0 {
			first := groups[name][0]
			metrics.add(name, object{{"type", first.Kind}, {"description", first.Help}, {"unit", orNull(first.Unit)}, {"series", series}})
		}
	}
	o := object{{"schema_version", "1.0"}, {"summary", sources.object()}, {"metrics", metrics}, {"input_config", config(r.Settings)}}
	return writeJSON(w, o)
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func seriesObject(b Beside, percentiles []float64) (object, bool) {
	f, ok := b.Figures()
	if !ok {
		return nil, false
	}
	o := object{{"endpoint_url", b.Source}}
	if len(b.Labels) > 0 {
		o.add("labels", b.Labels)
	}
	if b.Kind == Gauge {
		stats := object{{"avg", f.Of.Mean}}
		return append(o, member{"stats", append(stats, spreadObject(f.Of, percentiles)...)}), true
	}
	stats := object{{"total", f.Total}, {"rate", f.Rate}, {"rate_min", f.RateMin}, {"rate_max", f.RateMax}, {"rate_std", f.RateStd}}
	return append(o, member{"stats", stats}), true
}

// sourceTimes is which sources were read, and from when to when.
type sourceTimes struct {
	names       []string
	first, last time.Time
}

func (s *sourceTimes) see(b Beside) {
	if !slices.Contains(s.names, b.Source) {
		s.names = append(s.names, b.Source)
	}
	if len(b.Times) == 0 {
		return
	}
	if first := b.Times[0]; s.first.IsZero() || first.Before(s.first) {
		s.first = first
	}
	if last := b.Times[len(b.Times)-1]; last.After(s.last) {
		s.last = last
	}
}

func (s *sourceTimes) object() object {
	slices.Sort(s.names)
	o := object{{"endpoints_configured", s.names}, {"endpoints_successful", s.names}}
	if !s.first.IsZero() {
		o.add("start_time", stamp(s.first.UnixNano()))
		o.add("end_time", stamp(s.last.UnixNano()))
	}
	return o
}

// telemetry is AIPerf's telemetry_data: by source and GPU, the figures of each series; a counter as its rate. Nil without GPUs.
func telemetry(rows []Beside) object {
	var sources sourceTimes
	type gpu struct {
		head    object
		metrics object
	}
	endpoints := map[string]map[string]*gpu{}
	for _, b := range rows {
		f, ok := b.Figures()
		if !b.GPU || !ok {
			continue
		}
		sources.see(b)
		if endpoints[b.Source] == nil {
			endpoints[b.Source] = map[string]*gpu{}
		}
		key := "gpu_" + b.Labels["gpu"]
		g := endpoints[b.Source][key]
		if g == nil {
			index, _ := strconv.Atoi(b.Labels["gpu"])
			g = &gpu{head: object{{"gpu_index", index}, {"gpu_name", b.Labels["model_name"]}, {"gpu_uuid", b.Labels["uuid"]}, {"hostname", orNull(b.Labels["hostname"])}}}
			endpoints[b.Source][key] = g
		}
		stats := object{{"unit", b.Unit}}
		if b.Kind == Gauge {
			stats.add("avg", f.Of.Mean)
			stats = append(stats, spreadObject(f.Of, usual)...)
		} else {
			stats = object{{"unit", b.Unit + "/sec"}, {"avg", f.Rate}, {"min", f.RateMin}, {"max", f.RateMax}, {"std", f.RateStd}}
		}
		g.metrics.add(b.Name, stats)
	}
	if len(endpoints) == 0 {
		return nil
	}
	list := map[string]object{}
	for source, gpus := range endpoints {
		all := map[string]object{}
		for key, g := range gpus {
			all[key] = append(g.head, member{"metrics", g.metrics})
		}
		list[source] = object{{"gpus", all}}
	}
	return object{{"summary", sources.object()}, {"endpoints", list}}
}

// WriteBeside prints what the server and the GPUs said of themselves, a line a series: a counter's rate per second with the least
// and the greatest between two readings, a gauge's mean, least and greatest value.
func WriteBeside(w io.Writer, r Run) error {
	rows := slices.Clone(r.Beside)
	slices.SortStableFunc(rows, func(a, b Beside) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source), cmp.Compare(labelText(a.Labels), labelText(b.Labels)))
	})
	var cells [][]string
	for _, b := range rows {
		f, ok := b.Figures()
		if !ok {
			continue
		}
		name := b.Name + labelText(b.Labels)
		if b.Kind == Gauge {
			cells = append(cells, []string{name, b.Source, orNone(b.Unit), grouped(f.Of.Mean), grouped(f.Of.Min()), grouped(f.Of.Max())})
			continue
		}
		cells = append(cells, []string{name, b.Source, orNone(b.Unit) + "/s", grouped(f.Rate), grouped(f.RateMin), grouped(f.RateMax)})
	}
	if len(cells) == 0 {
		return nil
	}
	out := &strings.Builder{}
	writeBox(out, "replayd | Server and GPU Metrics", []string{"Series", "Source", "Unit", "avg", "min", "max"}, cells)
	_, err := io.WriteString(w, out.String())
	return err
}

func orNone(unit string) string { return cmp.Or(unit, "1") }

// labelText is labels as a page of metrics has them; "" of none.
func labelText(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	var parts []string
	for name, value := range labels {
		parts = append(parts, fmt.Sprintf("%s=%q", name, value))
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}
