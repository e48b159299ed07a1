package chunk

import (
	"fmt"
	"strings"
	"testing"

	"replayd/internal/openai/internal/wire"
)

// examples are chunks with the parts of the table; each part has one at least. Of a content it is a choice, of a usage
// the usage with a 7, of an SSE event its lines. A finish reason is its own example.
var examples = map[string][]string{
	"choices[].text":            {`"text":"a"`, `"text":["a"]`},
	"delta.content":             {`"delta":{"content":"a"}`, `"delta":{"role":"assistant","content":["a"]}`},
	"delta.refusal":             {`"delta":{"refusal":"a","content":null}`},
	"content[].text":            {`"delta":{"content":[{"type":"text","text":""},{"type":"text","text":"a"}]}`},
	"content[].refusal":         {`"delta":{"content":[{"type":"refusal","refusal":"a"}]}`},
	"content[].thinking":        {parts(`"thinking":"a"`), parts(`"thinking":[{"type":"text","text":"a"}]`)},
	"content[] of another type": {`"delta":{"content":[{"type":"image_url","image_url":{"url":"data:"}}]}`},
	"delta.reasoning_content":   {`"delta":{"reasoning_content":"a","content":null}`},
	"delta.reasoning":           {`"delta":{"reasoning":"a","content":""}`},
	"delta.reasoning_text":      {`"delta":{"reasoning_text":"a"}`},
	"delta.reasoning_details[]": {
		`"delta":{"content":"","reasoning_details":[{"type":"reasoning.text","text":"a"}]}`,
		`"delta":{"reasoning_details":[{"summary":"a"}]}`, `"delta":{"reasoning_details":[{"text":null},{"data":"a"}]}`,
	},
	"delta.thinking_blocks[]": {
		`"delta":{"thinking_blocks":[{"type":"thinking","thinking":"a","signature":null}]}`,
		`"delta":{"thinking_blocks":[{"type":"redacted_thinking","data":"a"}]}`,
	},
	"delta.tool_calls[].function": {
		`"delta":{"tool_calls":[{"index":0,"id":"x","type":"function","function":{"name":"f","arguments":""}}]}`,
		`"delta":{"content":null,"tool_calls":[{"function":{"arguments":"{"}}]}`,
		`"delta":{"tool_calls":[{"id":"x"},{"function":{"arguments":{"a":1}}}]}`,
	},
	"delta.tool_calls[].custom": {
		`"delta":{"tool_calls":[{"type":"custom","custom":{"name":"f","input":""}}]}`,
		`"delta":{"tool_calls":[{"custom":{"input":"a"}}]}`,
	},
	"delta.function_call": {`"delta":{"function_call":{"name":"f"}}`, `"delta":{"function_call":{"arguments":"{"}}`},
	"delta.audio":         {`"delta":{"audio":{"id":"x","data":"a"}}`, `"delta":{"audio":{"transcript":"a"}}`},
	"choices[].token_ids, delta.token_ids": {
		`"text":"","token_ids":[5]`, `"delta":{"content":"","token_ids":[5,6]}`,
	},

	"error":           {`{"error":"e"}`, `{"error":{"message":"e","code":500},"choices":[{"delta":{"content":"a"}}]}`},
	"choices[].error": {`{"choices":[{"error":{"message":"e"}},{"error":null,"finish_reason":"error"}]}`},
	`"object": "error", "type": "error"`: {
		`{"object":"error","message":"e","code":500}`, `{"type":"error","choices":[],"usage":{"total_tokens":5},"text":"e"}`,
		`{"choices":[{"delta":{"content":"a"}}],"object":"error","detail":"e"}`,
	},
	"error_code other than 0": {`{"text":"e","error_code":50001}`, `{"text":"e","error_code":-1,"choices":[{}]}`},
	"message, detail, errors, error_msg, msg": {
		`{"message":"e","request_id":"x"}`, `{"detail":"e"}`, `{"errors":{"message":"e"}}`, `{"error_msg":"e","choices":[]}`,
		`{"msg":"e","usage":null}`,
	},
	"an SSE event of type error": {"event: error\ndata: e\n\n", "event: error\n: e\n\n", "data: {}\nevent:error\n\n"},
	"an SSE field error":         {"error: {\"code\":500}\n\n", "data: e\nerror: e\n\n"},

	"prompt_tokens, input_tokens":         {`"prompt_tokens":7`, `"input_tokens":7.0,"prompt_tokens":0`},
	"completion_tokens, output_tokens":    {`"completion_tokens":7`, `"output_tokens":7,"completion_tokens":1`},
	"total_tokens":                        {`"total_tokens":7`},
	"prompt_tokens_details.cached_tokens": {details("prompt", "cached"), details("input", "cached")},
	"cached_tokens":                       {`"prompt_tokens":9,"cached_tokens":7`},
	"prompt_cache_hit_tokens":             {`"prompt_tokens":9,"prompt_cache_hit_tokens":7,"prompt_cache_miss_tokens":2`},
	"cache_read_input_tokens": {
		`"input_tokens":9,"cache_read_input_tokens":7,"prompt_tokens_details":{"cached_tokens":5}`,
	},
	"completion_tokens_details.reasoning_tokens": {
		details("completion", "reasoning"), details("output", "reasoning"),
	},
	"reasoning_tokens": {`"completion_tokens":9,"reasoning_tokens":7`},
	"choices[].usage":  {`{"choices":[{"usage":{"completion_tokens":7}}],"usage":null}`},
	"timings":          {`{"choices":[{}],"timings":{"prompt_n":3,"cache_n":4,"predicted_n":7}}`},
}

