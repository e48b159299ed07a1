package export

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"replayd/internal/result"
	"replayd/internal/stats"
)

// sliceWidth is the width of the table in AIPerf's document on time slices.
const sliceWidth = 90

// WriteSlices prints a line for each slice, then the trend.
func WriteSlices(w io.Writer, r result.Run) error {
	all := r.Slices()
	if len(all) == 0 {
		return nil
	}
	out := &strings.Builder{}
	rule := strings.Repeat("=", sliceWidth)
	seconds := func(index int) string {
		return strconv.FormatFloat(float64(index)*r.Settings.Slice.Seconds(), 'f', -1, 64)
	}
	fmt.Fprintf(out, "%s\nTIME-SLICED PERFORMANCE ANALYSIS (%s-second slices)\n%s\n\n", rule, seconds(1), rule)
	fmt.Fprintln(out, "Slice |    Time     | Requests |     TTFT (ms)     |   Latency (ms)    | Throughput")
	fmt.Fprintln(out, "  #   |   Window    |  Count   |    avg (   p90)   |    avg (   p90)   | (tokens/s)")
	fmt.Fprintln(out, strings.Repeat("-", sliceWidth))
	both := func(s result.Slice, tag string) string {
		m, ok := s.Figures.Metric(tag)
		if !ok {
			return "   N/A (   N/A)"
		}
		return fmt.Sprintf("%6.0f (%6.0f)", m.Avg(), m.Of.Percentile(90))
	}
	for _, s := range all {
		rate := "N/A"
		if m, ok := s.Figures.Metric("output_token_throughput"); ok {
			rate = fmt.Sprintf("%.0f", m.Value)
		}
		fmt.Fprintf(out, "%5d | %11s | %8d |  %s  |  %s  | %10s\n", s.Index, seconds(s.Index)+"-"+seconds(s.Index+1)+"s", len(s.Rows),
			both(s, "time_to_first_token"), both(s, "request_latency"), rate)
	}
	fmt.Fprintln(out, rule)
	if text := NotInSlices(r); text != "" {
		fmt.Fprintln(out, text)
	}
	if t, ok := NewTrend(all); ok {
		fmt.Fprintf(out, "\nTREND ANALYSIS:\n  %s\n%s\n", strings.Join(t.Lines(), "\n  "), rule)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// NotInSlices notes that slices hold only requests that were sent,
// if more were expected. It returns "" if no request was dropped.
func NotInSlices(r result.Run) string {
	switch {
	case r.Picked:
		return ""
	case r.Ledger == nil:
		return "Slices are of the requests that were sent; " + result.UnknownLedger + "."
	case r.Ledger.Unsent() == 0:
		return ""
	}
	return "Slices are of the requests that were sent; " + result.NeverSentText(*r.Ledger) + "."
}

// Lines describes the trend.
func (t Trend) Lines() []string {
	lines := []string{
		fmt.Sprintf("%s Range: %.0fms - %.0fms (variation: %.1f%%)", t.Name, t.Least, t.Most, t.Variation()),
	}
	if t.Rates[0] <= t.Rates[1] {
		lines = append(lines, fmt.Sprintf("Throughput Range: %.0f - %.0f tokens/s", t.Rates[0], t.Rates[1]))
	}
	lines = append(lines, fmt.Sprintf("First slice %s: %.0fms vs. Last slice: %.0fms", t.Name, t.First, t.Last))

	test := fmt.Sprintf("Mann-Whitney U, first slice against the others: U=%g, n=%d and %d, one-sided %s, Cliff's delta=%+.2f",
		t.WarmUp.U, t.WarmUp.First, t.WarmUp.Others, probability(t.WarmUp.P), t.WarmUp.Delta)
	switch {
	case math.IsNaN(t.WarmUp.P):
		lines = append(lines, fmt.Sprintf("Warm-up: cannot be said, there are %d requests in the first slice and %d in the others", t.WarmUp.First, t.WarmUp.Others))
	case t.WarmUp.Detected():
		lines = append(lines, fmt.Sprintf("Warm-up detected: %s was higher in the first slice (%s)", t.Name, test))
	default:
		lines = append(lines, fmt.Sprintf("No warm-up detected (%s)", test))
	}

	which := "over the slices"
	if t.WithoutWarmUp {
		which = "over the slices after the first"
	}
	test = fmt.Sprintf("Mann-Kendall %s: S=%d, n=%d, %s, tau=%+.2f", which, t.Drift.S, t.Drift.N, probability(t.Drift.P), t.Drift.Tau)
	switch {
	case math.IsNaN(t.Drift.P):
		lines = append(lines, fmt.Sprintf("Degradation: cannot be said of %d slices", t.Drift.N))
	case t.Drift.Detected() > 0:
		lines = append(lines, fmt.Sprintf("Degradation detected: %s rises (%s)", t.Name, test))
	case t.Drift.Detected() < 0:
		lines = append(lines, fmt.Sprintf("No degradation: %s falls (%s)", t.Name, test))
	default:
		lines = append(lines, fmt.Sprintf("No degradation detected (%s)", test))
	}
	return lines
}

// probability formats a p-value with two digits; below 0.0001 it says only that.
func probability(p float64) string {
	if p < 0.0001 {
		return "p<0.0001"
	}
	return "p=" + strconv.FormatFloat(p, 'g', 2, 64)
}

// A Trend is the trend of TTFT over the slices of a run, or of request latency if there is no TTFT.
type Trend struct {
	Metric        string // its tag
	Name          string // TTFT or latency
	Least, Most   float64
	First, Last   float64       // mean of the first slice and of the last, ms
	Rates         [2]float64    // least and greatest output tokens/s
	WarmUp        stats.RankSum // the first slice's requests against all others'
	Drift         stats.MannKendall
	WithoutWarmUp bool // Drift leaves the first slice out, because a warm-up was detected
}

// Variation is (Most − Least) ÷ Least in percent, as AIPerf's document and tools print it.
func (t Trend) Variation() float64 { return 100 * (t.Most - t.Least) / t.Least }

// NewTrend computes the trend of the slices of a run. It returns false if fewer than two slices have the metric.
func NewTrend(all []result.Slice) (Trend, bool) {
	t := Trend{
		Metric: "time_to_first_token", Name: "TTFT", Least: math.Inf(1), Most: math.Inf(-1),
		Rates: [2]float64{math.Inf(1), math.Inf(-1)},
	}
	if !slices.ContainsFunc(all, func(s result.Slice) bool { _, known := s.Figures.Metric(t.Metric); return known }) {
		t.Metric, t.Name = "request_latency", "Latency"
	}
	var means, first, others []float64
	for _, s := range all {
		m, known := s.Figures.Metric(t.Metric)
		switch {
		case !known:
			continue
		case len(means) == 0:
			first = m.Of.Values
		default:
			others = append(others, m.Of.Values...)
		}
		means = append(means, m.Avg())
		t.Least, t.Most = min(t.Least, m.Avg()), max(t.Most, m.Avg())
		if rate, ok := s.Figures.Metric("output_token_throughput"); ok {
			t.Rates[0], t.Rates[1] = min(t.Rates[0], rate.Value), max(t.Rates[1], rate.Value)
		}
	}
	if len(means) < 2 {
		return t, false
	}
	t.First, t.Last = means[0], means[len(means)-1]
	t.WarmUp = stats.NewRankSum(first, others)
	if t.WithoutWarmUp = t.WarmUp.Detected(); t.WithoutWarmUp {
		means = means[1:]
	}
	t.Drift = stats.NewMannKendall(means)
	return t, true
}
