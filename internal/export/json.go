package export

import (
	"cmp"
	"encoding/json"
	"io"
	"slices"
	"time"

	"replayd/internal/measure"
	"replayd/internal/number"
	"replayd/internal/result"
	"replayd/internal/stats"
)

type object = number.Object

// usual lists the percentiles of AIPerf's files.
var usual = []float64{1, 5, 10, 25, 50, 75, 90, 95, 99}

// percentilesOf returns the usual percentiles and those of the settings, sorted.
func percentilesOf(s result.Settings) []float64 { return result.Percentiles(usual, s.Percentiles) }

// statsObject returns a metric in the format of AIPerf 0.5 (export schema 1.0): a distribution with all its figures, a
// single value as avg. Values are not rounded.
func statsObject(m result.Metric, percentiles []float64) object {
	o := object{"unit", m.Unit, "avg", m.Avg()}
	if m.Single {
		return o
	}
	return append(o, spreadObject(m.Of, percentiles)...)
}

func spreadObject(d stats.Distribution, percentiles []float64) object {
	var o object
	for _, p := range percentiles {
		o.Add(result.PercentileName(p), d.Percentile(p))
	}
	return append(o, object{"min", d.Min(), "max", d.Max(), "std", d.Std}...)
}

// WriteJSON writes profile_export_aiperf.json: the figures of a run in AIPerf's format, with GPU metrics in
// telemetry_data. Replayd adds ledger (the account of all expected requests), lengths (asked and counted), prefix_cache
// (prompt tokens that the server had cached) and partial (what is missing from the figures).
func WriteJSON(w io.Writer, r result.Run) error {
	f := r.Statistics()
	o := object{"schema_version", "1.0"}
	for _, m := range f.Metrics {
		o.Add(m.Tag, statsObject(m, percentilesOf(r.Settings)))
	}
	o.Add("input_config", result.ConfigOf(r.Settings))
	o.Add("was_cancelled", r.Cut)
	o.Add("error_summary", errorSummary(r.Measured(), f.Cancelled))
	o.AddKnown(f.First > 0, "start_time", stamp(f.First))
	o.AddKnown(f.First > 0, "end_time", stamp(f.Last))
	gpus := telemetry(r.ServerSeries)
	o.AddKnown(gpus != nil, "telemetry_data", gpus)
	o.AddKnown(r.Ledger != nil, "ledger", r.Ledger)
	o.Add("lengths", r.Lengths())
	o.AddKnown(r.Cache != nil, "prefix_cache", r.Cache)
	o.AddKnown(r.Reading != nil, "reading", r.Reading)
	o.AddKnown(len(r.Partial) > 0, "partial", r.Partial)
	return writeJSON(w, o)
}

// WriteRuns writes the figures of several runs: the ledger of each run (null if unknown), attainment, service
// attainment and the metrics of profile_export_aiperf.json. differences are those of the runs to the first. Errors in
// leftOut say why other runs are missing.
func WriteRuns(w io.Writer, runs []result.Run, differences []number.Object, leftOut []error) error {
	list := make([]object, len(runs))
	for i, r := range runs {
		o := object{
			"name", r.Name, "input_config", result.ConfigOf(r.Settings), "was_cancelled", r.Cut, "ledger", r.Ledger,
		}
		o.AddKnown(r.Ledger == nil, "not_known", result.UnknownLedger)
		var figures object
		for _, m := range r.Statistics().Metrics {
			switch m.Tag {
			case "attainment", "service_attainment":
				o.Add(m.Tag, m.Value)
			default:
				figures.Add(m.Tag, statsObject(m, percentilesOf(r.Settings)))
			}
		}
		o.Add("figures", figures)
		o.Add("lengths", r.Lengths())
		o.AddKnown(r.Reading != nil, "reading", r.Reading)
		o.Add("partial", append([]string{}, r.Partial...))
		list[i] = o
	}
	o := object{"runs", list}
	o.AddKnown(len(differences) > 0, "differences", differences)
	var texts []string
	for _, err := range leftOut {
		texts = append(texts, err.Error())
	}
	o.AddKnown(len(texts) > 0, "left_out", texts)
	return writeJSON(w, o)
}

func writeJSON(w io.Writer, o object) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(o)
}

// stamp formats an instant in Unix ns as ISO 8601 in UTC.
func stamp(ns int64) string { return time.Unix(0, ns).UTC().Format("2006-01-02T15:04:05.000000Z") }

// maxErrors caps the list of errors in a file.
const maxErrors = 100

type errorCount struct {
	Details result.ExportError `json:"error_details"`
	Count   int                `json:"count"`
}

// errorSummary counts failures by code, type and message, as AIPerf does, the most frequent first. Messages that differ
// only in numbers count as one; the first message is shown.
func errorSummary(rows []result.Row, cancelled int) []errorCount {
	list := []errorCount{}
	reasons := result.Reasons(rows)
	for _, one := range reasons[:min(len(reasons), maxErrors)] {
		list = append(list, errorCount{*result.FailureOf(result.Row{Outcome: one.Outcome, Status: one.Status, Error: one.Text}), one.Requests})
	}
	if cancelled > 0 {
		list = append(list, errorCount{*result.FailureOf(result.Row{Outcome: measure.Cancelled}), cancelled})
	}
	slices.SortStableFunc(list, func(a, b errorCount) int { return cmp.Compare(b.Count, a.Count) })
	return list
}
