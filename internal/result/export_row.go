package result

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"replayd/internal/measure"
)

// row converts the line to a Row. Metrics may have any unit of time.
func (l exportLine) row() (Row, error) {
	md := l.Metadata
	r := Row{
		Session: md.Session, ID: md.ID, Correlation: md.Correlation, Conversation: md.Conversation, Turn: md.Turn,
		Credit: int64(md.Credit), Start: int64(md.Start), Ack: int64(md.Ack), End: int64(md.End),
		Worker: md.Worker, Processor: md.Processor, Cancel: int64(md.Cancel),
		Due: int64(md.Due), First: int64(md.First), Status: md.Status, Retried: md.Retried,
	}
	if md.Start == 0 && md.End == 0 {
		return r, errors.New("metadata: want request_start_ns and request_end_ns, got neither")
	}
	var errs []error
	var err error
	if r.Phase, err = phase(md.Phase); err != nil {
		errs = append(errs, fmt.Errorf("metadata: benchmark_phase: %w", err))
	}
	m := l.Metrics
	number := func(v *exportValue, absent float64) float64 {
		if v == nil {
			return absent
		}
		scale, err := toReport(v.Unit)
		errs = append(errs, err)
		return v.Value * scale
	}
	tokens := func(v *exportValue) int {
		if v == nil {
			return 0
		}
		return int(min(max(v.Value, 0), math.MaxInt32))
	}
	nan := math.NaN()
	r.TTFT, r.TTFAT, r.Second = number(m.TTFT, nan), number(m.TTFAT, nan), number(m.Second, nan)
	r.Latency, r.ITL, r.Lateness = number(m.Latency, nan), number(m.ITL, nan), number(m.Lateness, nan)
	r.MostTPOT, r.Connect, r.ReadDelay = number(m.MostTPOT, 0), number(m.Connect, 0), number(m.ReadDelay, 0)
	r.Reads, r.Merged = tokens(m.Reads), tokens(m.Merged)
	r.Input, r.Output, r.Reasoning = tokens(m.Input), tokens(m.Output), tokens(m.Reasoning)
	r.Prompt = measure.Length{Asked: tokens(m.AskedPrompt), Counted: tokens(m.CountedPrompt)}
	r.Answer = measure.Length{Asked: tokens(m.AskedAnswer), Counted: tokens(m.CountedAnswer)}
	if m.Output == nil {
		r.Output = tokens(m.Count) + r.Reasoning
	}
	if m.Input == nil {
		r.Input = tokens(m.ErrorInput)
	}
	if m.Gaps != nil {
		scale, err := toReport(m.Gaps.Unit)
		errs = append(errs, err)
		for _, gap := range m.Gaps.Value {
			r.Gaps = append(r.Gaps, gap*scale)
		}
	}
	if r.First == 0 && r.TTFT >= 0 && r.TTFT <= maxTime && r.Start > 0 {
		r.First = r.Start + int64(math.Round(r.TTFT*1e6))
	}
	r.Outcome, r.Status, r.Error = l.outcome()
	return r, errors.Join(errs...)
}

func phase(name string) (measure.RunPhase, error) {
	switch name {
	case measure.Profiling.String(), "":
		return measure.Profiling, nil
	case measure.Warmup.String():
		return measure.Warmup, nil
	}
	return "", fmt.Errorf("want warmup or profiling, got %q", name)
}

// toReport returns the factor from a unit of time to milliseconds; it is 1 for counts.
func toReport(unit string) (float64, error) {
	switch unit {
	case "ms", "tokens", "tokens/sec/user":
		return 1, nil
	case "s", "sec", "seconds":
		return 1e3, nil
	case "us":
		return 1e-3, nil
	case "ns":
		return 1e-6, nil
	}
	return 0, fmt.Errorf("metrics: unit: want ms, sec, us or ns, got %q", unit)
}

// outcome returns the outcome, HTTP status and error text of a line. replayd's lines name the outcome. In AIPerf's
// lines the error decides: its code is the HTTP status, its type the name of an exception.
func (l exportLine) outcome() (measure.Outcome, int, string) {
	status := l.Metadata.Status
	if l.Error == nil {
		if l.Metadata.WasCancelled {
			return measure.Cancelled, status, ""
		}
		return measure.OK, status, ""
	}
	text := l.Error.Message
	if slices.Contains(measure.Outcomes(), l.Metadata.Outcome) && l.Metadata.Outcome != measure.OK {
		return l.Metadata.Outcome, status, text
	}
	code := 0
	if l.Error.Code != nil {
		code = *l.Error.Code
	}
	if l.Error.Type != "" {
		text = l.Error.Type + ": " + text
	}
	kind := strings.ToLower(l.Error.Type)
	switch {
	case l.Metadata.WasCancelled || code == cancelledCode || strings.Contains(kind, "cancel"):
		return measure.Cancelled, status, text
	case code == 429:
		return measure.HTTP429, code, text
	case code >= 300 && code < 400:
		return measure.HTTP3xx, code, text
	case code >= 400 && code < 500:
		return measure.HTTP4xx, code, text
	case code >= 500 && code < 600:
		return measure.HTTP5xx, code, text
	case strings.Contains(kind, "timeout"):
		return measure.TimeoutTotal, status, text
	case strings.Contains(kind, "connect"):
		return measure.ConnectFailed, status, text
	}
	return measure.BadStream, status, text
}
