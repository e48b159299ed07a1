package chunk

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestChunk(t *testing.T) {
	answer, reasoning, ids := Chunk{Content: true, Answer: true}, Chunk{Content: true, Thought: true}, Chunk{Content: true}
	nothing := Chunk{}
	unread := func(in string) Chunk { return Chunk{Bare: true, Unread: []byte(in)} }
	prompt := Chunk{Bare: true, Usage: Counts{Prompt: 5, HasPrompt: true, Set: true}} // no output tokens
	both := Counts{Prompt: 5, Output: 6, HasPrompt: true, HasOutput: true, Set: true}
	for in, want := range map[string]Chunk{
		`{"choices":[{"delta":{"content":"a"}}]}`:                                                      answer,
		`{"choices":[{"delta":{"content":"a \"quote\" \u00e9"}}]}`:                                     answer,
		`{"choices":[{"delta":{"reasoning_content":"a","content":null}}]}`:                             reasoning,
		`{"choices":[{"delta":{"reasoning":"a"}}]}`:                                                    reasoning,
		`{"choices":[{"delta":{"reasoning":"a","content":"b"}}]}`:                                      {Content: true, Answer: true, Thought: true},
		`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{"}}]}}]}`:                      answer,
		`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":""}},{"id":"x"}]}}]}`: answer,
		`{"choices":[{"delta":{"thinking_blocks":[{"text":"a"}]}}]}`:                                   nothing,
		`{"choices":[{"delta":{"reasoning_details":[{"thinking":"a"}]}}]}`:                             nothing,
		`{"choices":[{"delta":{"token_ids":[1]}}]}`:                                                    ids,
		`{"choices":[{"text":"a"}]}`:                                                                   answer,
		`{"choices":[{"text":"","token_ids":[5,6]}]}`:                                                  ids,
		`{"choices":[{"text":"","token_ids":[]}]}`:                                                     nothing,
		`{"choices":[{"text":""},{"text":"b"}]}`:                                                       answer,
		`{"choices":[{"delta":{"role":"assistant"}}]}`:                                                 nothing,
		`{"choices":[{"delta":{"role":"assistant","content":""}}]}`:                                    nothing,
		`{"choices":[{"delta":null,"text":null}]}`:                                                     nothing,
		`{"choices":[{"delta":{"content":[{"type":"text","text":"a"}]}}]}`:                             answer,  // content parts
		`{"choices":[{"delta":{"c\u006fntent":"a"}}]}`:                                                 answer,  // a key with an escape
		`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{"a":1}}}]}}]}`:                  answer,  // an object, not a string
		`{"choices":[{"delta":{"content":"a","content":""}}]}`:                                         nothing, // the last one counts
		`{"choices":[{"finish_reason":"stop"}]}`:                                                       {Finish: []byte("stop")},
		`{"choices":[{"finish_reason":null}]}`:                                                         nothing,
		`{"choices":[{"finish_reason":""}]}`:                                                           nothing,
		`{"choices":[{"finish_reason":"caf\u00e9"}]}`:                                                  {Finish: []byte("café")},
		`{"choices":[]}`: {Bare: true},
		`{"choices":null,"prompt_progress":{"total":100}}`: {Bare: true},
		`{}`:                                    unread(`{}`),
		` {"choices" : [ { "text" : "a" } ] } `: answer,
		`{"usage":null,"error":null}`:           {Bare: true},
		`{"usage":{"prompt_tokens":5,"completion_tokens":6}}`:     {Bare: true, Usage: both},
		`{"usage":{"prompt_tokens":5.0,"completion_tokens":6e0}}`: {Bare: true, Usage: both},
		`{"usage":{"prompt_tokens":5,"completion_tokens":6,"prompt_tokens_details":{"cached_tokens":4,` +
			`"audio_tokens":null},"completion_tokens_details":{"reasoning_tokens":3}}}`: {
			Bare: true,
			Usage: Counts{
				Prompt: 5, Output: 6, Cached: 4, Reasoning: 3,
				HasPrompt: true, HasOutput: true, CacheReported: true, Set: true,
			},
		},
		`{"usage":{"prompt_tokens":5,"completion_tokens":6,"prompt_tokens_details":null,"reasoning_tokens":2}}`: {
			Bare:  true,
			Usage: Counts{Prompt: 5, Output: 6, Reasoning: 2, HasPrompt: true, HasOutput: true, Set: true},
		},
		`{"usage":{"prompt_tokens":5}}`:                            prompt,
		`{"usage":{"prompt_tokens":5,"completion_tokens":-6}}`:     prompt,
		`{"usage":{"prompt_tokens":5,"completion_tokens":6.5}}`:    prompt,
		`{"usage":{"prompt_tokens":5,"completion_tokens":1e300}}`:  prompt,
		`{"usage":{"prompt_tokens":5,"completion_tokens":1e9999}}`: prompt,
		`{"usage":{"prompt_tokens":5,"completion_tokens":"6"}}`:    prompt,
		`{"usage":"none"}`: {Bare: true},
		`{"timings":{"cache_n":236,"prompt_n":1,"prompt_ms":30.958,"predicted_n":35}}`: {
			Bare: true,
			Timings: Counts{
				Prompt: 237, Output: 35, Cached: 236, HasPrompt: true, HasOutput: true, CacheReported: true, Set: true,
			},
		},
		`{"timings":{"prompt_n":1.0}}`:              {Bare: true, Timings: Counts{Prompt: 1, HasPrompt: true, Set: true}},
		`{"error":{"message":"broken","code":500}}`: {Bare: true, Failed: true, Message: "broken"},
		`{"error":"broken"}`:                        {Bare: true, Failed: true, Message: "broken"},
		`{"error":{"code":500}}`:                    {Bare: true, Failed: true, Message: `{"code":500}`},
		`{"error":""}`:                              unread(`{"error":""}`),
		`{"error":false}`:                           unread(`{"error":false}`),
		`{"deep":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]],"usage":null}`: {Bare: true},
	} {
		var c Chunk
		if !c.Read([]byte(in), nil) {
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
		var c Chunk
		if c.Read([]byte(in), nil) {
			t.Errorf("%q: want no chunk, got %+v", in, c)
		}
	}
}

// whole is a non-streamed answer.
const whole = `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello there."},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`

// usual are typical chunks of engines.
var usual = []string{
	`{"id":"chatcmpl-1f3a9c1e2b","object":"chat.completion.chunk","created":1750000000,"model":"Qwen/Qwen3-8B","choices":[{"index":0,"delta":{"content":" hello"},"logprobs":null,"finish_reason":null}]}`,
	`{"id":"c","object":"text_completion","choices":[{"index":0,"text":" \"a\"\n","logprobs":null,"finish_reason":"length","stop_reason":null}],"usage":null}`,
	`{"id":"c","choices":[],"usage":{"prompt_tokens":24,"total_tokens":28,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":16}},"metrics":{"ttft_ms":-1.25e+3,"ok":true,"no":false}}`,
	`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"f","arguments":"{\"a\":"}}]},"finish_reason":""}]}`,
	`{"choices":[{"delta":{"role":"assistant","content":null}}],"timings":{"cache_n":2,"prompt_n":1,"predicted_n":35,"predicted_ms":661.064}}`,
}

func BenchmarkRead(b *testing.B) {
	data := []byte(usual[0])
	b.Run("read", func(b *testing.B) {
		var c Chunk
		b.ReportAllocs()
		for b.Loop() {
			if !c.Read(data, nil) || !c.Content {
				b.Fatal("want content")
			}
		}
	})
	b.Run("read_and_keep", func(b *testing.B) {
		c := Chunk{Keep: true}
		var all []byte
		b.ReportAllocs()
		for b.Loop() {
			if !c.Read(data, nil) {
				b.Fatal("want a chunk")
			}
			if all, _ = appendText(all[:0], c.kept.part.text, false); len(all) == 0 {
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

// Read stops in a long chunk when the callback returns true, and calls the callback once every askEvery bytes.
func TestReadStops(t *testing.T) {
	long := []byte(`{"a":[` + strings.Repeat("{},", askEvery) + `{}],"choices":[{"text":"a"}]}`)
	for name, ends := range map[string]bool{"it goes on": false, "it is stopped": true} {
		var c Chunk
		asked := 0
		read := c.Read(long, func() bool { asked++; return ends })
		if want := map[bool]int{false: len(long) / askEvery, true: 1}[ends]; read == ends || c.Content == ends || asked != want {
			t.Errorf("%s: read %v, content %v, asked %d times, want %d", name, read, c.Content, asked, want)
		}
	}
}
