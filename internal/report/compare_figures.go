package report

import (
	"math"

	"replayd/internal/result"
)

// A compared figure is one of those by which runs are held against each other.
type comparedFigure struct {
	name, unit string
	larger     bool // is better
	of         func(l lookedAt) interval
}

func percentileOf(tag string, p float64) func(lookedAt) interval {
	return func(l lookedAt) interval { return percentileInterval(l.of(tag), p) }
}

func meanOfTag(tag string) func(lookedAt) interval {
	q, _ := result.QuantityOf(tag)
	return func(l lookedAt) interval {
		mean, half := batchMean(l.valuesOf(q.Value))
		if l.of(tag).N() == 0 {
			mean = math.NaN()
		}
		return around(mean, half)
	}
}

// around is an interval by half its width; an unknown half bounds nothing.
func around(value, half float64) interval {
	if math.IsNaN(half) {
		half = math.Inf(1)
	}
	return interval{value, value - half, value + half}
}

var comparedFigures = []comparedFigure{
	{"Requests, ok", "requests/s", true, func(l lookedAt) interval { return l.rate(func(result.Row) float64 { return 1 }, "request_throughput") }},
	{"Output", "tokens/s", true, func(l lookedAt) interval {
		return l.rate(func(r result.Row) float64 { return float64(r.Output) }, "output_token_throughput")
	}},
	{"Output per user, mean", "tokens/s", true, meanOfTag("output_token_throughput_per_user")},
	{"TTFT mean", "ms", false, meanOfTag("time_to_first_token")},
	{"TTFT p50", "ms", false, percentileOf("time_to_first_token", 50)},
	{"TTFT p90", "ms", false, percentileOf("time_to_first_token", 90)},
	{"TTFT p99", "ms", false, percentileOf("time_to_first_token", 99)},
	{"ITL mean", "ms", false, meanOfTag("inter_token_latency")},
	{"ITL p50", "ms", false, percentileOf("inter_token_latency", 50)},
	{"ITL p99", "ms", false, percentileOf("inter_token_latency", 99)},
	{"Latency mean", "ms", false, meanOfTag("request_latency")},
	{"Latency p50", "ms", false, percentileOf("request_latency", 50)},
	{"Latency p99", "ms", false, percentileOf("request_latency", 99)},
	{"Failed", "%", false, func(l lookedAt) interval {
		in := shareInterval(l.figures.Failed, len(l.rows))
		return interval{100 * in.Value, 100 * in.Low, 100 * in.High}
	}},
	{"Lateness p99", "ms", false, func(l lookedAt) interval { return percentileInterval(l.late(), 99) }},
}

// rate is a figure of ok requests per second, with an interval from parts of equal time.
func (l lookedAt) rate(amount func(result.Row) float64, tag string) interval {
	value := l.single(tag)
	span := l.figures.Seconds()
	if len(l.ok) < 2*batches || span <= 0 || math.IsNaN(value) {
		return around(value, math.NaN())
	}
	parts := make([]float64, batches)
	for _, r := range l.ok {
		at := float64(r.End-l.figures.Start) / 1e9 / span
		parts[min(batches-1, max(0, int(at*batches)))] += amount(r) * batches / span
	}
	_, half := batchMean(parts)
	return around(value, half)
}
