package export

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"replayd/internal/result"
)

// WriteServerMetrics writes server_metrics_export.json, AIPerf's schema 1.0
// (docs/server-metrics/server-metrics-json-schema.md): the server's metrics during the run, by name, series and source.
// Counters are rates, gauges are distributions.
func WriteServerMetrics(w io.Writer, r result.Run) error {
	server := slices.DeleteFunc(slices.Clone(r.ServerSeries), func(b result.ServerSeries) bool { return b.GPU })
	groups := map[string][]result.ServerSeries{}
	for _, b := range server {
		groups[b.Name] = append(groups[b.Name], b)
	}
	var metrics object
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		var series []object
		for _, b := range groups[name] {
			if o, ok := seriesObject(b, percentilesOf(r.Settings)); ok {
				series = append(series, o)
			}
		}
		if len(series) > 0 {
			first := groups[name][0]
			metrics.Add(name, object{
				"type", first.Kind, "description", first.Help, "unit", orNull(first.Unit), "series", series,
			})
		}
	}
	o := object{
		"schema_version", "1.0", "summary", sourceSummary(server), "metrics", metrics,
		"input_config", result.ConfigOf(r.Settings),
	}
	return writeJSON(w, o)
}

// orNull returns a value, or nil for one that is not known.
func orNull[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

func seriesObject(b result.ServerSeries, percentiles []float64) (object, bool) {
	f, ok := b.Statistics()
	if !ok {
		return nil, false
	}
	o := object{"endpoint_url", b.Source}
	o.AddKnown(len(b.Labels) > 0, "labels", b.Labels)
	if b.Kind == result.Gauge {
		o.Add("stats", append(object{"avg", f.Avg}, spreadObject(f.Of, percentiles)...))
	} else {
		o.Add("stats", object{
			"total", f.Total, "rate", f.Avg, "rate_min", f.Of.Min(), "rate_max", f.Of.Max(), "rate_std", f.Of.Std,
		})
	}
	return o, true
}

// sourceSummary lists the sources, and the times of the first and the last reading.
func sourceSummary(rows []result.ServerSeries) object {
	var names []string
	var instants []int64
	for _, b := range rows {
		names = append(names, b.Source)
		if n := len(b.Times); n > 0 {
			instants = append(instants, b.Times[0].UnixNano(), b.Times[n-1].UnixNano())
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	o := object{"endpoints_configured", names, "endpoints_successful", names}
	if len(instants) > 0 {
		o.Add("start_time", stamp(slices.Min(instants)))
		o.Add("end_time", stamp(slices.Max(instants)))
	}
	return o
}

// A gpu has the figures of a GPU in AIPerf's telemetry_data.
type gpu struct {
	Index    int    `json:"gpu_index"`
	Name     string `json:"gpu_name"`
	UUID     string `json:"gpu_uuid"`
	Hostname any    `json:"hostname"`
	Metrics  object `json:"metrics"`
}

// telemetry returns AIPerf's telemetry_data: the figures of each series by source and GPU, a counter as its rate. It
// returns nil without GPUs.
func telemetry(rows []result.ServerSeries) object {
	var read []result.ServerSeries
	endpoints := map[string]map[string]map[string]*gpu{}
	for _, b := range rows {
		f, ok := b.Statistics()
		if !b.GPU || !ok {
			continue
		}
		read = append(read, b)
		if endpoints[b.Source] == nil {
			endpoints[b.Source] = map[string]map[string]*gpu{"gpus": {}}
		}
		gpus, key := endpoints[b.Source]["gpus"], "gpu_"+b.Labels["gpu"]
		if g := gpus[key]; g != nil && g.UUID != b.Labels["uuid"] { // a GPU of another host with the same number
			key += "_" + b.Labels["uuid"]
		}
		if gpus[key] == nil {
			index, _ := strconv.Atoi(b.Labels["gpu"])
			gpus[key] = &gpu{index, b.Labels["model_name"], b.Labels["uuid"], orNull(b.Labels["hostname"]), nil}
		}
		unit, percentiles := b.Unit, usual
		if b.Kind == result.Counter {
			unit, percentiles = unit+"/sec", nil
		}
		gpus[key].Metrics.Add(b.Name, append(object{"unit", unit, "avg", f.Avg}, spreadObject(f.Of, percentiles)...))
	}
	if len(endpoints) == 0 {
		return nil
	}
	return object{"summary", sourceSummary(read), "endpoints", endpoints}
}

// WriteServerSeries prints the series of the server and the GPUs, a line each: a counter's rate per
// second with the least and the greatest between two readings, a gauge's mean, least and greatest value, the mean of
// a histogram. Names are without replayd's prefix, and of the labels those stand there that tell series apart. Series of
// GPUs that were 0 all the time are counted below it. Beside GPUs it has their energy per output token of an ok request.
func WriteServerSeries(w io.Writer, r result.Run, width int) error {
	rows := slices.Clone(r.ServerSeries)
	slices.SortStableFunc(rows, func(a, b result.ServerSeries) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Source, b.Source), cmp.Compare(labelText(a.Labels), labelText(b.Labels)))
	})
	telling := tellingLabels(rows)
	named := map[string]string{} // series, by their names in the table
	for _, b := range rows {
		name := besideName(b)
		if named[name] = cmp.Or(named[name], b.Name); named[name] != b.Name {
			named[name] = "several" // memory in use has bytes and a ratio
		}
	}
	var cells [][]string
	idle := 0
	for i, b := range rows {
		c := besideCells(b, rows[i+1:])
		switch f, _ := b.Statistics(); {
		case c == nil:
		case b.GPU && f.Of.Min() == 0 && f.Of.Max() == 0:
			idle++
		default:
			name := besideName(b)
			if named[name] != b.Name {
				name = strings.TrimPrefix(b.Name, "replayd_")
			}
			cells = append(cells, append([]string{name + tellingText(b, telling)}, c...))
		}
	}
	if each, known := joulesPerToken(r); known {
		none := grouped(math.NaN())
		cells = append(cells, []string{"gpu_energy_per_output_token", "joules", small(each), none, none})
	}
	if len(cells) == 0 {
		return nil
	}
	out := &strings.Builder{}
	writeBox(out, "replayd | Server and GPU Metrics", []string{"Metric", "Unit", "avg", "min", "max"}, cells, width, "min")
	if idle > 0 {
		fmt.Fprintf(out, "Series of the GPUs that were 0 all the time, and are left out: %d\n", idle)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// besideCells returns the columns of a series after its name. It returns nil if the series has no figures, and for the
// sum of a histogram, which is shown with the count.
func besideCells(b result.ServerSeries, later []result.ServerSeries) []string {
	f, ok := b.Statistics()
	base, isCount := strings.CutSuffix(b.Name, "_count")
	unit := cmp.Or(b.Unit, "1")
	switch {
	case !ok:
		return nil
	case b.Kind == result.Gauge:
		return []string{unit, grouped(f.Avg), grouped(f.Of.Min()), grouped(f.Of.Max())}
	case strings.HasSuffix(b.Name, "_sum"):
		return nil
	case !isCount:
		return []string{unit + "/s", grouped(f.Avg), grouped(f.Of.Min()), grouped(f.Of.Max())}
	}
	at := slices.IndexFunc(later, func(s result.ServerSeries) bool {
		return s.Name == base+"_sum" && s.Source == b.Source && maps.Equal(s.Labels, b.Labels)
	})
	if at < 0 || f.Total == 0 {
		return nil
	}
	sum, ok := later[at].Statistics()
	if !ok {
		return nil
	}
	return []string{unit, small(sum.Total / f.Total), grouped(math.NaN()), grouped(math.NaN())}
}

// besideName returns the name of a series in the table, without its unit.
func besideName(b result.ServerSeries) string {
	name := strings.TrimPrefix(b.Name, "replayd_")
	return strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_count"), "_total"), "_"+b.Unit)
}

// tellingText returns the labels that tell a series from others of its name.
func tellingText(b result.ServerSeries, telling map[string]bool) string {
	labels := withSource(b)
	maps.DeleteFunc(labels, func(name, _ string) bool { return !telling[name] })
	return labelText(labels)
}

// withSource returns the labels of a series with its source.
func withSource(b result.ServerSeries) map[string]string {
	labels := map[string]string{"source": b.Source}
	maps.Copy(labels, b.Labels)
	return labels
}

// tellingLabels returns the labels that have more than one value among series of the same name.
func tellingLabels(rows []result.ServerSeries) map[string]bool {
	seen := map[[2]string]string{}
	telling := map[string]bool{}
	for _, b := range rows {
		for name, value := range withSource(b) {
			key := [2]string{b.Name, name}
			if first, known := seen[key]; known && first != value {
				telling[name] = true
			}
			seen[key] = value
		}
	}
	return telling
}

// small formats a number so that only 0 is shown as 0.00.
func small(v float64) string {
	if v != 0 && math.Abs(v) < 1 {
		return strconv.FormatFloat(v, 'g', 3, 64)
	}
	return grouped(v)
}

// labelText formats labels as in the Prometheus text format, or as "" if there are none.
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
