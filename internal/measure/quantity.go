package measure

import (
	"cmp"
	"math"
	"time"
)

// A Quantity is what a finished request has one value of. Service levels bound quantities, reports show their distributions.
type Quantity int

// Quantities, the whole list.
const (
	TTFT Quantity = iota
	TPOT
	E2E
	TTFTFromDue
	E2EFromDue
	Lateness
	SecondToken    // the second content chunk − the first
	PerUser        // 1 / TPOT of the one request
	OutputLength   // tokens of the answer, those that reason too
	InputLength    // tokens of the prompt: as asked for, else as counted, else as the server says
	OutputCount    // tokens of the answer without those that reason
	ReasoningCount // tokens that reason
	NumQuantities
)

// A Unit is what a quantity is measured in.
type Unit string

// Units of quantities.
const (
	Milliseconds    Unit = "ms"
	Tokens          Unit = "tokens"
	TokensPerSecond Unit = "tokens/sec/user"
)

// quantities describe each Quantity. A name is ours, a tag is the one in AIPerf's files; where AIPerf says that larger is better
// (MetricFlags.LARGER_IS_BETTER), a bound is the least, elsewhere the most that is within it.
var quantities = [NumQuantities]struct {
	name, tag string
	unit      Unit
	larger    bool
	streamed  bool // an answer in one piece has none
}{
	TTFT:           {"ttft", "time_to_first_token", Milliseconds, false, true},
	TPOT:           {"tpot", "inter_token_latency", Milliseconds, false, true},
	E2E:            {"e2e", "request_latency", Milliseconds, false, false},
	TTFTFromDue:    {"ttft_from_due", "time_to_first_token_from_due", Milliseconds, false, true},
	E2EFromDue:     {"e2e_from_due", "request_latency_from_due", Milliseconds, false, false},
	Lateness:       {"lateness", "lateness", Milliseconds, false, false},
	SecondToken:    {"time_to_second_token", "time_to_second_token", Milliseconds, false, true},
	PerUser:        {"output_token_throughput_per_user", "output_token_throughput_per_user", TokensPerSecond, true, true},
	OutputLength:   {"output_sequence_length", "output_sequence_length", Tokens, true, false},
	InputLength:    {"input_sequence_length", "input_sequence_length", Tokens, true, false},
	OutputCount:    {"output_token_count", "output_token_count", Tokens, true, false},
	ReasoningCount: {"reasoning_token_count", "reasoning_token_count", Tokens, true, false},
}

// String is replayd's name of a quantity, as service levels and their series have it.
func (q Quantity) String() string { return quantities[q].name }

// Tag is its name in AIPerf's files.
func (q Quantity) Tag() string { return quantities[q].tag }

// Unit is what it is measured in.
func (q Quantity) Unit() Unit { return quantities[q].unit }

// LargerIsBetter says that a bound is the least that is within it, not the most.
func (q Quantity) LargerIsBetter() bool { return quantities[q].larger }

// Streamed says that only an answer that is streamed has it.
func (q Quantity) Streamed() bool { return quantities[q].streamed }

// Quantities are all of them.
func Quantities() []Quantity {
	all := make([]Quantity, NumQuantities)
	for q := range all {
		all[q] = Quantity(q)
	}
	return all
}

// QuantityOf finds a quantity by either name.
func QuantityOf(name string) (Quantity, bool) {
	for q, d := range quantities {
		if name == d.name || name == d.tag {
			return Quantity(q), true
		}
	}
	return 0, false
}

// Values are a finished request's values, by Quantity; NaN where one is not defined. Times are milliseconds, as in the files that
// reports read back: the same number is judged while a request is live and when its record is read.
type Values [NumQuantities]float64

// NoValues are those of a request of which nothing is known.
func NoValues() (v Values) {
	for q := range v {
		v[q] = math.NaN()
	}
	return v
}

// Values are those of an ok request; of any other only the lateness.
func (r *Request) Values() Values {
	v := NoValues()
	if r.Sent() {
		v[Lateness] = float64(r.Lateness()) / 1e6
	}
	if r.Outcome != OK {
		return v
	}
	set := func(q Quantity, of func(*Request) (time.Duration, bool)) {
		if d, defined := of(r); defined {
			v[q] = float64(d) / 1e6
		}
	}
	set(TTFT, (*Request).TTFT)
	set(TTFTFromDue, (*Request).TTFTFromDue)
	set(E2E, (*Request).E2E)
	set(E2EFromDue, (*Request).E2EFromDue)
	set(SecondToken, (*Request).SecondToken)
	if c := r.Timeline.Chunks; len(c) > 1 {
		v.SetTPOT(PerToken(c[len(c)-1]-c[0], r.Usage.Output, len(c)))
	}
	v.SetLengths(cmp.Or(r.InputTokens, r.CountedInput, r.Usage.Prompt), r.Usage.Output, r.Usage.Reasoning)
	return v
}

// PerToken is a TPOT, ms and not cut to whole nanoseconds: the time from the first to the last content over the tokens after the
// first. NaN below 2 tokens, and where all of them came in one chunk: no interval was seen then.
func PerToken(decode time.Duration, tokens, chunks int) float64 {
	if tokens < 2 || chunks < 2 {
		return math.NaN()
	}
	return float64(decode) / float64(tokens-1) / 1e6
}

// SetTPOT sets TPOT, ms, and its reciprocal: all of an answer within one read has no rate.
func (v *Values) SetTPOT(ms float64) {
	v[TPOT] = ms
	if ms > 0 {
		v[PerUser] = 1e3 / ms
	}
}

// SetLengths sets the lengths in tokens. A length of 0 is not known, and stays undefined.
func (v *Values) SetLengths(input, output, reasoning int) {
	set := func(q Quantity, tokens int) {
		if tokens > 0 {
			v[q] = float64(tokens)
		}
	}
	set(InputLength, input)
	set(OutputLength, output)
	set(OutputCount, output-reasoning)
	set(ReasoningCount, reasoning)
}
