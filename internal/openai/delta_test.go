package openai

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestChunk(t *testing.T) {
	content := chunk{content: true}
	nothing := chunk{}
	for in, want := range map[string]chunk{
		`{"choices":[{"delta":{"content":"a"}}]}`:                                                      content,
		`{"choices":[{"delta":{"content":"a \"quote\" \u00e9"}}]}`:                                     content,
		`{"choices":[{"delta":{"reasoning_content":"a","content":null}}]}`:                             content,
		`{"choices":[{"delta":{"reasoning":"a"}}]}`:                                                    content,
		`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{"}}]}}]}`:                      content,
		`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":""}},{"id":"x"}]}}]}`: nothing,
		`{"choices":[{"delta":{"token_ids":[1]}}]}`:                                                    content,
		`{"choices":[{"text":"a"}]}`:                                                                   content,
		`{"choices":[{"text":"","token_ids":[5,6]}]}`:                                                  content,
		`{"choices":[{"text":"","token_ids":[]}]}`:                                                     nothing,
		`{"choices":[{"text":""},{"text":"b"}]}`:                                                       content,
		`{"choices":[{"delta":{"role":"assistant"}}]}`:                                                 nothing,
		`{"choices":[{"delta":{"role":"assistant","content":""}}]}`:                                    nothing,
		`{"choices":[{"delta":null,"text":null}]}`:                                                     nothing,
		`{"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]}`:                             content, // content parts
		`{"choices":[{"delta":{"c\u006fntent":"a"}}]}`:                                                 content, // a key with an escape
		`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{"a":1}}}]}}]}`:                  content, // not put into a string
		`{"choices":[{"delta":{"content":"a","content":""}}]}`:                                         nothing, // the last one counts
		`{"choices":[{"finish_reason":"stop"}]}`:                                                       {finish: []byte("stop")},
		`{"choices":[{"finish_reason":null}]}`:                                                         nothing,
		`{"choices":[{"finish_reason":""}]}`:                                                           nothing,
		`{"choices":[{"finish_reason":"caf\u00e9"}]}`:                                                  {finish: []byte("café")},
		`{"choices":[]}`: {bare: true},
		`{"choices":null,"prompt_progress":{"total":100}}`: {bare: true},
		`{}`:                                    {bare: true},
		` {"choices" : [ { "text" : "a" } ] } `: content,
		`{"usage":null,"error":null}`:           {bare: true},
		`{"usage":{"prompt_tokens":5,"completion_tokens":6}}`:     {bare: true, usage: counts{prompt: 5, output: 6, set: true}},
		`{"usage":{"prompt_tokens":5.0,"completion_tokens":6e0}}`: {bare: true, usage: counts{prompt: 5, output: 6, set: true}},
		`{"usage":{"prompt_tokens":5,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":null},"completion_tokens_details":{"reasoning_tokens":3}}}`: {bare: true, usage: counts{prompt: 5, output: 6, cached: 4, reasoning: 3, told: true, set: true}},
		`{"usage":{"prompt_tokens":5,"completion_tokens":6,"prompt_tokens_details":null,"reasoning_tokens":2}}`:                                                                  {bare: true, usage: counts{prompt: 5, output: 6, reasoning: 2, set: true}},
		`{"usage":{"prompt_tokens":5}}`:                            {bare: true}, // says nothing about the output
		`{"usage":{"prompt_tokens":5,"completion_tokens":-6}}`:     {bare: true},
		`{"usage":{"prompt_tokens":5,"completion_tokens":6.5}}`:    {bare: true},
		`{"usage":{"prompt_tokens":5,"completion_tokens":1e300}}`:  {bare: true},
		`{"usage":{"prompt_tokens":5,"completion_tokens":1e9999}}`: {bare: true},
		`{"usage":{"prompt_tokens":5,"completion_tokens":"6"}}`:    {bare: true},
		`{"usage":"none"}`: {bare: true},
		`{"timings":{"cache_n":236,"prompt_n":1,"prompt_ms":30.958,"predicted_n":35}}`: {bare: true, timings: counts{prompt: 237, output: 35, cached: 236, told: true, set: true}},
		`{"timings":{"prompt_n":1.0}}`:              {bare: true},
		`{"error":{"message":"broken","code":500}}`: {bare: true, failed: true, message: "broken"},
		`{"error":"broken"}`:                        {bare: true, failed: true, message: "broken"},
		`{"error":{"code":500}}`:                    {bare: true, failed: true, message: `{"code":500}`},
		`{"error":""}`:                              {bare: true},
		`{"error":false}`:                           {bare: true},
		`{"deep":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}`: {bare: true},
	} {
		var c chunk
		if !c.find([]byte(in)) {
			t.Errorf("%s: want a chunk", in)
			continue
		}
		if !reflect.DeepEqual(c, want) {
			t.Errorf("%s:\nwant %+v\n got %+v", in, want, c)
		}
	}
	for _, in := range []string{
		``, ` `, `null`, `1`, `[]`, `"a"`, `{`, `{}x`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":01}`, `{"a":1.}`, `{"a":1e}`, `{"a":-}`,
		`{"a":"` + "\n" + `"}`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"\u1`, `{"a":"\`, `{"a":tru}`, `{"a":nul}`, `{"a":[1,]}`, `{"a":[1`, `{"a" 1}`,
		`{"choices":[{"text":"a"`, `{"usage":{"prompt_tokens":01}}`, "\xef\xbb\xbf{}",
	} {
		var c chunk
		if c.find([]byte(in)) {
			t.Errorf("%q: want no chunk, got %+v", in, c)
		}
	}
}

// usual are the shapes that engines stream.
var usual = []string{
	`{"id":"chatcmpl-1f3a9c1e2b","object":"chat.completion.chunk","created":1750000000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"content":" hello"},"logprobs":null,"finish_reason":null}]}`,
	`{"id":"c","object":"text_completion","choices":[{"index":0,"text":" \"a\"\n","logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":null}`,
	`{"id":"c","choices":[],"usage":{"prompt_tokens":24,"total_tokens":28,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":16}},"metrics":{"ttft_ms":-1.25e+3,"ok":true,"no":false}}`,
	`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}}]},"finish_reason":""}]}`,
	`{"choices":[{"delta":{"role":"assistant","content":null}}],"timings":{"cache_n":2,"prompt_n":1,"predicted_n":35,"predicted_ms":661.064}}`,
}

func BenchmarkScanChunk(b *testing.B) {
	data := []byte(usual[0])
	line := []byte("data: " + usual[0] + "\n\n")
	b.Run("find", func(b *testing.B) {
		var c chunk
		b.ReportAllocs()
		for b.Loop() {
			if !c.find(data) || !c.content {
				b.Fatal("want content")
			}
		}
	})
	b.Run("scan_and_find", func(b *testing.B) {
		var c chunk
		var s scanner
		var a arrival
		b.ReportAllocs()
		for b.Loop() {
			e, _, ok, err := s.next(line, a)
			if !ok || err != nil || !c.find(e.data) || !c.content {
				b.Fatal("want content")
			}
		}
	})
	b.Run("find_and_keep", func(b *testing.B) {
		c := chunk{form: form{keep: true}}
		var all []byte
		b.ReportAllocs()
		for b.Loop() {
			if !c.find(data) {
				b.Fatal("want a chunk")
			}
			if all, _ = appendText(all[:0], c.said.content, false); len(all) == 0 {
				b.Fatal("want content")
			}
		}
	})
	b.Run("encoding_json", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var c struct {
				Choices []struct {
					Text  string
					Delta struct {
						Content   string
						Reasoning string `json:"reasoning_content"`
					}
					FinishReason *string `json:"finish_reason"`
				}
				Usage *struct {
					PromptTokens     int `json:"prompt_tokens"`
					CompletionTokens int `json:"completion_tokens"`
				}
				Error json.RawMessage
			}
			if json.Unmarshal(data, &c) != nil || c.Choices[0].Delta.Content == "" {
				b.Fatal("want content")
			}
		}
	})
}
