package trace

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// spanText is a span as inference-perf writes it. Times are seconds after an instant of 2026; no end: -1.
func spanText(trace, id, start, end, attributes string) string {
	at := func(s string) string {
		whole, fraction, _ := strings.Cut(s, ".")
		n, err := strconv.Atoi(whole)
		if err != nil {
			panic(err)
		}
		return time.Unix(1790000000+int64(n), 0).UTC().Format("2006-01-02T15:04:05") + "." + fraction + "0Z"
	}
	times := fmt.Sprintf(`"start_time":%q`, at(start))
	if end != "" {
		times += fmt.Sprintf(`,"end_time":%q`, at(end))
	}
	return fmt.Sprintf(`{"trace_id":%q,"span_id":%q,%s,"name":"chat m","attributes":{%s}}`, trace, id, times, attributes)
}

// said are the attributes of a chat with messages and an answer, given as JSON.
func said(messages, answer string) string {
	return fmt.Sprintf(`"gen_ai.operation.name":"chat","gen_ai.input.messages":%q,"gen_ai.output.messages":%q,"gen_ai.usage.output_tokens":7`,
		messages, answer)
}

func spansFile(spans ...string) string { return `{"spans":[` + strings.Join(spans, ",") + `]}` }

// asOTLP converts spans of inference-perf's form, one span an object.
func asOTLP(t testing.TB, file string, structured bool) (lines []string) {
	t.Helper()
	var in struct{ Spans []map[string]any }
	if err := json.Unmarshal([]byte(file), &in); err != nil {
		t.Fatal(err)
	}
	nanos := func(v any) string {
		at, ok := dateOf([]byte(v.(string)))
		if !ok {
			t.Fatalf("%v is no time", v)
		}
		return strconv.FormatInt(at, 10)
	}
	for _, s := range in.Spans {
		out := map[string]any{"traceId": s["trace_id"], "spanId": s["span_id"], "name": s["name"], "startTimeUnixNano": nanos(s["start_time"])}
		if s["end_time"] != nil {
			out["endTimeUnixNano"] = nanos(s["end_time"])
		}
		var list []any
		for _, key := range slices.Sorted(keysIn(s["attributes"].(map[string]any))) {
			v := s["attributes"].(map[string]any)[key]
			if text, ok := v.(string); ok && structured && strings.HasPrefix(text, "[") {
				var inner any
				if err := json.Unmarshal([]byte(text), &inner); err != nil {
					t.Fatal(err)
				}
				v = inner
			}
			list = append(list, map[string]any{"key": key, "value": anyValue(v)})
		}
		out["attributes"] = list
		lines = append(lines, string(encoded(map[string]any{"resourceSpans": []any{
			map[string]any{"scopeSpans": []any{map[string]any{"scope": map[string]any{}, "spans": []any{out}}}},
		}})))
	}
	return lines
}

func keysIn(m map[string]any) func(func(string) bool) {
	return func(yield func(string) bool) {
		for key := range m {
			if !yield(key) {
				return
			}
		}
	}
}

// anyValue is a value as OTLP has it, with integers as texts.
func anyValue(v any) any {
	switch v := v.(type) {
	case string:
		return map[string]any{"stringValue": v}
	case float64:
		return map[string]any{"intValue": strconv.Itoa(int(v))}
	case bool:
		return map[string]any{"boolValue": v}
	case []any:
		list := []any{}
		for _, e := range v {
			list = append(list, anyValue(e))
		}
		return map[string]any{"arrayValue": map[string]any{"values": list}}
	case map[string]any:
		list := []any{}
		for _, key := range slices.Sorted(keysIn(v)) {
			list = append(list, map[string]any{"key": key, "value": anyValue(v[key])})
		}
		return map[string]any{"kvlistValue": map[string]any{"values": list}}
	}
	return map[string]any{}
}

// withoutPrompts compares what is no text.
func withoutPrompts(rows []Record) []Record {
	for i := range rows {
		rows[i].Messages, rows[i].Line = nil, 0
	}
	return rows
}

