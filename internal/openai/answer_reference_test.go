package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"replayd/internal/measure"
)

// A piece is one write of a server.
type piece struct {
	at   time.Duration // since the request
	text string
}

// A reference is a slow reader of answers, written by the rules of docs/reference/answers.md and nothing else. It has
// the whole answer in memory, decodes it with encoding/json, and shares no code with the product.
type reference struct {
	message string        // delta or message
	until   time.Duration // the present deadline
	late    measure.Outcome

	line           string // an incomplete one
	begun, cr      bool
	data           []string // lines of the present event
	kind, note     string   // its type and its last comment
	isError        bool     // it has a field error
	arrived        time.Duration
	done, settled  bool // by [DONE]; by an error event or bad data
	outcome        measure.Outcome
	text           string // of an error; "?": too odd to say
	finish         string
	proper, gaveUp bool // a finish reason came
	final          bool // usage came that counts as final
	usages         []counts
	timings        []counts
	kinds          []kinds // of the content chunks
	events, unread int
	tie            bool // two things happen at once, in either order
}

// kinds of content that a chunk has.
type kinds struct{ content, answer, thought bool }

// stream reads a stream that ends after its last piece, at an instant, or never: 0.
func (r *reference) stream(pieces []piece, end time.Duration) {
	r.message, r.finish, r.until, r.late = "delta", "none", limits.FirstToken, measure.TimeoutFirstToken
	for _, p := range pieces {
		r.tie = r.tie || p.at == r.until
		if p.at >= r.until {
			r.ends(r.late)
			return
		}
		for _, c := range []byte(p.text) {
			lf := r.cr && c == '\n'
			r.cr = c == '\r'
			switch {
			case lf:
			case c == '\r' || c == '\n':
				r.lineEnds(p.at, false)
			default:
				r.line += string([]byte{c})
			}
			if r.done || r.settled {
				r.ends("")
				return
			}
		}
	}
	r.tie = r.tie || end == r.until
	if end == 0 || end >= r.until {
		r.ends(r.late)
		return
	}
	if r.line != "" {
		r.lineEnds(end, true)
	}
	r.lineEnds(end, true)
	r.ends(measure.Truncated)
}

// ends sets the outcome; otherwise is that of an answer without an end.
func (r *reference) ends(otherwise measure.Outcome) {
	switch {
	case r.settled:
	case r.gaveUp:
		r.outcome = measure.ServerAbort
	case !r.done && !r.proper:
		r.outcome = otherwise
	case len(r.kinds) == 0:
		r.outcome = measure.Empty
	default:
		r.outcome = measure.OK
	}
}

