package report

import (
	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/internal/stats"
)

// A compared figure is one of those by which runs are held against each other.
type comparedFigure struct {
	name, unit string
	larger     bool     // is better
	headline   bool     // stands in the sentence at the top
	of         quantity // figures of one quantity share what its blocks say of each other
	estimate   func(l lookedAt) stats.Estimate
}

// A quantity is what figures are of.
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

// mean and percentile are figures of the metric that the quantity is named for.
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

// interval is that of one run.
func (f comparedFigure) interval(l lookedAt) stats.Interval {
	if f.of == ofOutcomes {
		return f.estimate(l).Share(len(l.rows))
	}
	return f.estimate(l).Interval(tail)
}

func outputRate(l lookedAt) stats.Estimate {
	return l.rate(func(r result.Row) float64 { return float64(r.Output) })
}

// perUser is Σ (output tokens − 1) ÷ Σ (last content − first content).
func perUser(l lookedAt) stats.Estimate {
	return stats.NewEstimate(l.cut(l.ok, started, func(r result.Row) (float64, float64) {
		tokens := float64(r.Output - 1)
		return tokens, tokens * r.ITL / 1e3
	}))
}
