package records

import (
	"strconv"
	"time"
	"unicode/utf8"

	"replayd/internal/measure"
)

// appendRecord appends the record of a request with its newline. Sink documents the fields.
func appendRecord(b []byte, r *measure.Request) []byte {
	t := &r.Timeline
	b = append(b, `{"id":`...)
	b = appendString(b, r.ID)
	b = appendInt(b, "loop", r.Loop)
	b = appendInt(b, "row", int64(r.Row))
	b = appendText(b, "session", r.Session)
	b = appendInt(b, "turn", int64(r.Turn))
	b = appendText(b, "phase", r.Phase.String())
	b = appendInt(b, "lane", int64(r.Lane))
	b = appendText(b, "outcome", string(r.Outcome))
	b = appendText(b, "error", string(r.Error))
	b = appendInt(b, "status", int64(r.Status))
	b = appendText(b, "replica", string(r.Replica))
	b = appendText(b, "finish_reason", string(r.FinishReason))
	b = appendInt(b, "unread_events", int64(r.Unread))
	b = appendText(b, "unread_text", string(r.UnreadText))
	b = appendBool(b, "retried", r.Retried)

	b = appendInstant(b, "planned_ns", t.Planned)
	b = appendInstant(b, "due_ns", t.Due)
	b = appendInstant(b, "ready_ns", t.Ready)
	b = appendInstant(b, "lane_ns", t.Lane)
	b = appendInstant(b, "write_ns", t.Write)
	var first, last time.Time
	if n := len(t.Chunks); n > 0 {
		first, last = t.Write.Add(t.Chunks[0]), t.Write.Add(t.Chunks[n-1])
	}
	if t.Whole {
		first = time.Time{}
	}
	b = appendInstant(b, "head_ns", t.Head)
	b = appendInstant(b, "first_ns", first)
	b = appendInstant(b, "last_ns", last)
	b = appendInstant(b, "cancel_ns", t.Cancel)
	b = appendInstant(b, "end_ns", t.End)

	sent, ok := r.Sent(), r.Outcome == measure.OK
	b = appendDuration(b, "lateness_ns", r.Lateness(), sent)
	b = appendDuration(b, "lane_wait_ns", r.LaneWait(), sent)
	b = appendDuration(b, "session_wait_ns", r.SessionWait(), sent)
	b = appendDuration(b, "connect_ns", t.Connect, sent && t.Connect > 0)
	latency := func(key string, of func(*measure.Request) (time.Duration, bool)) {
		d, defined := of(r)
		b = appendDuration(b, key, d, ok && defined)
	}
	latency("ttft_ns", (*measure.Request).TTFT)
	latency("ttfat_ns", (*measure.Request).TTFAT)
	latency("ttft_from_due_ns", (*measure.Request).TTFTFromDue)
	latency("second_token_ns", (*measure.Request).SecondToken)
	latency("tpot_ns", (*measure.Request).TPOT)
	latency("tpot_most_ns", (*measure.Request).MostTPOT)
	latency("e2e_ns", (*measure.Request).E2E)
	latency("e2e_from_due_ns", (*measure.Request).E2EFromDue)

	b = appendInt(b, "chunks", int64(len(t.Chunks)))
	b = appendInt(b, "events", int64(r.Events))
	b = appendInt(b, "merged_reads", int64(t.MergedReads))
	b = appendBool(b, "kernel_time", t.Kernel)
	b = appendBool(b, "clock_set", t.ClockSet)
	b = appendBool(b, "whole", t.Whole)
	b = appendInt(b, "input_tokens", int64(r.InputTokens))
	b = appendInt(b, "output_tokens", int64(r.OutputTokens))
	b = appendInt(b, "overhead_tokens", int64(r.Overhead))
	b = appendInt(b, "counted_input_tokens", int64(r.CountedInput))
	b = appendText(b, "usage_source", string(r.Usage.Source))
	b = appendText(b, "usage_rules", r.Usage.Rules.String())
	b = appendInt(b, "usage_prompt_tokens", int64(r.Usage.Prompt))
	b = appendInt(b, "usage_output_tokens", int64(r.Usage.Output))
	b = appendInt(b, "usage_cached_tokens", int64(r.Usage.Cached))
	b = appendInt(b, "usage_reasoning_tokens", int64(r.Usage.Reasoning))
	b = appendInt(b, "usage_opening_tokens", int64(r.Usage.Opening))
	return append(b, '}', '\n')
}

func appendKey(b []byte, key string) []byte {
	b = append(b, ',', '"')
	b = append(b, key...)
	return append(b, '"', ':')
}

func appendInt(b []byte, key string, n int64) []byte {
	return strconv.AppendInt(appendKey(b, key), n, 10)
}

func appendText(b []byte, key, text string) []byte {
	return appendString(appendKey(b, key), text)
}

func appendBool(b []byte, key string, v bool) []byte {
	return strconv.AppendBool(appendKey(b, key), v)
}

func appendInstant(b []byte, key string, t time.Time) []byte {
	if t.IsZero() {
		return append(appendKey(b, key), "null"...)
	}
	return appendInt(b, key, t.UnixNano())
}

func appendDuration(b []byte, key string, d time.Duration, defined bool) []byte {
	if !defined {
		return append(appendKey(b, key), "null"...)
	}
	return appendInt(b, key, int64(d))
}

// appendString appends a JSON string. Each invalid UTF-8 byte becomes U+FFFD, as in encoding/json.
func appendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			_, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(b, `\ufffd`...)
				continue
			}
			b = append(b, s[i:i+size]...)
		}
	}
	return append(b, '"')
}
