package chunk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// pythonNumber matches strings, and outside of them the numbers that JSON has not, also where the end of the data cuts
// one.
var pythonNumber = regexp.MustCompile(
	`(?s)"(?:\\.|[^"\\])*"?|NaN|-?Infinity|(?:N|Na|-?I(?:n(?:f(?:i(?:n(?:i(?:t)?)?)?)?)?)?)$`)

// asJSON returns data with false for the numbers that JSON has not. odd says that there is one.
func asJSON(data []byte) (_ []byte, odd bool) {
	return pythonNumber.ReplaceAllFunc(data, func(found []byte) []byte {
		switch {
		case found[0] == '"':
			return found
		case !bytes.HasSuffix(found, []byte("NaN")) && !bytes.HasSuffix(found, []byte("Infinity")):
			return []byte("fals")
		}
		odd = true
		return []byte("false")
	}), odd
}

// FuzzRead checks that Read accepts the same inputs as encoding/json and finds the same in each form.
func FuzzRead(f *testing.F) {
	for _, in := range usual {
		f.Add([]byte(in))
		f.Add([]byte(strings.ReplaceAll(in, `"delta"`, `"message"`)))
	}
	for _, in := range rare {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, w := range ways {
			plain, odd := asJSON(data)
			want, known := decoded(w, plain)
			got, ok := found(w, data)
			if ok != known {
				t.Fatalf("Read says %v, encoding/json %v: %q", ok, known, data)
			}
			if !known || odd { // texts may have such a number in them
				continue
			}
			if !w.keep {
				want.said, want.reasoning, want.calls = "", "", ""
			}
			if len(data) > MaxMessage { // only the beginning of a long message is kept: see TestLongErrorIsCut
				want.message, got.message = "", ""
			}
			want.finish, got.finish = beginning(want.finish, wordBytes-3), beginning(got.finish, wordBytes-3)
			if got != want {
				t.Errorf("%+v, %q:\nwant %+v\n got %+v", w, data, want, got)
			}
		}
	})
}

func beginning(s string, n int) string { return s[:min(len(s), n)] }

// rare are inputs that no engine is known to send.
var rare = []string{
	`{"choices":[{"text":"a"},null],"choices":[{"delta":{"content":"\ud800"},"delta":null}],` +
		`"usage":{"completion_tokens":5},"usage":null}`,
	"{\"choices\":[{\"finish_reason\":\"\xff\"}],\"error\":null}",
	`{"choices":[{"text":"a"},{"text":"\ud83d\ude00"}],"choices":[{"message":{"content":"\ud800","reasoning":"r"},` +
		`"delta":{"reasoning_content":"\u0000"}}]}`,
	"{\"choices\":[{\"message\":{\"content\":\"a\xff\",\"tool_calls\":[{\"function\":{\"arguments\":\"{}\"}}," +
		"{\"function\":{\"arguments\":\"b\"}}]}}]}",
	`{"\u0063hoices":[{"m\u0065ssage":{"content":"a"},"delta":{"content":"b\u"}}]}`,
	`{"\u0063hoices":[{"m\u0065ssage":{"content":"a"},"d\u0065lta":{"conten\u0074":"b\\"}}],"Choices":[]}`,
	`{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"text":5},{"t\u0065xt":"b"},"c"],` +
		`"reasoning":[{"text":""}]},"text":"d"},{"text":["e",{"text":"f"}]}]}`,
	`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{"a": [1, {}]}}},{"function":{"arguments":[]}},` +
		`{"function":null},7]}}]}`,
	`{"choices":[{"delta":{"token_ids":"5","content":{"a":1}}},{"token_ids":{"a":1},"delta":7}]}`,
	`{"choices":{"text":"a"},"usage":[{"completion_tokens":5}],"timings":7,"error":{"message":5,"b":[1e400,true]}}`,
	`{"usage":{"prompt_tokens":5.0,"completion_tokens":6e0,"prompt_tokens_details":{"cached_tokens":-0},` +
		`"completion_tokens_details":[],"reasoning_tokens":10000000000}}`,
	`{"usage":{"prompt_tokens":"5","completion_tokens":000}}`,
	`{"timings":{"predicted_n":1E1,"prompt_n":null,"cache_n":2.5},"error":false}`,
	`{"choices":[{"finish_reason":"caf\u00e9","text":{}},{"finish_reason":["a"],"text":[ ]}],"error":[ ]}`,
	`{"choices":[{"error":{"code":5}},{"error":null}]}`,
	`{"choices":[{"finish_reason":"stop","native_finish_reason":"abort"},{"finish_reason":"length"}]}`,
	`{"choices":[{"finish_reason":"stop","provider_specific_fields":{"native_finish_reason":"abort"}}]}`,
	`{"choices":[{"text":"a","logprobs":{"token_logprobs":[NaN,-Infinity,Infinity,-1e5]}}],` +
		`"usage":{"completion_tokens":NaN}}`,
	`{"a":NaNN}`, `{"a":- Infinity}`, `{"a":1NaN}`, `{"a":--Infinity}`, `{"a":-NaN}`, `{"a":-Infin`, `{"a":Na`,
	`{"a":nan}`, `{"a":"NaN`,
	`{"choices":[{"delta":{"refusal":"a","refusal":"","reasoning_text":["a"],"thinking_blocks":[{"summary":"b"}]}}]}`,
	`{"usage":{"prompt_tokens":0,"input_tokens":9,"completion_tokens":5,"output_tokens":4}}`,
	`{"choices":[{"usage":{"prompt_tokens":5}},{"usage":{"prompt_tokens":6}}],"usage":null}`,
	`{"object":"e\u0072ror","text":"a"}`, `{"error_code":-1}`, `{"error_code":true}`,
	`{"error_code":-0.0e5,"msg":[{"a":0}]}`,
	`{"choices":[{"delta":{"content":[{"type":null},{"type":5},{"type":""},{"type":"refusal"},{"type":"t\u0065xt"}]}}]}`,
	`{"choices":[{"delta":{"content":[{"type":"image_url","text":null}]}}]}`,
	`{"choices":[{"delta":{"content":[{"thinking":""},{"thinking":"a"},{"thinking":[{"text":"b"},"c"]}]}}]}`,
	`{"choices":[{"finish_reason":{"type":"abort","type":5}},{"finish_reason":{"type":"abort"}},` +
		`{"finish_reason":"stop"}]}`,
	`{"choices":[{"delta":{"x":"","y":"a","reasoning_details":"b"},"z":[5]}],"type":"error"}`,
	`{"choices":[{"delta":{"tool_calls":[{"custom":{"input":"a","arguments":""}}],"function_call":{"name":"f"}}}]}`,
	`{"deep":` + strings.Repeat("[", deepest-1) + strings.Repeat("]", deepest-1) + `}`,
	`{"deep":` + strings.Repeat("[", deepest) + strings.Repeat("]", deepest) + `}`,
	"{\"a\":\"\\ud83d\\ude0\xff\"}", "\xef\xbb\xbf{}", "{}\x00", "{} {}", `{"a":tru`, `{"a":1.}`, ``, `null`,
	`{"choices":[{"delta":{"content":[`, `{"choices":[{"error":`,
}

