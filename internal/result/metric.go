package result

import (
	"math"

	"replayd/internal/measure"
	"replayd/internal/stats"
)

// A Metric is one figure of some requests: a distribution of one value a request, or a single value of them all.
type Metric struct {
	Tag    string // AIPerf's: time_to_first_token
	Name   string // for people: Time to First Token
	Unit   string // ms, tokens, tokens/sec/user, tokens/sec, requests/sec, requests, sec
	Of     stats.Distribution
	Single bool
	Value  float64 // of a single one
}

// Avg is the mean, or the single value; NaN where there is none.
func (m Metric) Avg() float64 {
	switch {
	case m.Single:
		return m.Value
	case m.Of.N() == 0:
		return math.NaN()
	}
	return m.Of.Mean
}

// A Quantity is what a request has one value of, NaN where it is not defined.
type Quantity struct {
	Tag, Name, Unit string
	Value           func(Row) float64
	Larger          bool // is better
	Extra           bool // in files, but not in AIPerf's table
	All             bool // of every request that was sent, not of ok ones alone
}

// Quantities are the metrics that each ok request has, in the order of AIPerf's table. Definitions are those of AIPerf
// (docs/metrics-reference.md): times count from when the request was sent, to the first and last chunk with content, and from the
// first to the second. Two differ a little: an answer all of whose tokens came in one chunk has no inter-token latency, where
// AIPerf has 0; token counts are the server's own where it sends them. The two "from due" and the lateness are ours: from the
// instant at which the plan has the request go out.
var Quantities = []Quantity{
	{Tag: "time_to_first_token", Name: "Time to First Token", Unit: "ms", Value: func(r Row) float64 { return r.TTFT }},
	{Tag: "time_to_second_token", Name: "Time to Second Token", Unit: "ms", Value: func(r Row) float64 { return r.Second }},
	{Tag: "request_latency", Name: "Request Latency", Unit: "ms", Value: func(r Row) float64 { return r.Latency }},
	{Tag: "inter_token_latency", Name: "Inter Token Latency", Unit: "ms", Value: func(r Row) float64 { return r.ITL }},
	{Tag: "output_token_throughput_per_user", Name: "Output Token Throughput Per User", Unit: "tokens/sec/user", Larger: true, Value: Row.PerUser},
	{Tag: "output_sequence_length", Name: "Output Sequence Length", Unit: "tokens", Value: func(r Row) float64 { return length(r.Output) }},
	{Tag: "input_sequence_length", Name: "Input Sequence Length", Unit: "tokens", Value: func(r Row) float64 { return length(r.Input) }},
	{Tag: "output_token_count", Name: "Output Token Count", Unit: "tokens", Extra: true, Value: func(r Row) float64 { return length(r.Output - r.Reasoning) }},
	{Tag: "reasoning_token_count", Name: "Reasoning Token Count", Unit: "tokens", Extra: true, Value: func(r Row) float64 { return length(r.Reasoning) }},
	{Tag: "time_to_first_token_from_due", Name: "Time to First Token From Due", Unit: "ms", Extra: true, Value: Row.firstFromDue},
	{Tag: "request_latency_from_due", Name: "Request Latency From Due", Unit: "ms", Extra: true, Value: func(r Row) float64 { return r.FromDue(r.End) }},
	{Tag: "lateness", Name: "Lateness", Unit: "ms", Extra: true, All: true, Value: func(r Row) float64 { return r.Lateness }},
}

// length is a number of tokens that is known, else NaN.
func length(tokens int) float64 {
	if tokens <= 0 {
		return math.NaN()
	}
	return float64(tokens)
}

func (r Row) firstFromDue() float64 {
	if math.IsNaN(r.TTFT) { // one answer as a whole has no first token
		return math.NaN()
	}
	return r.FromDue(r.First)
}

// Figures are what some requests came to, the warm-up left out.
type Figures struct {
	Metrics []Metric // those that are defined

	OK, Failed, Cancelled int // requests by how they ended

	Start, End  int64 // AIPerf's span, Unix ns: the first start to the last end of ok requests
	First, Last int64 // vLLM's: the same of all that were sent, whatever became of them
}