func parts(thinking string) string {
	return `"delta":{"content":[{"type":"thinking",` + thinking + `}]}`
}

func details(of, name string) string {
	return `"total_tokens":9,"` + of + `_tokens_details":{"` + name + `_tokens":7}`
}

// judges say whether a chunk means what a row's means says.
var judges = map[string]func(c *Chunk, r reading) bool{
	isText:      func(c *Chunk, r reading) bool { return c.Content && c.Answer && !c.Thought && r.calls == "" },
	isReasoning: func(c *Chunk, r reading) bool { return c.Content && !c.Answer && c.Thought && r.calls+r.said == "" },
	isCall:      func(c *Chunk, r reading) bool { return c.Content && c.Answer && !c.Thought && r.calls != "" },
	isTokens:    func(c *Chunk, r reading) bool { return c.Content && !c.Answer && !c.Thought && r.calls+r.said == "" },

	"an error":                       failedBy,
	"an error, unless it is empty":   failedBy,
	"an error if there is no choice": failedBy,
	endsWell:                         func(c *Chunk, _ reading) bool { return !aborts(c.Finish) },
	endsInAbort:                      func(c *Chunk, _ reading) bool { return aborts(c.Finish) },
	"tokens of the prompt":           func(c *Chunk, _ reading) bool { return c.Usage.Prompt == 7 && c.Usage.HasPrompt },
	"tokens of the answer":           func(c *Chunk, _ reading) bool { return c.Usage.Output == 7 && c.Usage.HasOutput },
	"their sum":                      func(c *Chunk, _ reading) bool { return c.Usage.Total == 7 && c.Usage.HasTotal },
	"cached tokens of the prompt": func(c *Chunk, _ reading) bool {
		return c.Usage.Cached == 7 && c.Usage.CacheReported
	},
	"tokens of reasoning":              func(c *Chunk, _ reading) bool { return c.Usage.Reasoning == 7 && c.Usage.Set },
	"usage, if the chunk has no other": func(c *Chunk, _ reading) bool { return c.Usage.Output == 7 && c.Usage.Set },
	"usage, if there is no other": func(c *Chunk, _ reading) bool {
		return c.Timings.Prompt == 7 && c.Timings.Output == 7 && c.Timings.Cached == 4 && c.Timings.Set && !c.Usage.Set
	},
}

func failedBy(c *Chunk, _ reading) bool { return c.Failed && c.Message == "e" }

