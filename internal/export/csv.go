package export

import (
	"cmp"
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"

	"replayd/internal/result"
)

// WriteCSV writes profile_export_aiperf.csv in AIPerf's two parts: a line with all figures for each distribution, then
// a line for each single value. Numbers have two decimals, ratios have all their decimals.
func WriteCSV(w io.Writer, r result.Run) error {
	all := byTag(r.Statistics())
	percentiles := percentilesOf(r.Settings)

	out := csv.NewWriter(w)
	_ = out.Write(append([]string{"Metric"}, columnNames(percentiles)...)) // Flush returns any error
	for _, m := range all {
		if m.Single {
			continue
		}
		cells := []string{m.Name + " (" + m.Unit + ")"}
		for _, v := range columnValues(m, percentiles) {
			cells = append(cells, decimals(v))
		}
		_ = out.Write(cells)
	}
	out.Flush()
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	_ = out.Write([]string{"Metric", "Value"})
	for _, m := range all {
		if !m.Single {
			continue
		}
		name := m.Name
		if m.Unit != "requests" { // as in AIPerf, a count has no unit after its name
			name += " (" + m.Unit + ")"
		}
		_ = out.Write([]string{name, singleText(m)})
	}
	out.Flush()
	return out.Error()
}

func byTag(f result.Statistics) []result.Metric {
	return slices.SortedFunc(slices.Values(f.Metrics), func(a, b result.Metric) int { return cmp.Compare(a.Tag, b.Tag) })
}

// columnNames returns the names of a distribution's figures in the order of AIPerf's tables.
func columnNames(percentiles []float64) []string {
	names := []string{"avg", "min", "max"}
	for _, p := range percentiles {
		names = append(names, result.PercentileName(p))
	}
	return append(names, "std")
}

// columnValues returns the figures of a metric in the order of columnNames; NaN for a missing figure.
func columnValues(m result.Metric, percentiles []float64) []float64 {
	values := []float64{m.Avg(), m.Of.Min(), m.Of.Max()}
	for _, p := range percentiles {
		values = append(values, m.Of.Percentile(p))
	}
	return append(values, m.Std())
}

// singleText formats a single value. A ratio has all its decimals, because 0.9996 is not 1.00.
func singleText(m result.Metric) string {
	if m.Unit == "ratio" {
		return strconv.FormatFloat(m.Value, 'f', -1, 64)
	}
	return decimals(m.Value)
}

// decimals formats a number with two decimals, and NaN or an infinity as "".
func decimals(v float64) string {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return ""
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// WriteSlicesCSV writes profile_export_aiperf_timeslices.csv: a line for each figure of each metric of each slice.
func WriteSlicesCSV(w io.Writer, r result.Run) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"Timeslice", "Metric", "Unit", "Stat", "Value"})
	percentiles := percentilesOf(r.Settings)
	for _, s := range r.Slices() {
		for _, m := range byTag(s.Figures) {
			line := func(stat, v string) { _ = out.Write([]string{strconv.Itoa(s.Index), m.Name, m.Unit, stat, v}) }
			if m.Single {
				line("avg", singleText(m))
				continue
			}
			values := columnValues(m, percentiles)
			for i, stat := range columnNames(percentiles) {
				line(stat, decimals(values[i]))
			}
		}
	}
	out.Flush()
	return out.Error()
}

// WriteSlicesJSON writes profile_export_aiperf_timeslices.json: each slice with its
// start, end and unrounded figures. Replayd adds the trend over the slices, and the
// ledger of the run, because no slice has the requests that were never sent.
func WriteSlicesJSON(w io.Writer, r result.Run) error {
	all := r.Slices()
	list := make([]object, len(all))
	for i, s := range all {
		o := object{"timeslice_index", s.Index, "start_ns", s.Start, "end_ns", s.End, "is_complete", s.Complete}
		for _, m := range s.Figures.Metrics {
			o.Add(m.Tag, statsObject(m, percentilesOf(r.Settings)))
		}
		list[i] = o
	}
	o := object{"timeslices", list, "slice_duration", r.Settings.Slice.Seconds()}
	o.AddKnown(r.Ledger != nil, "ledger", r.Ledger)
	if t, ok := NewTrend(all); ok {
		o.Add("trend", trendObject(t))
	}
	o.Add("input_config", result.ConfigOf(r.Settings))
	return writeJSON(w, o)
}

func trendObject(t Trend) object {
	return object{
		"metric", t.Metric, "min", t.Least, "max", t.Most, "variation_percent", t.Variation(),
		"first", t.First, "last", t.Last,
		"output_token_throughput_min", t.Rates[0], "output_token_throughput_max", t.Rates[1],
		"warm_up",
		object{
			"test", "Mann-Whitney U, one-sided", "detected", t.WarmUp.Detected(), "u", t.WarmUp.U,
			"first", t.WarmUp.First, "others", t.WarmUp.Others, "p", t.WarmUp.P, "cliffs_delta", t.WarmUp.Delta,
		},
		"degradation",
		object{
			"test", "Mann-Kendall", "detected", t.Drift.Detected() > 0, "s", t.Drift.S, "slices", t.Drift.N,
			"tau", t.Drift.Tau, "p", t.Drift.P,
		},
	}
}
