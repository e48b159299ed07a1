package result

import (
	"bytes"
	"encoding/json"
	"math"

	"replayd/internal/measure"
)

// An exportLine is a line of profile_export.jsonl in AIPerf's format (docs/tutorials/working-with-profile-exports.md),
// with a few fields of replayd's. An undefined metric is absent. A request that did not end ok has no latencies.
type exportLine struct {
	Metadata exportMetadata `json:"metadata"`
	Metrics  exportMetrics  `json:"metrics"`
	Error    *ExportError   `json:"error"` // null if the request ended ok
}

type exportMetadata struct {
	Session      int64  `json:"session_num"`
	ID           string `json:"x_request_id"`
	Correlation  string `json:"x_correlation_id,omitempty"`
	Conversation string `json:"conversation_id,omitempty"`
	Turn         int    `json:"turn_index"`

	Credit instant `json:"credit_issued_ns"`
	Start  instant `json:"request_start_ns"`
	Ack    instant `json:"request_ack_ns"`
	End    instant `json:"request_end_ns"`

	Worker       string  `json:"worker_id"`
	Processor    string  `json:"record_processor_id"`
	Phase        string  `json:"benchmark_phase"` // warmup, profiling
	WasCancelled bool    `json:"was_cancelled"`
	Cancel       instant `json:"cancellation_time_ns"`

	// replayd's own: due time, first content, outcome, HTTP status.
	Due     instant         `json:"due_ns"`
	First   instant         `json:"first_content_ns"`
	Outcome measure.Outcome `json:"outcome,omitempty"`
	Status  int             `json:"status,omitempty"`
	Retried bool            `json:"retried,omitempty"`
}

// An instant is Unix time in ns; null if it did not happen.
type instant int64

func (i instant) MarshalJSON() ([]byte, error) {
	if i == 0 {
		return []byte("null"), nil
	}
	return json.Marshal(int64(i))
}

type exportMetrics struct {
	TTFT       *exportValue  `json:"time_to_first_token,omitempty"`
	TTFAT      *exportValue  `json:"time_to_first_output_token,omitempty"`
	Second     *exportValue  `json:"time_to_second_token,omitempty"`
	Latency    *exportValue  `json:"request_latency,omitempty"`
	ITL        *exportValue  `json:"inter_token_latency,omitempty"`
	PerUser    *exportValue  `json:"output_token_throughput_per_user,omitempty"`
	Gaps       *exportValues `json:"inter_chunk_latency,omitempty"`
	Count      *exportValue  `json:"output_token_count,omitempty"`
	Reasoning  *exportValue  `json:"reasoning_token_count,omitempty"`
	Output     *exportValue  `json:"output_sequence_length,omitempty"`
	Input      *exportValue  `json:"input_sequence_length,omitempty"`
	ErrorInput *exportValue  `json:"error_isl,omitempty"` // the input of a request that did not end ok

	// As asked by the row, and as counted by the server. AIPerf has no requested_isl.
	AskedPrompt   *exportValue `json:"requested_isl,omitempty"`
	AskedAnswer   *exportValue `json:"requested_osl,omitempty"`
	CountedPrompt *exportValue `json:"usage_prompt_tokens,omitempty"`
	CountedAnswer *exportValue `json:"usage_completion_tokens,omitempty"`

	// replayd's own.
	TTFTFromDue    *exportValue `json:"time_to_first_token_from_due,omitempty"`
	LatencyFromDue *exportValue `json:"request_latency_from_due,omitempty"`
	Lateness       *exportValue `json:"lateness,omitempty"`
	MostTPOT       *exportValue `json:"inter_token_latency_most,omitempty"` // absent: inter_token_latency is exact
	Connect        *exportValue `json:"connect,omitempty"`                  // absent: a connection was open
	ReadDelay      *exportValue `json:"read_delay,omitempty"`               // mean over the request's reads
	Reads          *exportValue `json:"reads,omitempty"`                    // reads with content and a kernel timestamp
	Merged         *exportValue `json:"merged_reads,omitempty"`             // reads that held several chunks; absent: none
}