// Each row of the table of meaning has an example, which means what the row says, in a stream and in a whole answer.
func TestMeanings(t *testing.T) {
	played := map[string]bool{}
	for _, row := range meanings {
		all := examples[row.part]
		if row.kind == ends {
			all = []string{row.part, strings.ToUpper(row.part), strings.ReplaceAll(row.part, "_", "-")}
		}
		judge := judges[row.means]
		if len(all) == 0 || judge == nil || row.source == "" {
			t.Errorf("%s %s: want an example, a meaning that the test knows and a source", row.kind, row.part)
			continue
		}
		played[row.part] = true
		for _, example := range all {
			switch {
			case strings.HasPrefix(row.part, "an SSE"):
				e, _, ok, err := new(wire.Scanner).Next([]byte(example), wire.Arrival{})
				if !ok || err != nil || !e.Failed {
					t.Errorf("%q: want %s, got %+v, %v", example, row.means, e, err)
				}
				continue
			case row.kind == contents:
				example = `{"choices":[{"index":0,` + example + `}]}`
			case row.kind == ends:
				example = `{"choices":[{"delta":{},"finish_reason":"` + example + `"}]}`
			case row.kind == usages && example[0] == '"':
				example = `{"choices":[],"usage":{` + example + `}}`
			}
			for _, form := range []Form{Streamed, Whole} {
				in := example
				if form == Whole {
					in = strings.ReplaceAll(in, `"delta"`, `"message"`)
				}
				c := Chunk{Form: form, Keep: true}
				ok := c.Read([]byte(in), nil)
				r, _ := found(way{form, true}, []byte(in))
				name, _ := EndOf(c.Finish)
				if !ok || !judge(&c, r) || c.Unread != nil || row.kind == ends && name != row.part {
					t.Errorf("%s %s: want %s, got %+v, %s\n%s", row.kind, row.part, row.means, r, name, in)
				}
			}
		}
	}
	for part := range examples {
		if !played[part] {
			t.Errorf("%s: an example of no row", part)
		}
	}
	for reason := range reasons {
		if !played[reason] {
			t.Errorf("%s: a finish reason of no row", reason)
		}
	}
}

// Parts that a row of the table excludes, or that are in none.
func TestNoMeaning(t *testing.T) {
	for _, v := range []string{`null`, `false`, `0`, `-0.0e5`, `""`, `{}`, `[]`, `{"code":0,"message":""}`, `[[null]]`} {
		for _, in := range []string{
			`{"error":%s,"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[{"error":%s,"delta":{"content":"a"}}]}`,
			`{"message":%[1]s,"detail":%[1]s,"errors":%[1]s,"error_msg":%[1]s,"msg":%[1]s,"error_code":%[1]s,"choices":[]}`,
		} {
			in = fmt.Sprintf(in, v)
			var c Chunk
			if !c.Read([]byte(in), nil) || c.Failed || c.Unread != nil {
				t.Errorf("%s: want no error, got %+v", in, c)
			}
		}
	}
	for in, unread := range map[string]string{
		`{"choices":[{"delta":{"content":[{"type":"text","text":""}]}}]}`:                 "",
		`{"choices":[{"delta":{"tool_calls":[{"id":"x","function":{"arguments":""}}]}}]}`: "",
		`{"choices":[{"delta":{"name":"a","x":"","y":5}}],"z":"a"}`:                       "",
		`{"message":"a","choices":[{}]}`:                                                  "",
		`{"detail":"a","usage":{"prompt_tokens":5}}`:                                      "",
		`{"msg":"a","timings":{"predicted_n":5}}`:                                         "",
		`{"choices":[{"delta":{"image":{"a":1}},"x":[1]}]}`:                               `"x":[1]`,
		`{"choices":[{"message":{"content":"a"}}]}`:                                       `"message":{"content":"a"}`,
		`{"text":"a"}`: `{"text":"a"}`,
	} {
		var c Chunk
		if !c.Read([]byte(in), nil) || c.Failed || c.Content || string(c.Unread) != unread {
			t.Errorf("%s: want no content and %q unread, got %+v, %q", in, unread, c, c.Unread)
		}
	}
	for reason, want := range map[string]string{"": "", "no such": "", "stop_": ""} {
		if name, aborts := EndOf([]byte(reason)); name != want || aborts {
			t.Errorf("%q: want %s, got %s, %v", reason, want, name, aborts)
		}
	}
}