// lineEnds takes a line of the stream. last says that the stream has ended, maybe within it.
func (r *reference) lineEnds(at time.Duration, last bool) {
	line := r.line
	if r.line = ""; !r.begun {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	r.begun = true
	name, value, _ := strings.Cut(line, ":")
	value = strings.TrimPrefix(value, " ")
	switch {
	case line == "":
		data := strings.TrimSpace(strings.Join(r.data, "\n"))
		if data != "" || r.isError || r.kind == "error" {
			r.event(data, last)
		}
		r.data, r.kind, r.note, r.isError = nil, "", "", false
	case name == "":
		r.note = strings.TrimSpace(line[1:])
	case name == "event":
		r.kind = strings.TrimSpace(value)
	case name == "error" || name == "data":
		r.isError = r.isError || name == "error"
		r.data, r.arrived = append(r.data, value), at
	}
}

func (r *reference) complete() bool { return (r.proper || r.gaveUp) && r.final }

// event takes a data event, or an error event without data.
func (r *reference) event(data string, last bool) {
	if data == "[DONE]" {
		r.done = true
		return
	}
	r.events++
	chunk := object(data)
	text, failed := r.fault(chunk, data)
	complete, contents := r.complete(), len(r.kinds)
	event := r.isError || r.kind == "error"
	switch {
	case complete && (event || chunk == nil || failed || r.proper && aborts(r.reason(chunk))):
		r.unread++
	case event:
		r.settled, r.outcome = true, measure.ErrorEvent
		if r.text = text; !failed {
			r.text = strings.TrimSpace("event: error: " + cmp.Or(data, r.note))
		}
	case chunk == nil && r.kind != "" && r.kind != "message":
		r.unread++
	case chunk == nil && last: // a part of a chunk
		r.events--
	case chunk == nil:
		r.settled, r.outcome = true, measure.BadStream
	case failed:
		r.settled, r.outcome, r.text = true, measure.ErrorEvent, text
	default:
		r.chunk(chunk)
	}
	switch {
	case r.complete() && (!complete || len(r.kinds) > contents):
		r.until = r.arrived + time.Second
	case !r.complete() && len(r.kinds) > 0:
		r.until, r.late = r.arrived+limits.Stall, measure.TimeoutStall
	}
	if r.until >= limits.Total {
		r.until, r.late = limits.Total, measure.TimeoutTotal
	}
}

// whole reads an answer that is not streamed.
func (r *reference) whole(body string) {
	r.message, r.finish = "message", "none"
	chunk := object(body)
	text, failed := r.fault(chunk, body)
	switch {
	case chunk != nil && failed:
		r.outcome, r.text = measure.ErrorEvent, text
	case chunk == nil && body != "" && strings.HasSuffix(fmt.Sprint(json.Unmarshal([]byte(body), new(any))), "unexpected end of JSON input"):
		r.outcome = measure.Truncated
	case chunk == nil || len(list(chunk["choices"])) == 0:
		r.outcome = measure.BadStream
	default:
		r.done = true
		r.chunk(chunk)
		r.ends("")
	}
}

// fault says whether a chunk is an error, and its text.
func (r *reference) fault(chunk map[string]any, data string) (text string, failed bool) {
	faults := []any{chunk["error"]}
	for _, choice := range list(chunk["choices"]) {
		faults = append(faults, member(choice, "error"))
	}
	for _, fault := range faults {
		if !empty(fault) {
			return words(fault), true
		}
	}
	marked := chunk["object"] == "error" || chunk["type"] == "error" || !empty(chunk["error_code"])
	names := []string{"message", "detail", "errors", "error_msg", "msg"}
	if marked {
		names = append(names, "text")
	}
	bare := len(list(chunk["choices"])) == 0 && len(usageOf(chunk["usage"])) == 0 && len(timingsOf(chunk["timings"])) == 0
	for _, name := range names {
		if v := chunk[name]; (marked || bare) && !empty(v) {
			if failed && text != words(v) {
				return "?", true
			}
			text, failed = words(v), true
		}
	}
	if marked && !failed {
		return data, true
	}
	return text, failed
}

// chunk takes a chunk that is no error.
func (r *reference) chunk(chunk map[string]any) {
	var k kinds
	choices := list(chunk["choices"])
	_, a := chunk["choices"]
	_, b := chunk["usage"]
	_, c := chunk["timings"]
	unread := !a && !b && !c
	usage := usageOf(chunk["usage"])
	for _, choice := range choices {
		if len(usage) == 0 {
			usage = usageOf(member(choice, "usage"))
		}
		delta := member(choice, r.message)
		k.answer = k.answer || some(member(choice, "text")) || some(member(delta, "refusal")) ||
			some(member(delta, "function_call", "name")) || some(member(delta, "function_call", "arguments")) ||
			some(member(delta, "audio", "data")) || some(member(delta, "audio", "transcript"))
		for _, call := range list(member(delta, "tool_calls")) {
			k.answer = k.answer || some(member(call, "function", "name")) || some(member(call, "function", "arguments")) ||
				some(member(call, "custom", "name")) || some(member(call, "custom", "input"))
		}
		content := member(delta, "content")
		if list(content) == nil {
			k.answer = k.answer || some(content)
		}
		for _, part := range list(content) {
			switch member(part, "type") {
			case "thinking":
				k.thought = k.thought || says(member(part, "thinking"), "text")
			case "text", "refusal", nil:
				text, _ := part.(string)
				k.answer = k.answer || text != "" || some(member(part, "text")) || some(member(part, "refusal"))
			default:
				k.answer = true
			}
		}
		k.thought = k.thought || some(member(delta, "reasoning_content")) || some(member(delta, "reasoning")) ||
			some(member(delta, "reasoning_text")) || says(member(delta, "reasoning_details"), "text", "summary", "data") ||
			says(member(delta, "thinking_blocks"), "thinking", "data")
		k.content = k.content || k.answer || k.thought ||
			some(member(choice, "token_ids")) || some(member(delta, "token_ids"))
		unread = unread || odd(choice, "text token_ids finish_reason error usage index logprobs "+r.message) ||
			odd(delta, "content refusal reasoning_content reasoning reasoning_text reasoning_details thinking_blocks "+
				"tool_calls function_call audio token_ids role name")
	}
	if k.content {
		r.kinds = append(r.kinds, k)
	}
	if unread {
		r.unread++
	}
	if reason := r.reason(chunk); reason != "" && !r.gaveUp {
		r.finish, r.gaveUp = endOf(reason), aborts(reason)
		r.proper = !r.gaveUp
	}
	if len(usage) > 0 {
		r.usages = append(r.usages, usage)
		r.final = r.final || len(choices) == 0 || r.proper || r.gaveUp || r.done
	}
	if t := timingsOf(chunk["timings"]); len(t) > 0 {
		r.timings = append(r.timings, t)
	}
}

// word returns a text, or the type of an object.
func word(v any) string {
	if of := member(v, "type"); of != nil {
		v = of
	}
	text, _ := v.(string)
	return text
}

// reason returns the finish reason of a chunk: the last, but one that means an abort stays.
func (r *reference) reason(chunk map[string]any) (reason string) {
	for _, choice := range list(chunk["choices"]) {
		own := word(member(choice, "finish_reason"))
		for _, behind := range []any{choice, member(choice, "provider_specific_fields")} {
			if native := word(member(behind, "native_finish_reason")); aborts(native) && !aborts(own) {
				own = native
			}
		}
		if own != "" && !aborts(reason) {
			reason = own
		}
	}
	return reason
}

const (
	properEnds = "stop length tool_calls function_call content_filter eos eos_token stop_sequence end_turn max_tokens " +
		"tool_use refusal safety recitation model_length model_context_window_exceeded sensitive repetition"
	abortEnds = "abort error cancelled timeout insufficient_system_resource network_error"
)

func endOf(reason string) string {
	name := strings.ReplaceAll(strings.ToLower(reason), "-", "_")
	if slices.Contains(strings.Fields(properEnds+" "+abortEnds), name) {
		return name
	}
	return "other"
}

func aborts(reason string) bool { return slices.Contains(strings.Fields(abortEnds), endOf(reason)) }

// thoughts returns the number of content chunks before the first of the answer, if one up to there has reasoning.
func (r *reference) thoughts() int {
	thought := false
	for i, k := range r.kinds {
		if thought = thought || k.thought; k.answer {
			return map[bool]int{true: i}[thought]
		}
	}
	return map[bool]int{true: len(r.kinds)}[thought]
}
