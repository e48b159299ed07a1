package report

import (
	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/internal/stats"
)

// A comparedFigure is a figure by which runs are compared.
type comparedFigure struct {
	name, unit string
	larger     bool     // a larger value is better
	headline   bool     // shown in the sentence at the top
	of         quantity // figures of one quantity share the correlation of neighboring blocks
	estimate   func(l lookedAt) stats.Estimate
}

// A quantity is the quantity that a figure measures.
type quantity string

// Quantities of compared figures.
const (
	ofThroughput quantity = "throughput"
	ofTTFT       quantity = "time_to_first_token"
	ofITL        quantity = "inter_token_latency"
	ofLatency    quantity = "request_latency"
	ofOutcomes   quantity = "outcomes"
	ofLateness   quantity = "lateness"
)

// mean and percentile estimate figures of the metric whose tag is q.
func (q quantity) mean(l lookedAt) stats.Estimate {
	metric, _ := result.QuantityOf(string(q))
	return l.mean(metric.Value)
}

func (q quantity) percentile(p float64) func(lookedAt) stats.Estimate {
	metric, _ := result.QuantityOf(string(q))
	return func(l lookedAt) stats.Estimate { return l.percentile(l.ok, metric.Value, l.of(string(q)), p) }
}

var comparedFigures = []comparedFigure{
	{"Requests, ok", "requests/s", true, false, ofThroughput, func(l lookedAt) stats.Estimate { return l.rate(func(result.Row) float64 { return 1 }) }},
	{"Output", "tokens/s", true, true, ofThroughput, outputRate},
	{"Output per user", "tokens/s", true, false, ofITL, perUser},
	{"TTFT mean", "ms", false, false, ofTTFT, ofTTFT.mean},
	{"TTFT p50", "ms", false, true, ofTTFT, ofTTFT.percentile(50)},
	{"TTFT p90", "ms", false, false, ofTTFT, ofTTFT.percentile(90)},
	{"TTFT p99", "ms", false, true, ofTTFT, ofTTFT.percentile(99)},
	{"ITL mean", "ms", false, false, ofITL, ofITL.mean},
	{"ITL p50", "ms", false, true, ofITL, ofITL.percentile(50)},
	{"ITL p99", "ms", false, false, ofITL, ofITL.percentile(99)},
	{"Latency mean", "ms", false, false, ofLatency, ofLatency.mean},
	{"Latency p50", "ms", false, true, ofLatency, ofLatency.percentile(50)},
	{"Latency p99", "ms", false, false, ofLatency, ofLatency.percentile(99)},
	{"Failed", "%", false, true, ofOutcomes, func(l lookedAt) stats.Estimate {
		return l.share(measure.Outcome.Failed).Times(100)
	}},
	{"Lateness p99", "ms", false, false, ofLateness, func(l lookedAt) stats.Estimate {
		return l.percentile(l.rows, func(r result.Row) float64 { return r.Lateness }, l.late(), 99)
	}},
}

// differenceUnit is the unit of a difference: percentages differ by points.
func (f comparedFigure) differenceUnit() string {
	if f.unit == "%" {
		return "points"
	}
	return f.unit
}

// interval returns the interval of the figure in one run.
func (f comparedFigure) interval(l lookedAt) stats.Interval {
	if f.of == ofOutcomes {
		return f.estimate(l).Share(len(l.rows))
	}
	return f.estimate(l).Interval(tail)
}

func outputRate(l lookedAt) stats.Estimate {
	return l.rate(func(r result.Row) float64 { return float64(r.Output) })
}

// perUser estimates the output of one user in tokens/s: Σ output tokens after the first chunk ÷ Σ (last content − first content).
func perUser(l lookedAt) stats.Estimate {
	return stats.NewEstimate(l.cut(l.ok, started, func(r result.Row) (float64, float64) {
		tokens := float64(r.Output - max(1, r.Opening))
		return tokens, tokens * r.ITL / 1e3
	}))
}