// Of inference-perf's example the last call compares the answers of the three before it. The calls begin at 0, 2.5, 3 and 6 s and
// end at 2, 4.5, 5 and 9 s. The lengths are the characters of the answers ÷ 4: they have 168, 197, 192 and 400.
func TestSpansOfInferencePerf(t *testing.T) {
	f, err := Open(t.Context(), "testdata/recorded/spans_fan_in.json", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := time.Second
	want := []Record{
		{After: []Edge{}, OutputTokens: 168 / 4},
		{Offset: s / 2, After: []Edge{{0, s / 2}}, OutputTokens: 197 / 4},
		{Offset: s, After: []Edge{{0, s}}, OutputTokens: 192 / 4},
		{Offset: 2 * s, After: []Edge{{2, s}, {1, s}, {0, s}}, OutputTokens: 400 / 4},
	}
	for i := range want {
		want[i].Number, want[i].Session, want[i].Floating = i, "test_trace_003", i > 0
	}
	got := read(t, f, 0)
	if first := `[{"role":"user","content":"What are the main features of Python?"}]`; string(got[0].Messages) != first {
		t.Errorf("want %s, got %s", first, got[0].Messages)
	}
	var last []map[string]string
	if err := json.Unmarshal(got[3].Messages, &last); err != nil || len(last) != 7 || last[5]["role"] != "assistant" {
		t.Errorf("want 7 messages, got %v, %v", last, err)
	}
	if diff := cmp.Diff(want, withoutPrompts(got)); diff != "" {
		t.Error(diff)
	}
	warning := "testdata/recorded/spans_fan_in.json: LLM calls without output tokens: 4 of 4: the length of each answer is its characters ÷ 4"
	if f.Stats.Format != Spans || !slices.Equal(f.Stats.Warnings, []string{warning}) {
		t.Errorf("got %s, %q", f.Stats.Format, f.Stats.Warnings)
	}
}

// Four traces of one file are four sessions, and have the counts of tokens that the file says. The turns of a conversation name the
// turn before as their parent span, which does not make them parts of it. They begin at 4, 6, 8 and 10 s and end at
// 5, 7.5, 9.8 and 11.5 s, behind two others.
func TestSpansOfConversations(t *testing.T) {
	f, err := Open(t.Context(), "testdata/recorded/spans_conversations.json", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := map[string][]string{}
	for _, r := range read(t, f, 0) {
		got[r.Session] = append(got[r.Session], fmt.Sprint(r.OutputTokens, r.After))
	}
	want := map[string][]string{
		"conversation_trace":  {"50 []", "60 [{2 1s}]", "70 [{3 500ms}]", "55 [{4 200ms}]"},
		"independent_trace_1": {"20 []"}, "independent_trace_2": {"15 []"}, "independent_trace_3": {"10 []"},
	}
	if diff := cmp.Diff(want, got); diff != "" || f.Stats.Warnings != nil {
		t.Errorf("%s\n%q", diff, f.Stats.Warnings)
	}
}

const (
	question = `[{"role":"user","content":"a"}]`
	answered = `[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]`
	answerB  = `[{"role":"assistant","parts":[{"type":"text","content":"b"}],"finish_reason":"stop"}]`
	asked    = `[{"role":"assistant","parts":[{"type":"text","content":"I look."},{"type":"tool_call","id":"1","name":"f","arguments":{"x": 1}}]}]`
	byID     = `[{"role":"user","content":"a"},{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]},` +
		`{"role":"tool","content":"r","tool_call_id":"1"}]`
)

// Calls wait for the answers in their prompts: by text, and by the ids of calls of tools, whatever stands beside them. Others wait
// for the last one to begin of those that had ended. All waits of a call are the time since the last end.
func TestSpansGraph(t *testing.T) {
	s := time.Second
	for name, c := range map[string]struct {
		spans []string
		want  [][]Edge
	}{
		"by text, over a call that runs": {
			[]string{
				spanText("t", "1", "0", "1", said(question, answerB)),
				spanText("t", "2", "2", "9", said(question, `[{"role":"assistant","content":"x"}]`)),
				spanText("t", "3", "3", "4", said(answered, answerB)),
			},
			[][]Edge{{}, {{0, s}}, {{0, 2 * s}}},
		},
		"by the ids of tools": {
			[]string{
				spanText("t", "1", "0", "1", said(question, asked)),
				spanText("t", "2", "2", "3", said(question, answerB)),
				spanText("t", "3", "3.5", "4", said(byID, answerB)),
			},
			[][]Edge{{}, {{0, s}}, {{0, s / 2}, {1, s / 2}}},
		},
		"the answer before an answer is no parent": {
			[]string{
				spanText("t", "1", "0", "1", said(question, answerB)),
				spanText("t", "2", "2", "3", said(answered, `[{"role":"assistant","content":"d"}]`)),
				spanText("t", "3", "4", "5", said(strings.TrimSuffix(answered, "]")+`,{"role":"assistant","content":"d"}]`, answerB)),
			},
			[][]Edge{{}, {{0, s}}, {{1, s}}},
		},
		"an answer that came later is no parent": {
			[]string{
				spanText("t", "1", "0", "5", said(question, answerB)),
				spanText("t", "2", "1", "2", said(answered, answerB)),
			},
			[][]Edge{{}, {}},
		},
		"in the order of starts, and each trace alone; both of them are due at 1 s": {
			[]string{
				spanText("t", "2", "2", "3", said(question, answerB)),
				spanText("u", "1", "1", "2", said(question, answerB)),
				spanText("t", "1", "0", "1", said(question, answerB)),
			},
			[][]Edge{{}, {{0, s}}, {}},
		},
	} {
		f, err := openContent(t, spansFile(c.spans...), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got [][]Edge
		for _, r := range read(t, f, 0) {
			got = append(got, r.After)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The same spans in OTLP have the same rows: in one object, a line each, in any order, indented, with structured messages, and
// in the files of a folder.
func TestSpansForms(t *testing.T) {
	file := spansFile(
		spanText("t", "1", "0", "1", said(question, asked)), spanText("t", "2", "2", "3", said(byID, answerB)),
		spanText("u", "1", "0.5", "", `"gen_ai.operation.name":"text_completion","gen_ai.usage.input_tokens":50,"gen_ai.usage.output_tokens":0`))
	f, err := openContent(t, file, Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := read(t, f, 0)
	if want[1].InputTokens != 50 || want[1].OutputTokens != 1 || string(want[2].Messages) != byID {
		t.Fatalf("got %+v", want)
	}
	text, structured := asOTLP(t, file, false), asOTLP(t, file, true)
	slices.Reverse(structured)
	for name, content := range map[string]string{
		"text": strings.Join(text, "\n"), "structured, the other way around": strings.Join(structured, "\n"),
		"indented": strings.ReplaceAll(file, `,"`, ",\r\n \""), "compressed": gzipped(t, file),
		"numbers": strings.ReplaceAll(strings.Join(text, "\n"), `"intValue":"50"`, `"intValue":50`),
	} {
		f, err := openContent(t, content, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, read(t, f, 0)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		_ = f.Close()
	}
	dir := t.TempDir()
	for i, content := range text {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i, ".json")), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if f, err = Open(t.Context(), dir, Options{}); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if diff := cmp.Diff(want, read(t, f, 0)); diff != "" {
		t.Errorf("folder: %s", diff)
	}
}

// Whatever is left out or made up is counted.
func TestSpansWarnings(t *testing.T) {
	tool := strings.Replace(spanText("t", "9", "0", "1", `"gen_ai.operation.name":"execute_tool"`), `"chat m"`, `"tool"`, 1)
	http := strings.Replace(spanText("t", "8", "0", "1", `"http.request.method":"POST"`), `"chat m"`, `"POST"`, 1)
	failed := strings.Replace(spanText("t", "7", "4", "5", `"gen_ai.usage.input_tokens":5`), `"name"`, `"status":{"code":2},"name"`, 1)
	inner := strings.Replace(spanText("t", "6", "6.5", "7", said(question, answerB)), `"name"`, `"parent_span_id":"5","name"`, 1)
	same := spanText("t", "1", "0", "1", said(question, answerB))
	f, err := openContent(t, spansFile(
		same, strings.Replace(same, `"span_id":"1"`, `"span_id":"2"`, 1), tool, tool, http, failed, inner,
		spanText("t", "5", "6", "8", said(question, answerB)),
		spanText("t", "4", "8", "9", `"gen_ai.output.text":"12345678","gen_ai.usage.prompt_tokens":"30"`),
		spanText("t", "3", "9", "9", ""),
		spanText("t", "10", "9", "", `"gen_ai.usage.input_tokens":31,`+said(`[{"role":"user","content":"cut`, answerB)),
		spanText("t", "11", "10", "11", `"gen_ai.tool.definitions":"[{}]",`+said(
			`[{"role":"user","parts":[{"type":"reasoning","content":"?"},{"type":"text","content":"a"}]}]`, answerB)),
	), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	want := []string{
		"t.jsonl: spans that are no LLM calls are left out: 3 (HTTP 1, execute_tool 2)",
		"t.jsonl: spans that say the same as another one are left out: 1",
		"t.jsonl: LLM calls that failed without an answer are left out: 1",
		"t.jsonl: LLM calls without messages that can be sent and without input tokens are left out: 1",
		"t.jsonl: LLM calls around another one are left out: 1",
		"t.jsonl: LLM calls without messages: 1 of 5: the prompt of each is made up",
		"t.jsonl: LLM calls with messages that are cut or that the chat API does not have: 1 of 5: the prompt of each is made up",
		"t.jsonl: LLM calls with tools that the chat API does not have: 1 of 5: they are left out",
		"t.jsonl: parts of messages with reasoning are left out: 1",
		"t.jsonl: LLM calls without output tokens: 1 of 5: the length of each answer is its characters ÷ 4",
		"t.jsonl: LLM calls without an end: 1 of 5: the wait after each includes the time of its answer",
	}
	if diff := cmp.Diff(want, f.Stats.Warnings); diff != "" {
		t.Error(diff)
	}
	var lengths []string
	for _, r := range read(t, f, 0) {
		lengths = append(lengths, fmt.Sprint(r.InputTokens, " ", r.OutputTokens))
	}
	if want := []string{"0 7", "0 7", "30 2", "31 7", "0 7"}; !slices.Equal(lengths, want) {
		t.Errorf("want %q, got %q", want, lengths)
	}
}
