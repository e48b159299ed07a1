package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"replayd/internal/fault"
	"replayd/internal/trace/ids"
)

// Spans are OpenTelemetry's, with the attributes of its conventions for GenAI (semantic-conventions/docs/gen-ai, of
// 2024 to 2026, and the older ones of OpenLLMetry). A file is OTLP as JSON (opentelemetry-proto,
// ExportTraceServiceRequest): one object, or one a line, as the Collector's file exporter writes them. Or it is
// inference-perf's own (docs/otel_trace_replay.md at 7de5ef2): one object with the key spans. A trace is a session, and
// may stand in several objects and files.

// maxSpans bounds the spans of an object; a span of both kinds takes some 500 bytes.
const maxSpans = 1 << 18

// A spansReader collects the LLM calls until all are known. The prompts wait in the lowering's file. In memory a call
// takes some 250 bytes, and 8 for each earlier answer that its messages have.
type spansReader struct {
	lowering *lowering
	calls    []spanCall // by row of the lowering
	names    []string   // of the traces
	sent     []int      // by trace: its calls
	traces   map[string]int32
	spans    map[uint64]bool // by trace and id: LLM calls so far
	said     map[uint64]bool // by trace, times and attributes, likewise
	left     map[string]int  // by kind: spans that are no LLM calls
	count    spanCounts
}

// spanCounts are what warnings tell.
type spanCounts struct {
	twice, failed, empty, cut, bare, tools, thoughts, estimated, open, outer int
}

// A spanCall is a span that is an LLM call.
type spanCall struct {
	trace        int32
	start, end   time.Duration
	span, parent uint64   // ids.Hash of the ids of the trace and the span
	answer       []uint64 // keys that are all in a prompt that has the answer
	history      []uint64 // keys of the assistant's messages in the prompt
}

func newSpansReader(l *lowering) *spansReader {
	t := &spansReader{
		lowering: l, traces: map[string]int32{}, spans: map[uint64]bool{}, said: map[uint64]bool{}, left: map[string]int{},
	}
	l.settle, l.block = t.settle, blockSizes[0] // no row has ids
	return t
}

// spanKeys are the names of a span's fields.
type spanKeys struct{ trace, span, parent, start, end string }

var (
	otlpKeys      = spanKeys{"traceId", "spanId", "parentSpanId", "startTimeUnixNano", "endTimeUnixNano"}
	inferencePerf = spanKeys{"trace_id", "span_id", "parent_span_id", "start_time", "end_time"}
)

func (t *spansReader) read(_ int, text []byte) (fault.List, error) {
	o := object{}
	if found := o.read(text, "object"); found != nil {
		return found, nil
	}
	left := maxSpans
	if o.value("resourceSpans") == nil {
		if o.value("spans") == nil {
			o.fault("spans", "a list of spans, or resourceSpans", "none")
		}
		return o.each("spans", &left, func(e *object) error { return t.span(e, inferencePerf) })
	}
	return o.each("resourceSpans", &left, func(resource *object) error {
		return resource.under("scopeSpans", &left, func(scope *object) error {
			return scope.under("spans", &left, func(e *object) error { return t.span(e, otlpKeys) })
		})
	})
}

// each calls read for each object of a list, of at most so many, and returns all faults.
func (o *object) each(key string, left *int, read func(*object) error) (fault.List, error) {
	err := o.under(key, left, read)
	return o.faults, err
}

func (o *object) under(key string, left *int, read func(*object) error) error {
	list := o.list(key, "a list of objects", *left)
	*left -= len(list)
	for i, text := range list {
		e, err := object{}, error(nil)
		if e.decode(text) {
			err = read(&e)
		} else {
			e.fault("", "an object", kindOf(text))
		}
		if o.addFaults(fmt.Sprintf("%s[%d]", key, i), e.faults); err != nil {
			return err
		}
	}
	return nil
}

// span adds a span. Only of LLM calls it wants more than attributes.
func (t *spansReader) span(o *object, keys spanKeys) error {
	a := o.attributes()
	kind, call := a.spanKind(o.word("name"))
	if !call || len(o.faults) > 0 {
		t.left[kind]++
		return nil
	}
	c := spanCall{}
	name, id := o.text(keys.trace, MaxSessionBytes), o.text(keys.span, MaxSessionBytes)
	o.needs(keys.trace, "a string")
	o.needs(keys.span, "a string")
	c.span = ids.Hash(subAgent{name, id})
	if parent := o.word(keys.parent); parent != "" {
		c.parent = ids.Hash(subAgent{name, parent})
	}
	ended := o.spanTimes(&c, keys)
	times, attributes := [2]time.Duration{c.start, c.end}, string(o.value("attributes"))
	said := ids.Hash([3]uint64{ids.Hash(name), ids.Hash(times), ids.Hash(attributes)})
	if len(o.faults) == 0 && t.said[said] {
		t.count.twice++
		return nil
	}
	o.addEvents(&a)
	r := Record{Offset: c.start, Session: name, After: []Edge{}}
	p := a.prompt()
	r.Messages, r.Tools, c.history = p.messages, p.tools, p.history
	input, _ := a.tokens("input_tokens", "prompt_tokens")
	output, counted := a.tokens("output_tokens", "completion_tokens")
	answer := a.answer()
	c.answer = answer.keys
	o.addFaults("attributes", a.faults)
	if len(o.faults) == 0 && t.spans[c.span] {
		o.fault(keys.span, "one that no other span of the trace has", shown(o.value(keys.span)))
	}
	switch {
	case len(o.faults) > 0:
		return nil
	case failed(o) && output == 0 && answer.chars == 0:
		t.count.failed++
		return nil
	case r.Messages == nil && input == 0:
		t.count.empty++
		return nil
	}
	if c.trace = t.traceOf(name); t.sent[c.trace] == maxWekaCalls {
		o.fault(keys.trace, fmt.Sprintf("at most %d LLM calls of a trace", maxWekaCalls), "more")
		return nil
	}
	t.sent[c.trace]++
	t.spans[c.span], t.said[said] = true, true
	switch r.OutputTokens = output; {
	case output == 0 && answer.chars > 0:
		r.OutputTokens = max(1, answer.chars/4)
		t.count.estimated++
	case counted:
		r.OutputTokens = max(1, output) // as in the other formats
	}
	if r.Messages == nil {
		r.InputTokens, r.Tools = input, nil
	}
	t.count.add(&p, r.Messages == nil, ended)
	t.calls = append(t.calls, c)
	return t.lowering.row(&r)
}

