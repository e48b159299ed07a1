package result

import (
	"math"
	"slices"
	"strconv"
	"time"

	"replayd/internal/measure"
	"replayd/internal/stats"
)

// A Metric is one figure of a set of requests: a distribution with one value per request, or a single value.
type Metric struct {
	Tag    string // AIPerf's: time_to_first_token
	Name   string // for people: Time to First Token
	Unit   string // ms, tokens, tokens/sec/user, tokens/sec, requests/sec, requests, sec
	Of     stats.Distribution
	Single bool
	Value  float64 // only if Single
}

// Avg returns the mean or the single value, or NaN if there is none.
func (m Metric) Avg() float64 {
	switch {
	case m.Single:
		return m.Value
	case m.Of.N() == 0:
		return math.NaN()
	}
	return m.Of.Mean
}

// Std returns the population standard deviation, or NaN if there is no distribution.
func (m Metric) Std() float64 {
	if m.Of.N() == 0 {
		return math.NaN()
	}
	return m.Of.Std
}

// Percentiles returns the percentiles of a table and those that were asked for, in ascending order.
func Percentiles(usual, asked []float64) []float64 {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(usual, asked))))
}

// PercentileName returns the name of a column or field: p99, p99.9.
func PercentileName(p float64) string { return "p" + strconv.FormatFloat(p, 'f', -1, 64) }

// Quantities are the metrics with one value per ok request: those of AIPerf's table in its order, then the others.
// Definitions are those of AIPerf (docs/metrics-reference.md): times count from the send to the first and to the last
// content chunk, and from the first to the second. There are two differences. An answer whose tokens all came in one
// chunk has no inter-token latency, where AIPerf has 0. Token counts are the server's own if it sends them. The lateness
// and the two "from due" metrics are replayd's own; "from due" counts from the due time.
var Quantities = slices.Concat(Tabled, []measure.Quantity{
	measure.OutputCount, measure.ReasoningCount, measure.TTFAT, measure.TTFTFromDue, measure.E2EFromDue,
	measure.Lateness, // of every request that was sent, not only of ok ones
})

// Tabled are the quantities of AIPerf's table.
var Tabled = []measure.Quantity{
	measure.TTFT, measure.SecondToken, measure.E2E, measure.TPOT, measure.PerUser, measure.OutputLength, measure.InputLength,
}

// Statistics are the figures of a set of requests, without the warm-up.
type Statistics struct {
	Metrics []Metric // only defined ones

	OK, Failed, Cancelled int // requests by outcome

	Start, End  int64 // AIPerf's span, Unix ns: the first start to the last end of ok requests
	First, Last int64 // vLLM's span: the same over all requests that were sent, whatever their outcome
}

// Statistics returns the figures of the run, including those of its ledger.
func (r Run) Statistics() Statistics {
	f := Aggregate(r.Rows, r.Settings)
	l := r.Ledger
	if l == nil {
		f.addSessions(r.Sessions, measure.Sessions{})
		return f
	}
	f.single("expected_request_count", "Expected Request Count", "requests", float64(l.Expected))
	f.single("dropped_request_count", "Dropped Request Count", "requests", float64(l.Unsent()))
	if share, ok := l.Attainment(); ok {
		f.single("attainment", "Attainment", "ratio", share)
	}
	if share, ok := l.ServiceAttainment(); ok {
		f.single("service_attainment", "Service Attainment", "ratio", share)
	}
	f.addSessions(r.Sessions, l.Sessions)
	return f
}

// Aggregate computes the figures of rows. Spans and rates are AIPerf's; WriteVLLMTable computes those of vLLM's table.
func Aggregate(rows []Row, s Settings) Statistics {
	var f Statistics
	var gaps []float64
	var input, output, reasoning int
	values := make([][]float64, len(Quantities))
	good := 0
	for _, r := range rows {
		if r.Phase == measure.Warmup {
			continue
		}
		f.count(r)
		if r.Outcome == measure.OK {
			input, output, reasoning = input+r.Input, output+r.Output, reasoning+r.Reasoning
			gaps = append(gaps, r.Gaps...)
		}
		v := r.Values()
		for i, q := range Quantities {
			values[i] = append(values[i], v[q])
		}
		if kept, _ := s.SLO.Good(r.Outcome, &v); kept {
			good++
		}
	}
	for i, q := range Quantities {
		f.distribution(q.Tag(), q.Title(), string(q.Unit()), values[i])
	}
	f.distribution("inter_chunk_latency", "Inter Chunk Latency", "ms", gaps)
	f.addLengths(rows)
	f.totals(input, output, reasoning, good, s)
	return f
}

