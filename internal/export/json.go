package export

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/internal/stats"
)

// An object is a JSON object that keeps the order of its members.
type object []member

type member struct {
	key   string
	value any
}

// MarshalJSON implements json.Marshaler. It leaves out members that are NaN or infinite.
func (o object) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for _, m := range o {
		if v, number := m.value.(float64); number && (math.IsNaN(v) || math.IsInf(v, 0)) {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = strconv.AppendQuote(b, m.key) // keys are names of metrics and fields
		b = append(b, ':')
		value, err := json.Marshal(m.value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.key, err)
		}
		b = append(b, value...)
	}
	return append(b, '}'), nil
}

func (o *object) add(key string, value any) { *o = append(*o, member{key, value}) }

// usual lists the percentiles of AIPerf's files.
var usual = []float64{1, 5, 10, 25, 50, 75, 90, 95, 99}

// percentilesOf returns the usual percentiles and those of the settings, sorted.
func percentilesOf(s result.Settings) []float64 {
	all := append(slices.Clone(usual), s.Percentiles...)
	slices.Sort(all)
	return slices.Compact(all)
}

// statsObject returns a metric in the format of AIPerf 0.5 (export schema 1.0): a distribution with all its figures, a
// single value as avg. Values are not rounded.
func statsObject(m result.Metric, percentiles []float64) object {
	o := object{{"unit", m.Unit}, {"avg", m.Avg()}}
	if m.Single {
		return o
	}
	return append(o, spreadObject(m.Of, percentiles)...)
}

func spreadObject(d stats.Distribution, percentiles []float64) object {
	var o object
	for _, p := range percentiles {
		o.add(percentileName(p), d.Percentile(p))
	}
	return append(o, object{{"min", d.Min()}, {"max", d.Max()}, {"std", d.Std}}...)
}

// WriteJSON writes profile_export_aiperf.json: the figures of a run in AIPerf's format, with GPU metrics in
// telemetry_data. Replayd adds ledger (the account of all expected requests), prefix_cache (prompt tokens that the
// server had cached) and partial (what is missing from the figures).
func WriteJSON(w io.Writer, r result.Run) error {
	f := r.Statistics()
	o := object{{"schema_version", "1.0"}}
	for _, m := range f.Metrics {
		o.add(m.Tag, statsObject(m, percentilesOf(r.Settings)))
	}
	o.add("input_config", result.ConfigOf(r.Settings))
	o.add("was_cancelled", r.Cut)
	o.add("error_summary", errorSummary(r.Measured(), f.Cancelled))
	if f.First > 0 {
		o.add("start_time", stamp(f.First))
		o.add("end_time", stamp(f.Last))
	}
	if gpus := telemetry(r.ServerSeries); gpus != nil {
		o.add("telemetry_data", gpus)
	}
	if r.Ledger != nil {
		o.add("ledger", r.Ledger)
	}
	if r.Cache != nil {
		o.add("prefix_cache", r.Cache)
	}
	if len(r.Partial) > 0 {
		o.add("partial", r.Partial)
	}
	return writeJSON(w, o)
}

// WriteRuns writes the figures of several runs: the ledger of each run (null if unknown), attainment, service
// attainment and the metrics of profile_export_aiperf.json. Errors in leftOut say why other runs are missing.
func WriteRuns(w io.Writer, runs []result.Run, leftOut []error) error {
	list := make([]object, len(runs))
	for i, r := range runs {
		o := object{{"name", r.Name}, {"input_config", result.ConfigOf(r.Settings)}, {"was_cancelled", r.Cut}, {"ledger", r.Ledger}}
		if r.Ledger == nil {
			o.add("not_known", result.UnknownLedger)
		}
		var figures object
		for _, m := range r.Statistics().Metrics {
			switch m.Tag {
			case "attainment", "service_attainment":
				o.add(m.Tag, m.Value)
			default:
				figures.add(m.Tag, statsObject(m, percentilesOf(r.Settings)))
			}
		}
		o.add("figures", figures)
		o.add("partial", append([]string{}, r.Partial...))
		list[i] = o
	}
	o := object{{"runs", list}}
	if len(leftOut) > 0 {
		var texts []string
		for _, err := range leftOut {
			texts = append(texts, err.Error())
		}
		o.add("left_out", texts)
	}
	return writeJSON(w, o)
}

func writeJSON(w io.Writer, o object) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(o)
}

// stamp formats an instant in Unix ns as ISO 8601 in UTC.
func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000Z") }

// mostErrors caps the list of errors in a file.
const mostErrors = 100

type errorCount struct {
	Details result.ExportError `json:"error_details"`
	Count   int                `json:"count"`
}

// errorSummary counts failures by code, type and message, as AIPerf does, the most frequent first. Messages that differ
// only in numbers count as one; the first message is shown.
func errorSummary(rows []result.Row, cancelled int) []errorCount {
	list := []errorCount{}
	for _, one := range result.Reasons(rows) {
		if len(list) == mostErrors {
			break
		}
		list = append(list, errorCount{*result.FailureOf(result.Row{Outcome: one.Outcome, Status: one.Status, Error: one.Text}), one.Requests})
	}
	if cancelled > 0 {
		list = append(list, errorCount{*result.FailureOf(result.Row{Outcome: measure.Cancelled}), cancelled})
	}
	slices.SortStableFunc(list, func(a, b errorCount) int { return cmp.Compare(b.Count, a.Count) })
	return list
}
