package result

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"replayd/internal/measure"
)

// A recordLine is a line of replayd's records, as far as reports use it; records.Sink lists the fields. Durations are
// in ns.
type recordLine struct {
	ID      string          `json:"id"`
	Session string          `json:"session"`
	Turn    int             `json:"turn"`
	Lane    int             `json:"lane"`
	Phase   string          `json:"phase"`
	Outcome measure.Outcome `json:"outcome"`
	Error   string          `json:"error"`
	Status  int             `json:"status"`
	Retried bool            `json:"retried"`

	Due    int64 `json:"due_ns"`
	Taken  int64 `json:"lane_ns"`
	Write  int64 `json:"write_ns"`
	Head   int64 `json:"head_ns"`
	First  int64 `json:"first_ns"`
	End    int64 `json:"end_ns"`
	Cancel int64 `json:"cancel_ns"`

	Lateness *int64 `json:"lateness_ns"`
	Connect  int64  `json:"connect_ns"`
	TTFT     *int64 `json:"ttft_ns"`
	TTFAT    *int64 `json:"ttfat_ns"`
	Second   *int64 `json:"second_token_ns"`
	MostTPOT *int64 `json:"tpot_most_ns"`
	E2E      *int64 `json:"e2e_ns"`
	FromDue  *int64 `json:"e2e_from_due_ns"`
	Chunks   int    `json:"chunks"`
	Merged   int    `json:"merged_reads"`

	Source    measure.UsageSource `json:"usage_source"`
	Input     int                 `json:"input_tokens"`
	Answer    int                 `json:"output_tokens"`
	Counted   int                 `json:"counted_input_tokens"`
	Prompt    int                 `json:"usage_prompt_tokens"`
	Output    int                 `json:"usage_output_tokens"`
	Reasoning int                 `json:"usage_reasoning_tokens"`
	Opening   int                 `json:"usage_opening_tokens"`
}

// row converts the line to a Row, without a session number.
func (l recordLine) row() (Row, error) {
	if !slices.Contains(measure.Outcomes(), l.Outcome) {
		return Row{}, fmt.Errorf("outcome: want one of %v, got %q", measure.Outcomes(), l.Outcome)
	}
	if l.Write == 0 && l.End == 0 {
		return Row{}, errors.New("want write_ns and end_ns, got neither")
	}
	of := measure.Request{
		Outcome: l.Outcome, InputTokens: l.Input, OutputTokens: l.Answer, CountedInput: l.Counted,
		Usage: measure.Usage{Prompt: l.Prompt, Output: l.Output, Opening: l.Opening, Source: l.Source},
	}
	r := Row{
		ID: l.ID, Conversation: l.Session, Correlation: correlation(l.ID, l.Session), Turn: l.Turn,
		Worker: "lane_" + strconv.Itoa(l.Lane), Processor: "replayd",
		Outcome: l.Outcome, Status: l.Status, Error: l.Error, Retried: l.Retried,
		Due: l.Due, Credit: l.Taken, Start: l.Write, Ack: l.Head, First: l.First, End: l.End, Cancel: l.Cancel,
		TTFT: math.NaN(), TTFAT: math.NaN(), Second: math.NaN(), Latency: math.NaN(), ITL: math.NaN(), Lateness: msOf(l.Lateness),
		Connect: msOf(&l.Connect),
		Merged:  l.Merged,
		Input:   of.Input(), Prompt: of.PromptLength(), Answer: of.AnswerLength(),
	}
	var err error
	if r.Phase, err = phase(l.Phase); err != nil {
		return r, fmt.Errorf("phase: %w", err)
	}
	if l.Outcome != measure.OK {
		return r, nil
	}
	r.Output, r.Reasoning, r.Opening = l.Output, l.Reasoning, l.Opening
	if l.E2E == nil {
		return r, nil
	}
	e2e := *l.E2E
	r.Latency, r.End = msOf(l.E2E), l.Write+e2e
	if l.FromDue != nil { // a duration of the monotonic clock; the distance of two instants is the wall clock's
		r.Due = r.End - *l.FromDue
	}
	if l.MostTPOT != nil {
		r.MostTPOT = measure.PerToken(time.Duration(e2e), of.Usage.Decoded(), 2)
	}
	r.Second, r.TTFT, r.TTFAT = msOf(l.Second), msOf(l.TTFT), msOf(l.TTFAT)
	if l.TTFT != nil {
		r.First = l.Write + *l.TTFT
		r.ITL = measure.PerToken(time.Duration(e2e-*l.TTFT), of.Usage.Decoded(), l.Chunks)
	}
	return r, nil
}

// msOf returns a duration of a record in milliseconds, or NaN for null.
func msOf(ns *int64) float64 {
	if ns == nil {
		return math.NaN()
	}
	return float64(*ns) / 1e6
}
