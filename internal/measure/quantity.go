package measure

import (
	"math"
	"time"
)

// A Quantity is a value that every finished request can have. SLOs bound quantities. Reports show their distributions.
type Quantity int

// Quantities; the list is complete.
const (
	TTFT Quantity = iota
	TPOT
	E2E
	TTFAT
	TTFTFromDue
	E2EFromDue
	Lateness
	SecondToken    // second content chunk − first content chunk
	PerUser        // 1 / TPOT of the one request
	OutputLength   // tokens of the answer, including reasoning tokens
	InputLength    // tokens of the prompt: as counted by the server, else by a tokenizer, else as the row asks
	OutputCount    // tokens of the answer without reasoning tokens
	ReasoningCount // reasoning tokens
	NumQuantities
)

// A Unit is the unit of a quantity.
type Unit string

// Units of quantities.
const (
	Milliseconds    Unit = "ms"
	Tokens          Unit = "tokens"
	TokensPerSecond Unit = "tokens/sec/user"
)

// quantities describes each Quantity. name is replayd's name, tag is the name in AIPerf's files, title is that in its
// tables. If AIPerf flags a quantity as larger is better (MetricFlags.LARGER_IS_BETTER), a bound is a minimum; otherwise it
// is a maximum.
var quantities = [NumQuantities]struct {
	name, tag, title string
	unit             Unit
	larger           bool
	streamed         bool // undefined for an answer that is not streamed
}{
	TTFT:        {"ttft", "time_to_first_token", "Time to First Token", Milliseconds, false, true},
	TPOT:        {"tpot", "inter_token_latency", "Inter Token Latency", Milliseconds, false, true},
	E2E:         {"e2e", "request_latency", "Request Latency", Milliseconds, false, false},
	TTFAT:       {"ttfat", "time_to_first_output_token", "Time to First Output Token", Milliseconds, false, true},
	TTFTFromDue: {"ttft_from_due", "time_to_first_token_from_due", "Time to First Token From Due", Milliseconds, false, true},
	E2EFromDue:  {"e2e_from_due", "request_latency_from_due", "Request Latency From Due", Milliseconds, false, false},
	Lateness:    {"lateness", "lateness", "Lateness", Milliseconds, false, false},
	SecondToken: {"time_to_second_token", "time_to_second_token", "Time to Second Token", Milliseconds, false, true},
	PerUser: {
		"output_token_throughput_per_user", "output_token_throughput_per_user", "Output Token Throughput Per User",
		TokensPerSecond, true, true,
	},
	OutputLength:   {"output_sequence_length", "output_sequence_length", "Output Sequence Length", Tokens, true, false},
	InputLength:    {"input_sequence_length", "input_sequence_length", "Input Sequence Length", Tokens, true, false},
	OutputCount:    {"output_token_count", "output_token_count", "Output Token Count", Tokens, true, false},
	ReasoningCount: {"reasoning_token_count", "reasoning_token_count", "Reasoning Token Count", Tokens, true, false},
}

// String returns replayd's name of the quantity, as in SLOs and series.
func (q Quantity) String() string { return quantities[q].name }

// Tag returns the quantity's name in AIPerf's files.
func (q Quantity) Tag() string { return quantities[q].tag }

// Title returns the quantity's name in AIPerf's tables.
func (q Quantity) Title() string { return quantities[q].title }

// Unit returns the quantity's unit.
func (q Quantity) Unit() Unit { return quantities[q].unit }

// LargerIsBetter reports whether a bound is a minimum.
func (q Quantity) LargerIsBetter() bool { return quantities[q].larger }

// Streamed reports whether only a streamed answer has the quantity.
func (q Quantity) Streamed() bool { return quantities[q].streamed }

// Quantities returns all quantities.
func Quantities() []Quantity {
	all := make([]Quantity, NumQuantities)
	for q := range all {
		all[q] = Quantity(q)
	}
	return all
}

// QuantityOf returns the quantity with a name, either replayd's or AIPerf's.
func QuantityOf(name string) (Quantity, bool) {
	for q, d := range quantities {
		if name == d.name || name == d.tag {
			return Quantity(q), true
		}
	}
	return 0, false
}

// Values holds the values of a finished request, indexed by Quantity; NaN if a value is undefined. Times are in
// milliseconds, as in the records files, so that a live request and its record are judged by the same number.
type Values [NumQuantities + 1]float64

// MostTPOT is the index of Request.MostTPOT in Values: TPOT may be anything up to it. NaN: TPOT is exact.
const MostTPOT = NumQuantities

// NoValues returns Values of a request about which nothing is known.
func NoValues() (v Values) {
	for q := range v {
		v[q] = math.NaN()
	}
	return v
}

// Values returns the values of an ok request. A request with another outcome only has a lateness.
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
	set(TTFAT, (*Request).TTFAT)
	set(TTFTFromDue, (*Request).TTFTFromDue)
	set(E2E, (*Request).E2E)
	set(E2EFromDue, (*Request).E2EFromDue)
	set(SecondToken, (*Request).SecondToken)
	if c := r.chunks(); len(c) > 1 {
		v.SetTPOT(PerToken(c[len(c)-1]-c[0], r.Usage.Decoded(), len(c)))
	}
	if _, unclear := r.MostTPOT(); unclear {
		v[MostTPOT] = PerToken(r.Timeline.Chunks[len(r.Timeline.Chunks)-1], r.Usage.Decoded(), 2)
	}
	v.SetLengths(r.Input(), r.Usage.Output, r.Usage.Reasoning)
	return v
}

// PerToken returns a TPOT in ms, not rounded to nanoseconds: (last content − first content) / tokens decoded after the first
// content chunk. It is NaN without such tokens, and if all tokens came in one chunk or in one read.
func PerToken(decode time.Duration, decoded, chunks int) float64 {
	if decoded < 1 || chunks < 2 || decode == 0 {
		return math.NaN()
	}
	return float64(decode) / float64(decoded) / 1e6
}

// SetTPOT sets TPOT in ms and its reciprocal. An answer that came in a single read has no rate.
func (v *Values) SetTPOT(ms float64) {
	v[TPOT] = ms
	if ms > 0 {
		v[PerUser] = 1e3 / ms
	}
}

// SetLengths sets the lengths in tokens. A length of 0 is unknown and stays undefined.
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