func (n *spanCounts) add(p *spanPrompt, synthesized, ended bool) {
	for _, c := range []struct {
		is   bool
		of   *int
		many int
	}{
		{synthesized && p.given, &n.cut, 1},
		{synthesized && !p.given, &n.bare, 1},
		{!synthesized, &n.thoughts, p.thoughts},
		{!synthesized && p.toolsLeft, &n.tools, 1},
		{!ended, &n.open, 1},
	} {
		if c.is {
			*c.of += c.many
		}
	}
}

func (t *spansReader) traceOf(name string) int32 {
	of, known := t.traces[name]
	if !known {
		of = int32(len(t.names))
		t.names, t.sent, t.traces[name] = append(t.names, name), append(t.sent, 0), of
	}
	return of
}

// spanTimes reads the times of a span. It reports whether the span has an end. A span without one ends when it starts.
func (o *object) spanTimes(c *spanCall, keys spanKeys) (ended bool) {
	read := o.date
	if keys == otlpKeys {
		read = o.unixNanos
	}
	started, before := false, len(o.faults)
	if c.start, started = read(keys.start); !started && len(o.faults) == before {
		o.fault(keys.start, "a time", cmp.Or(shown(o.value(keys.start)), "none"))
	}
	if c.end, ended = read(keys.end); !ended {
		c.end = c.start
	}
	if started && ended && c.end < c.start {
		o.fault(keys.end, fmt.Sprintf("≥ %s, that of %s", shown(o.value(keys.start)), keys.start), shown(o.value(keys.end)))
	}
	return ended
}

// unixNanos reads an instant as OTLP has it: nanoseconds in a text, or a number; 0 is none.
func (o *object) unixNanos(key string) (at time.Duration, ok bool) {
	v := string(o.value(key))
	if text := strings.Trim(v, `"`); v != "" && text != "0" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 || n > maxNanos {
			o.fault(key, "nanoseconds since 1970", shown(o.value(key)))
			return 0, false
		}
		return time.Duration(n), true
	}
	return 0, false
}

// failed reports whether the status of a span is an error: 2, or its name in OTLP.
func failed(o *object) bool {
	status := object{}
	if !status.decode(o.value("status")) {
		return false
	}
	code := strings.Trim(string(status.value("code")), `"`)
	return code == "2" || code == "STATUS_CODE_ERROR" || code == "ERROR"
}

// kindsLeft are the kinds of spans that warnings name: operations of GenAI, and kinds of OpenLLMetry and OpenInference.
// Other words of a file are not repeated.
var kindsLeft = []string{
	"embeddings", "retrieval", "create_agent", "invoke_agent", "invoke_workflow", "execute_tool",
	"workflow", "task", "agent", "tool", "chain", "retriever", "embedding", "reranker", "llm", "guardrail", "evaluator",
}

// spanKind reports whether a span is an LLM call, and else what it is. Where the attributes do not say, inference-perf
// goes by the name, and so does this.
func (o *object) spanKind(name string) (kind string, call bool) {
	operation := o.word("gen_ai.operation.name")
	switch request := o.word("llm.request.type"); {
	case operation == "chat", operation == "text_completion", operation == "generate_content":
		return "", true
	case operation != "":
	case request == "chat", request == "completion":
		return "", true
	case name == "chat", strings.HasPrefix(name, "chat "), strings.HasPrefix(name, "text_completion "):
		return "", true
	case o.word("gen_ai.request.model") != "" && o.asks():
		return "", true
	}
	for _, key := range []string{"traceloop.span.kind", "openinference.span.kind"} {
		if operation == "" {
			operation = strings.ToLower(o.word(key))
		}
	}
	switch {
	case slices.Contains(kindsLeft, operation):
		return operation, false
	case o.value("http.request.method") != nil, o.value("http.method") != nil:
		return "HTTP", false
	}
	return "other", false
}

// asks reports whether the attributes have a prompt or its length.
func (o *object) asks() bool {
	return slices.ContainsFunc([]string{
		"gen_ai.input.messages", "gen_ai.prompt", "gen_ai.prompt.0.content",
		"gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens",
	}, func(key string) bool { return o.value(key) != nil })
}