// FuzzShort checks that Short is set if, and only if, Read failed because data ends too early.
func FuzzShort(f *testing.F) {
	for _, in := range append(usual, rare...) {
		f.Add([]byte(in))
		f.Add([]byte(in[:len(in)/2]))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var c Chunk
		if c.Read(data, nil) {
			return
		}
		data, _ = asJSON(data)
		var value json.RawMessage
		err := json.NewDecoder(bytes.NewReader(data)).Decode(&value)
		want := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if first := bytes.TrimLeft(data, " \t\r\n"); len(first) > 0 && first[0] != '{' ||
			bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) > deepest {
			return
		}
		if c.Short != want {
			t.Errorf("short is %v, encoding/json says %v: %q", c.Short, err, data)
		}
	})
}

// Every key is also found if it contains escapes.
func TestEscapedKeys(t *testing.T) {
	key := regexp.MustCompile(`"([a-z])([a-z_]*)":`)
	for _, in := range append(usual, whole, `{"usage":{"prompt_tokens":9,"completion_tokens":9,`+
		`"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":8}}}`,
		`{"usage":{"completion_tokens":9,"reasoning_tokens":3},"error":{"message":"a"}}`,
		`{"choices":[{"delta":{"reasoning_content":"a","reasoning":"b","token_ids":[1]}}]}`,
		`{"choices":[{"text":"a","token_ids":[1]}]}`) {
		odd := key.ReplaceAllStringFunc(in, func(k string) string { return fmt.Sprintf(`"\u%04x%s`, k[1], k[2:]) })
		for _, w := range []way{{keep: true}, {form: Whole, keep: true}} {
			want, _ := found(w, []byte(in))
			got, ok := found(w, []byte(odd))
			if !ok || got != want {
				t.Errorf("%s:\nwant %+v\n got %+v", odd, want, got)
			}
		}
	}
	const models = `{"data":[{"id":"m","owned_by":"vllm"}]}`
	odd := key.ReplaceAllStringFunc(models, func(k string) string { return fmt.Sprintf(`"\u%04x%s`, k[1], k[2:]) })
	if got, ok := Models([]byte(odd)); !ok || !slices.Equal(got, []Model{{ID: "m", OwnedBy: "vllm"}}) {
		t.Errorf("%s: got %+v", odd, got)
	}
}

// The memory that Read allocates does not grow with the chunk, whatever the shape of the chunk.
func TestReadingAllocatesLittle(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 10_000 // still larger than the bound
	}
	fill := func(s string) string { return strings.Repeat(s+",", n) + s }
	for name, in := range map[string]string{
		"objects":       `{"\u0061":[` + fill(`{}`) + `],"choices":[{"text":"a"}]}`,
		"keys":          `{` + fill(`"\u0061":1`) + `}`,
		"choices":       `{"choices":[` + fill(`{"t\u0065xt":"a"}`) + `]}`,
		"parts":         `{"choices":[{"delta":{"content":[` + fill(`{"text":"a"}`) + `]}}]}`,
		"calls":         `{"choices":[{"delta":{"tool_calls":[` + fill(`{"function":{"arguments":{"a":[]}}}`) + `]}}]}`,
		"numbers":       `{"usage":{"completion_tokens":` + strings.Repeat("9", 1<<20) + `}}`,
		"finish":        `{"choices":[{"finish_reason":"\n` + strings.Repeat("a", 1<<20) + `"}]}`,
		"error":         `{"error":{"message":"\n` + strings.Repeat("a ", 1<<20) + `"}}`,
		"errors":        `{"error":[` + fill(`{}`) + `]}`,
		"a broken one":  `{"a":[` + fill(`{}`),
		"a nested ones": `{"a":` + strings.Repeat("[", 1<<20),
	} {
		for _, keep := range []bool{false, true} {
			const runs, most = 5, 64 << 10
			data := []byte(in)
			c := Chunk{Keep: keep}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			for range runs {
				c.Read(data, nil)
			}
			runtime.ReadMemStats(&after)
			if got := (after.TotalAlloc - before.TotalAlloc) / runs; got > most {
				t.Errorf("%s, %+v: want at most %d bytes allocated, got %d", name, keep, most, got)
			}
		}
	}
}