// Aggregate computes the figures of rows. Spans and rates are AIPerf's; those of vLLM's table come from WriteVLLMTable.
func Aggregate(rows []Row, s Settings) Figures {
	var f Figures
	var all, ok []Row
	for _, r := range rows {
		if r.Phase == measure.Warmup {
			continue
		}
		all = append(all, r)
		f.count(r)
		if r.Outcome == measure.OK {
			ok = append(ok, r)
		}
	}
	for _, q := range Quantities {
		of := ok
		if q.All {
			of = all
		}
		values := make([]float64, len(of))
		for i, r := range of {
			values[i] = q.Value(r)
		}
		f.add(Metric{Tag: q.Tag, Name: q.Name, Unit: q.Unit, Of: stats.NewDistribution(values)})
	}
	f.add(Metric{Tag: "inter_chunk_latency", Name: "Inter Chunk Latency", Unit: "ms", Of: stats.NewDistribution(gaps(ok))})
	f.totals(ok, s)
	return f
}

func (f *Figures) count(r Row) {
	switch {
	case r.Outcome == measure.OK:
		f.OK++
		f.Start, f.End = earlier(f.Start, r.Start), max(f.End, r.End)
	case r.Outcome.Failed():
		f.Failed++
	default:
		f.Cancelled++
	}
	f.First, f.Last = earlier(f.First, r.Start), max(f.Last, r.End)
}

// earlier is the lesser of two instants, of which 0 is none.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

func gaps(rows []Row) (all []float64) {
	for _, r := range rows {
		all = append(all, r.Gaps...)
	}
	return all
}

// add takes a metric that is defined.
func (f *Figures) add(m Metric) {
	if m.Single && !math.IsNaN(m.Value) && !math.IsInf(m.Value, 0) || m.Of.N() > 0 {
		f.Metrics = append(f.Metrics, m)
	}
}

// Metric finds a metric by its tag. It is false where that is not defined.
func (f Figures) Metric(tag string) (Metric, bool) {
	for _, m := range f.Metrics {
		if m.Tag == tag {
			return m, true
		}
	}
	return Metric{}, false
}

// Seconds is AIPerf's benchmark duration.
func (f Figures) Seconds() float64 { return float64(f.End-f.Start) / 1e9 }

// totals adds what is one value for all requests. Rates are per second of AIPerf's benchmark duration, of ok requests; tokens
// that reason are output too.
func (f *Figures) totals(ok []Row, s Settings) {
	var input, output, reasoning int
	for _, r := range ok {
		input, output, reasoning = input+r.Input, output+r.Output, reasoning+r.Reasoning
	}
	span := f.Seconds()
	single := func(tag, name, unit string, value float64) {
		f.add(Metric{Tag: tag, Name: name, Unit: unit, Single: true, Value: value})
	}
	single("output_token_throughput", "Output Token Throughput", "tokens/sec", float64(output)/span)
	if s.GPUs > 0 {
		single("output_token_throughput_per_gpu", "Output Token Throughput Per GPU", "tokens/sec/gpu", float64(output)/span/float64(s.GPUs))
	}
	single("total_token_throughput", "Total Token Throughput", "tokens/sec", float64(input+output)/span)
	single("request_throughput", "Request Throughput", "requests/sec", float64(len(ok))/span)
	single("request_count", "Request Count", "requests", float64(len(ok)))
	if len(s.Goodput) > 0 {
		good := 0
		for _, r := range ok {
			if Keeps(r, s.Goodput) {
				good++
			}
		}
		single("goodput", "Goodput", "requests/sec", float64(good)/span)
		single("good_request_count", "Good Request Count", "requests", float64(good))
		single("good_request_fraction", "Good Request Fraction", "ratio", float64(good)/float64(f.OK+f.Failed))
	}
	single("error_request_count", "Error Request Count", "requests", float64(f.Failed))
	single("cancelled_request_count", "Cancelled Request Count", "requests", float64(f.Cancelled))
	single("benchmark_duration", "Benchmark Duration", "sec", span)
	single("total_isl", "Total Input Sequence Length", "tokens", float64(input))
	single("total_osl", "Total Output Sequence Length", "tokens", float64(output))
	single("total_output_tokens", "Total Output Tokens", "tokens", float64(output-reasoning))
}
