package trace

import (
	"strings"
	"testing"
)

// Messages of the conventions of 2026, of those before, of OpenAI's and of Anthropic's API become those of the chat API. What it
// does not have for certain is made up: the row has the length of the prompt.
func TestSpansMessages(t *testing.T) {
	const madeUp = ""
	for name, c := range map[string]struct{ attributes, want, tools string }{
		"OpenAI's": {
			`"gen_ai.input.messages":` + byID, byID, "",
		},
		"developer": {
			`"gen_ai.input.messages":[{"role":"developer","content":"a"}]`, `[{"role":"system","content":"a"}]`, "",
		},
		"parts, with the call of a tool and its result": {
			`"gen_ai.input.messages":[{"role":"user","parts":[{"type":"text","content":"Weather in Paris?"}]},
			{"role":"assistant","parts":[{"type":"tool_call","id":"call_1","name":"get_weather","arguments":{"location": "Paris"}}]},
			{"role":"tool","parts":[{"type":"tool_call_response","id":"call_1","response":"rainy, 57°F"}]}]`,
			`[{"role":"user","content":"Weather in Paris?"},{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":` +
				`{"name":"get_weather","arguments":"{\"location\":\"Paris\"}"}}]},{"role":"tool","content":"rainy, 57°F","tool_call_id":"call_1"}]`, "",
		},
		"system instructions": {
			`"gen_ai.system_instructions":"[{\"type\":\"text\",\"content\":\"be <brief>\"}]","gen_ai.input.messages":[{"role":"user","content":"a"}]`,
			`[{"role":"system","content":"be <brief>"},{"role":"user","content":"a"}]`, "",
		},
		"two results and a text": {
			`"gen_ai.input.messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r"}]},
			{"type":"tool_result","tool_use_id":"2","content":"s"},{"type":"text","text":"go on"}]}]`,
			`[{"role":"tool","content":"r","tool_call_id":"1"},{"role":"tool","content":"s","tool_call_id":"2"},{"role":"user","content":"go on"}]`, "",
		},
		"Anthropic's call": {
			`"gen_ai.input.messages":[{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"1","name":"f","input":{"x":1}}]}]`,
			`[{"role":"assistant","content":"a","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}]`, "",
		},
		"a result that is an object": {
			`"gen_ai.input.messages":[{"role":"tool","parts":[{"type":"tool_call_response","id":"1","result":{"a": [1]}}]}]`,
			`[{"role":"tool","content":"{\"a\":[1]}","tool_call_id":"1"}]`, "",
		},
		"a list of texts": {
			`"gen_ai.input.messages":[{"role":"user","content":["a",{"type":"text","text":"b"}]}]`, `[{"role":"user","content":"ab"}]`, "",
		},
		"the older name, as text": {
			`"gen_ai.prompt":"Say this."`, `[{"role":"user","content":"Say this."}]`, "",
		},
		"OpenLLMetry's": {
			`"gen_ai.prompt.0.role":"user","gen_ai.prompt.0.content":"a","gen_ai.prompt.1.role":"assistant","gen_ai.prompt.1.tool_calls.0.id":"1",` +
				`"gen_ai.prompt.1.tool_calls.0.name":"f","gen_ai.prompt.1.tool_calls.0.arguments":"{\"x\":1}",` +
				`"gen_ai.prompt.2.role":"tool","gen_ai.prompt.2.tool_call_id":"1","gen_ai.prompt.2.content":"r"`, byID, "",
		},
		"tools": {
			`"gen_ai.input.messages":` + question + `,"gen_ai.tool.definitions":"[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{}}]"`,
			question, `[{"function":{"name":"f","parameters":{}},"type":"function"}]`,
		},
		"OpenAI's tools": {
			`"gen_ai.input.messages":` + question + `,"gen_ai.tool.definitions":[{"type":"function","function":{"name":"f"}}]`,
			question, `[{"type":"function","function":{"name":"f"}}]`,
		},
		"none":                    {`"gen_ai.request.model":"m"`, madeUp, ""},
		"cut":                     {`"gen_ai.input.messages":"[{\"role\":\"user\",\"con"`, madeUp, ""},
		"an empty list":           {`"gen_ai.input.messages":[]`, madeUp, ""},
		"an image":                {`"gen_ai.input.messages":[{"role":"user","parts":[{"type":"blob","content":"AAAA"}]}]`, madeUp, ""},
		"an unknown role":         {`"gen_ai.input.messages":[{"role":"critic","content":"a"}]`, madeUp, ""},
		"a call without an id":    {`"gen_ai.input.messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}]`, madeUp, ""},
		"a result without an id":  {`"gen_ai.input.messages":[{"role":"tool","content":"r"}]`, madeUp, ""},
		"a result of an answer":   {`"gen_ai.input.messages":[{"role":"assistant","content":[{"type":"tool_result","tool_use_id":"1"}]}]`, madeUp, ""},
		"content that is a thing": {`"gen_ai.input.messages":[{"role":"user","content":{"text":"a"}}]`, madeUp, ""},
		"an object as prompt":     {`"gen_ai.prompt":"{\"text\":\"a\"}"`, madeUp, ""},
	} {
		attributes := `"gen_ai.operation.name":"chat","gen_ai.usage.input_tokens":9,"gen_ai.usage.output_tokens":1,` + c.attributes
		f, err := openContent(t, spansFile(spanText("t", "1", "0", "1", strings.ReplaceAll(attributes, "\n", ""))), Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		r := read(t, f, 0)[0]
		if string(r.Messages) != c.want || string(r.Tools) != c.tools {
			t.Errorf("%s: want\n%s %s, got\n%s %s", name, c.want, c.tools, r.Messages, r.Tools)
		}
		if madeUp := r.InputTokens == 9; madeUp != (c.want == "") {
			t.Errorf("%s: got a prompt of %d tokens", name, r.InputTokens)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A span's events may have the messages.
func TestSpansEvents(t *testing.T) {
	span := strings.Replace(spanText("t", "1", "0", "1", `"gen_ai.operation.name":"chat"`), `"name"`,
		`"events":[{"name":"gen_ai.content.prompt","attributes":{"gen_ai.prompt":"[{\"role\":\"user\",\"content\":\"a\"}]"}},7],"name"`, 1)
	f, err := openContent(t, spansFile(span), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := read(t, f, 0)[0].Messages; string(got) != question {
		t.Errorf("got %s", got)
	}
}

// Broken files of spans: an error says where, which field and what was wanted, and no text of a message.
func TestSpansFaults(t *testing.T) {
	ok := spanText("t", "1", "0", "1", said(`[{"role":"user","content":"SECRET"}]`, `[{"role":"assistant","content":"SECRET"}]`))
	change := func(old, with string) string {
		if !strings.Contains(ok, old) {
			t.Fatalf("%s is not in %s", old, ok)
		}
		return spansFile(strings.Replace(ok, old, with, 1))
	}
	otlp := func(span string) string { return `{"resourceSpans":[{"scopeSpans":[{"spans":[` + span + `]}]}]}` }
	otlpSpan := `{"traceId":"t","spanId":"1","name":"chat m","startTimeUnixNano":"1790000000000000000","endTimeUnixNano":"1790000001000000000",` +
		`"attributes":[{"key":"gen_ai.usage.input_tokens","value":{"intValue":"5"}}]}`
	in := func(old, with string) string {
		if !strings.Contains(otlpSpan, old) {
			t.Fatalf("%s is not in %s", old, otlpSpan)
		}
		return otlp(strings.Replace(otlpSpan, old, with, 1))
	}
	for _, c := range []struct{ content, want string }{
		{`{"spans":[]}`, `t.jsonl: want at least one row, got none`},
		{otlp(""), `t.jsonl: want at least one row, got none`},
		{`{"spans":7}`, `t.jsonl:1: spans: want a list of objects, got 7`},
		{`{"resourceSpans":{}}`, `t.jsonl:1: resourceSpans: want a list of objects, got {}`},
		{`{"resourceSpans":[{"scopeSpans":"SECRET and more than forty bytes of it, so that it is cut"}]}`, `t.jsonl:1: resourceSpans[0].scopeSpans: want a list of objects, got "\"SECRET and more than forty bytes of it,"…`},
		{`{"resourceSpans":[{"scopeSpans":[{"spans":["SECRET"]}]}]}`, `t.jsonl:1: resourceSpans[0].scopeSpans[0].spans[0]: want an object, got a string`},
		{spansFile(ok) + "\n" + `{"resourceMetrics":[]}`, `t.jsonl:2: spans: want a list of spans, or resourceSpans, got none`},
		{spansFile(`"SECRET"`), `t.jsonl:1: spans[0]: want an object, got a string`},
		{spansFile(ok, `[]`), `t.jsonl:1: spans[1]: want an object, got a list`},
		{spansFile(ok, `null`), `t.jsonl:1: spans[1]: want an object, got null`},
		{"{\n\"spans\":[\n{\"name\":\"chat m\",\"attributes\":\"SECRET\"}]}", `t.jsonl: spans[0].attributes: want an object, or a list of keys and values, got a string`},
		{change(`"trace_id":"t",`, ""), `t.jsonl:1: spans[0].trace_id: want a string, got none`},
		{change(`"trace_id":"t"`, `"trace_id":""`), `t.jsonl:1: spans[0].trace_id: want a string that is not empty, got ""`},
		{change(`"trace_id":"t"`, `"trace_id":"`+strings.Repeat("t", 257)+`"`), `t.jsonl:1: spans[0].trace_id: want at most 256 bytes, got 257`},
		{change(`"span_id":"1",`, ""), `t.jsonl:1: spans[0].span_id: want a string, got none`},
		{change(`"span_id":"1"`, `"span_id":1`), `t.jsonl:1: spans[0].span_id: want a string, got 1`},
		{change(`"start_time":"2026-09-21T14:13:20.0Z",`, ""), `t.jsonl:1: spans[0].start_time: want a time, got none`},
		{change(`"start_time":"2026-09-21T14:13:20.0Z"`, `"start_time":1790000000`), `t.jsonl:1: spans[0].start_time: want a string, got 1790000000`},
		{change("2026-09-21T14:13:20.0Z", "21.9.2026"), `t.jsonl:1: spans[0].start_time: want a time such as 2026-06-01T05:40:20.151Z, got "21.9.2026"`},
		{change("2026-09-21T14:13:20.0Z", "1926-09-21T14:13:20.0Z"), `t.jsonl:1: spans[0].start_time: want a time such as 2026-06-01T05:40:20.151Z, got "1926-09-21T14:13:20.0Z"`},
		{change("2026-09-21T14:13:21.0Z", "2026-09-21T14:13:19Z"), `t.jsonl:1: spans[0].end_time: want ≥ "2026-09-21T14:13:20.0Z", that of start_time, got "2026-09-21T14:13:19Z"`},
		{change(`"gen_ai.usage.output_tokens":7`, `"gen_ai.usage.output_tokens":-7`), `t.jsonl:1: spans[0].attributes.gen_ai.usage.output_tokens: want an integer ≥ 0, got -7`},
		{change(`"gen_ai.usage.output_tokens":7`, `"gen_ai.usage.output_tokens":"x"`), `t.jsonl:1: spans[0].attributes.gen_ai.usage.output_tokens: want an integer ≥ 0, got "x"`},
		{change(`"gen_ai.usage.output_tokens":7`, `"gen_ai.usage.input_tokens":"99999999"`), `t.jsonl:1: spans[0].attributes.gen_ai.usage.input_tokens: want at most 16777216 tokens, got 99999999`},
		{spansFile(ok, strings.Replace(ok, "SECRET", "SECRETS", 1)), `t.jsonl:1: spans[1].span_id: want one that no other span of the trace has, got "1"`},
		{change("SECRET", strings.Repeat("long", 2<<20)), `t.jsonl:1: spans[0].attributes.gen_ai.input.messages: want at most 8126464 bytes with the tools, got 8388638`},
		{in(`"startTimeUnixNano":"1790000000000000000",`, ""), `t.jsonl:1: resourceSpans[0].scopeSpans[0].spans[0].startTimeUnixNano: want a time, got none`},
		{in(`"1790000000000000000"`, `"soon"`), `t.jsonl:1: resourceSpans[0].scopeSpans[0].spans[0].startTimeUnixNano: want nanoseconds since 1970, got "soon"`},
		{in(`"1790000001000000000"`, `1789999999000000000`), `t.jsonl:1: resourceSpans[0].scopeSpans[0].spans[0].endTimeUnixNano: want ≥ "1790000000000000000", that of startTimeUnixNano, got 1789999999000000000`},
		{in(`"1790000001000000000"`, `"19000000000000000000"`), `t.jsonl:1: resourceSpans[0].scopeSpans[0].spans[0].endTimeUnixNano: want nanoseconds since 1970, got "19000000000000000000"`},
		{in(`"1790000000000000000"`, `"0"`), `t.jsonl:1: resourceSpans[0].scopeSpans[0].spans[0].startTimeUnixNano: want a time, got "0"`},
		{in(`"intValue":"5"`, `"intValue":"five"`), `t.jsonl:1: resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value: want an object with one value of OTLP, got an object`},
		{in(`{"intValue":"5"}`, `5`), `t.jsonl:1: resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value: want an object with one value of OTLP, got a number`},
		{in(`{"intValue":"5"}`, strings.Repeat(`{"arrayValue":{"values":[`, 40)+strings.Repeat(`]}}`, 40)), `t.jsonl:1: resourceSpans[0].scopeSpans[0].spans[0].attributes[0].value: want an object with one value of OTLP, got an object`},
		{in(`"key":"gen_ai.usage.input_tokens",`, ""), `t.jsonl:1: resourceSpans[0].scopeSpans[0].spans[0].attributes[0]: want an object with key and value, got an object`},
		{spansFile(ok) + "\n{", `t.jsonl:2: object: want a JSON object, got "{" (unexpected end of JSON input)`},
		{spansFile(ok) + "\n[]", `t.jsonl:2: object: want a JSON object, got "[]"`},
	} {
		f, err := openContent(t, c.content, Options{})
		if err == nil {
			t.Errorf("want %s, got none", c.want)
			_ = f.Close()
			continue
		}
		if err.Error() != c.want {
			t.Errorf("want %s, got %v", c.want, err)
		}
		if strings.Contains(err.Error(), "SECRET") && !strings.Contains(c.want, "SECRET") {
			t.Errorf("the error repeats a text: %v", err)
		}
	}
}

// A trace has at most as many calls as a session of Weka's.
func TestSpansOfATraceAreBounded(t *testing.T) {
	l, err := newLowering(Spans, &Options{maxSpool: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer l.waiting.file.Close()
	r := newSpansReader(l)
	r.traces["t"], r.names, r.sent = 0, []string{"t"}, []int{maxWekaCalls}
	found, err := r.read(1, []byte(spansFile(spanText("t", "1", "0", "1", said(question, answerB)))))
	if want := "spans[0].trace_id: want at most 65536 LLM calls of a trace, got more"; err != nil || found.Error() != want {
		t.Errorf("want %s, got %v, %v", want, found, err)
	}
}
