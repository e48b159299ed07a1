package chunk

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// The texts of chunks and of non-streamed answers: content, reasoning and tool call arguments.
func TestChunkTexts(t *testing.T) {
	type said struct{ content, reasoning, arguments string }
	for in, want := range map[string]said{
		`{"choices":[{"delta":{"content":"a"}}]}`:                                                                {"a", "", ""},
		`{"choices":[{"delta":{"role":"assistant","content":""}}]}`:                                              {},
		`{"choices":[{"delta":{"content":"a \"q\"\n\u00e9\ud83d\ude00\/ b"}}]}`:                                  {"a \"q\"\né😀/ b", "", ""},
		`{"choices":[{"delta":{"content":"\ud800x"}}]}`:                                                          {"\uFFFDx", "", ""},
		"{\"choices\":[{\"delta\":{\"content\":\"a\xff\xfe\"}}]}":                                                {"a\uFFFD\uFFFD", "", ""},
		`{"choices":[{"delta":{"reasoning_content":"r","content":null}}]}`:                                       {"", "r", ""},
		`{"choices":[{"delta":{"reasoning":"r","reasoning_content":"r"}}]}`:                                      {"", "r", ""}, // the same text under two keys
		`{"choices":[{"delta":{"reasoning":"r","reasoning_content":"","content":"c"}}]}`:                         {"c", "r", ""},
		`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\""}}]}}]}`:                              {"", "", `{"`},
		`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"a"}},{"function":{"arguments":"b"}}]}}]}`: {"", "", "ab"},
		`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{"a":1}}}]}}]}`:                            {"", "", `{"a":1}`},
		`{"choices":[{"text":"a"}]}`:                                                                             {"a", "", ""},
		`{"choices":[{"text":"a"},{"text":"b"},{"delta":{"content":"c"}}]}`:                                      {"abc", "", ""},
		`{"choices":[{"text":"","token_ids":[5,6]}]}`:                                                            {},
		`{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"type":"image"},{"text":"b"}]}}]}`:         {"ab", "", ""},
		`{"choices":[{"delta":{"content":"a","content":"b"}}]}`:                                                  {"b", "", ""}, // the last one counts
		`{"choices":[{"text":"a"}],"choices":[{"text":"b"}]}`:                                                    {"b", "", ""},
		`{"choices":[{"message":{"content":"no chunk has one"}}]}`:                                               {},
		`{"choices":[],"usage":{"completion_tokens":3}}`:                                                         {},
	} {
		for _, form := range []Form{Streamed, Whole} {
			if form == Whole {
				in = strings.NewReplacer(`"delta"`, `"message"`, `"message"`, `"delta"`).Replace(in)
			}
			w := way{form, true}
			c := Chunk{Form: form, Keep: true}
			if !c.Read([]byte(in), nil) {
				t.Errorf("%s: want a chunk", in)
				continue
			}
			r, _ := found(w, []byte(in))
			if got := (said{r.said, r.reasoning, r.calls}); got != want {
				t.Errorf("%s: want %q, got %q", in, want, got)
			}
			if c.Content != (want != said{}) && !strings.Contains(in, "token_ids") {
				t.Errorf("%s: content: got %v", in, c.Content)
			}
		}
	}
}

// FuzzTextsRoundTrip checks that texts from encoding/json are read as encoding/json reads them, whatever is
// escaped.
func FuzzTextsRoundTrip(f *testing.F) {
	f.Add("Grüße, \"you\" <b>\n", "r\u2028", `{"a":1}`, true)
	f.Add("\xff\xc3", "\x00😀", "\\", false)
	f.Fuzz(func(t *testing.T, content, reasoning, arguments string, escape bool) {
		message := map[string]any{
			"role": "assistant", "content": content, "reasoning_content": reasoning,
			"tool_calls": []any{map[string]any{"function": map[string]any{"name": "f", "arguments": arguments}}},
		}
		var body bytes.Buffer
		e := json.NewEncoder(&body)
		e.SetEscapeHTML(escape)
		if err := e.Encode(map[string]any{"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": "stop"}}}); err != nil {
			t.Fatal(err)
		}
		read := func(s string) string { // invalid UTF-8 does not survive
			var out string
			raw, err := json.Marshal(s)
			if err != nil || json.Unmarshal(raw, &out) != nil {
				t.Fatal(err)
			}
			return out
		}
		r, _ := found(way{Whole, true}, body.Bytes())
		for _, pair := range [][2]string{{r.said, content}, {r.reasoning, reasoning}, {r.calls, "f" + arguments}} {
			if got, want := pair[0], read(pair[1]); got != want {
				t.Errorf("want %q, got %q", want, got)
			}
		}
	})
}

// After a text has exceeded MaxText, neither that text nor the texts after it grow. The content has a limit of its
// own.
func TestTextsAreBounded(t *testing.T) {
	add := func(all *Texts, member, text string) {
		c := Chunk{Keep: true}
		if !c.Read([]byte(`{"choices":[{"delta":{`+member+`"`+text+`"}}]}`), nil) {
			t.Fatal("want a chunk")
		}
		all.Add(&c)
	}
	long := strings.Repeat("a", MaxText-1)
	var all Texts
	add(&all, `"reasoning":`, long)
	add(&all, `"reasoning":`, "é")
	add(&all, `"reasoning":`, "b")
	add(&all, `"content":`, "c")
	if len(all.Reasoning) != MaxText-1 || string(all.Content) != "c" || !all.Cut || all.ContentCut {
		t.Errorf("want %d bytes of reasoning and all of the content, got %d and %q, cut %v, %v", MaxText-1, len(all.Reasoning), all.Content, all.Cut, all.ContentCut)
	}
	all = Texts{}
	add(&all, `"content":`, long)
	add(&all, `"content":`, `\n\n`)
	add(&all, `"content":`, "b")
	if len(all.Content) != MaxText || !all.Cut || !all.ContentCut {
		t.Errorf("want %d bytes of content, got %d, cut %v, %v", MaxText, len(all.Content), all.Cut, all.ContentCut)
	}
}