type exportValue struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

type exportValues struct {
	Value []float64 `json:"value"`
	Unit  string    `json:"unit"`
}

// An ExportError says why a request failed. Code is the HTTP status, or 499 for a cancellation, as in AIPerf. Type is
// replayd's outcome. Message is the error text.
type ExportError struct {
	Code    *int   `json:"code"`
	Type    string `json:"type"`
	Message string `json:"message"`
}

// cancelledCode is AIPerf's code for a request that it cancelled itself.
const cancelledCode = 499

// AppendExport appends the line of a row, with its newline.
func AppendExport(b []byte, r Row) []byte {
	v := r.Values()
	of := func(q measure.Quantity) *exportValue { return defined(v[q], string(q.Unit())) }
	tokens := func(n int) *exportValue { return defined(counted(n), string(measure.Tokens)) }
	ms := func(v float64) *exportValue { return defined(counted(v), string(measure.Milliseconds)) }
	line := exportLine{
		Metadata: exportMetadata{
			Session: r.Session, ID: r.ID, Correlation: r.Correlation, Conversation: r.Conversation, Turn: r.Turn,
			Credit: instant(r.Credit), Start: instant(r.Start), Ack: instant(r.Ack), End: instant(r.End),
			Worker: r.Worker, Processor: r.Processor, Phase: r.Phase.String(),
			WasCancelled: r.Outcome == measure.Cancelled, Cancel: instant(r.Cancel),
			Due: instant(r.Due), First: instant(r.First), Outcome: r.Outcome, Status: r.Status,
			Retried: r.Retried,
		},
		Metrics: exportMetrics{
			TTFT: of(measure.TTFT), TTFAT: of(measure.TTFAT), Second: of(measure.SecondToken), Latency: of(measure.E2E),
			ITL: of(measure.TPOT), PerUser: of(measure.PerUser), Count: of(measure.OutputCount),
			Reasoning: of(measure.ReasoningCount), Output: of(measure.OutputLength), Input: of(measure.InputLength),
			TTFTFromDue: of(measure.TTFTFromDue), LatencyFromDue: of(measure.E2EFromDue), Lateness: of(measure.Lateness),
			AskedPrompt: tokens(r.Prompt.Asked), AskedAnswer: tokens(r.Answer.Asked),
			CountedPrompt: tokens(r.Prompt.Counted), CountedAnswer: tokens(r.Answer.Counted),
			MostTPOT: ms(r.MostTPOT), Connect: ms(r.Connect),
			Reads: defined(counted(r.Reads), "reads"), Merged: defined(counted(r.Merged), "reads"),
		},
	}
	if r.Reads > 0 {
		line.Metrics.ReadDelay = defined(r.ReadDelay, "ms")
	}
	if len(r.Gaps) > 0 {
		line.Metrics.Gaps = &exportValues{r.Gaps, "ms"}
	}
	if r.Outcome != measure.OK {
		line.Metrics.ErrorInput, line.Error = tokens(r.Input), FailureOf(r)
	}
	out := bytes.NewBuffer(b)
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	if err := e.Encode(line); err != nil {
		panic("result: " + err.Error()) // impossible: the line holds numbers and strings, and no NaN
	}
	return out.Bytes()
}

func defined(v float64, unit string) *exportValue {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &exportValue{v, unit}
}

// FailureOf returns the error in the line of a request that did not end ok.
func FailureOf(r Row) *ExportError {
	e := &ExportError{Type: string(r.Outcome), Message: r.Error}
	switch {
	case r.Outcome == measure.Cancelled:
		e.Code = new(cancelledCode)
	case r.Status > 0:
		e.Code = &r.Status
	}
	return e
}

// counted returns NaN for a number that is not known.
func counted[T int | float64](n T) float64 {
	if n <= 0 {
		return math.NaN()
	}
	return float64(n)
}
