package export

import (
	"math"
	"slices"

	"replayd/internal/result"
	"replayd/internal/stats"
)

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
	t := Trend{Metric: "time_to_first_token", Name: "TTFT", Least: math.Inf(1), Most: math.Inf(-1), Rates: [2]float64{math.Inf(1), math.Inf(-1)}}
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