func (f *Statistics) count(r Row) {
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

// earlier returns the earlier of two instants; 0 is no instant.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}

// add appends a metric if it is defined.
func (f *Statistics) add(m Metric) {
	if m.Single && !math.IsNaN(m.Value) && !math.IsInf(m.Value, 0) || m.Of.N() > 0 {
		f.Metrics = append(f.Metrics, m)
	}
}

func (f *Statistics) distribution(tag, name, unit string, values []float64) {
	f.add(Metric{Tag: tag, Name: name, Unit: unit, Of: stats.NewDistribution(values)})
}

func (f *Statistics) single(tag, name, unit string, value float64) {
	f.add(Metric{Tag: tag, Name: name, Unit: unit, Single: true, Value: value})
}

// Metric returns the metric with a tag, or false if it is not defined.
func (f Statistics) Metric(tag string) (Metric, bool) {
	for _, m := range f.Metrics {
		if m.Tag == tag {
			return m, true
		}
	}
	return Metric{}, false
}

// Seconds returns AIPerf's benchmark duration in seconds.
func (f Statistics) Seconds() float64 { return float64(f.End-f.Start) / 1e9 }

// totals adds the metrics with a single value. Rates are per second of AIPerf's benchmark duration and count ok
// requests. Output includes reasoning tokens.
func (f *Statistics) totals(input, output, reasoning, good int, s Settings) {
	span := f.Seconds()
	f.single("output_token_throughput", "Output Token Throughput", "tokens/sec", float64(output)/span)
	if s.GPUs > 0 {
		f.single("output_token_throughput_per_gpu", "Output Token Throughput Per GPU", "tokens/sec/gpu", float64(output)/span/float64(s.GPUs))
	}
	f.single("total_token_throughput", "Total Token Throughput", "tokens/sec", float64(input+output)/span)
	f.single("request_throughput", "Request Throughput", "requests/sec", float64(f.OK)/span)
	f.single("request_count", "Request Count", "requests", float64(f.OK))
	if len(s.SLO) > 0 {
		f.single("goodput", "Goodput", "requests/sec", float64(good)/span)
		f.single("good_request_count", "Good Request Count", "requests", float64(good))
		f.single("good_request_fraction", "Good Request Fraction", "ratio", float64(good)/float64(f.OK+f.Failed))
	}
	f.single("error_request_count", "Error Request Count", "requests", float64(f.Failed))
	f.single("cancelled_request_count", "Cancelled Request Count", "requests", float64(f.Cancelled))
	f.single("benchmark_duration", "Benchmark Duration", "sec", span)
	f.single("total_isl", "Total Input Sequence Length", "tokens", float64(input))
	f.single("total_osl", "Total Output Sequence Length", "tokens", float64(output))
	f.single("total_output_tokens", "Total Output Tokens", "tokens", float64(output-reasoning))
}

// addSessions adds the figures of sessions: distributions over the ok ones, and the counts of the ledger.
func (f *Statistics) addSessions(all []measure.Session, of measure.Sessions) {
	if of.IsZero() && len(all) == 0 {
		return
	}
	var makespans, requests, cached []float64
	var parts [measure.NumSessionParts][]float64
	for i := range all {
		s := &all[i]
		if s.Outcome != measure.SessionOK {
			continue
		}
		makespans, requests = append(makespans, inSeconds(s.Makespan())), append(requests, float64(s.Requests))
		for p, d := range s.Time {
			parts[p] = append(parts[p], inSeconds(d))
		}
		if ratio, reported := s.CachedRatio(); reported {
			cached = append(cached, ratio)
		}
	}
	f.distribution("session_makespan", "Session Makespan", "sec", makespans)
	f.distribution("session_requests", "Session Requests", "requests", requests)
	f.distribution("session_cached_ratio", "Session Cached Ratio", "ratio", cached)
	for p, name := range [measure.NumSessionParts]string{
		"Session Time in Tools", "Session Time Late",
		"Session Time to First Tokens", "Session Time in Decode",
	} {
		f.distribution("session_time_"+measure.SessionPart(p).String(), name, "sec", parts[p])
	}
	if of.IsZero() {
		return
	}
	f.single("session_count", "Session Count", "sessions", float64(of.Begun))
	f.single("ok_session_count", "Ok Session Count", "sessions", float64(of.Outcomes[measure.SessionOK]))
	f.single("failed_session_count", "Failed Session Count", "sessions", float64(of.Outcomes[measure.SessionNotOK]))
	f.single("cut_session_count", "Cut Session Count", "sessions", float64(of.Outcomes[measure.SessionCut]))
	f.single("good_session_count", "Good Session Count", "sessions", float64(of.Good))
	if share, ok := of.Attainment(); ok {
		f.single("session_attainment", "Session Attainment", "ratio", share)
	}
}

// inSeconds divides once. Duration.Seconds adds whole seconds and the rest, which rounds twice.
func inSeconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }
