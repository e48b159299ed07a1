package chunk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A reading is a chunk as encoding/json decodes it. Read must find the same.
type reading struct {
	content, answer, thought, bare, failed bool
	finish, message                        string
	usage, timings                         Counts

	said, reasoning, arguments string
}

// A way is a set of options for Read.
type way struct {
	form Form
	keep bool
}

var ways = []way{{}, {keep: true}, {form: Whole}, {form: Whole, keep: true}}

// decoded decodes data with encoding/json. ok is false if data is not a JSON object or is nested too deeply for a
// scanner.
func decoded(w way, data []byte) (r reading, ok bool) {
	r.bare = true
	top := members(data)
	if top == nil || depth(data) > deepest {
		return r, false
	}
	choices := elements(top["choices"])
	r.bare = len(choices) == 0
	for _, raw := range choices {
		choice := members(raw)
		brings := members(choice["delta"])
		if w.form == Whole {
			brings = members(choice["message"])
		}
		has := func(values ...json.RawMessage) bool {
			return slices.ContainsFunc(values, func(v json.RawMessage) bool { return some(v) })
		}
		r.answer = r.answer || has(choice["text"], brings["content"])
		r.thought = r.thought || has(brings["reasoning_content"], brings["reasoning"])
		r.content = r.content || r.answer || r.thought || has(choice["token_ids"], brings["token_ids"])
		if reason, _ := anyOf(choice["finish_reason"]).(string); reason != "" {
			r.finish = reason
		}
		r.said += firstOf(textOf(brings["content"]), textOf(choice["text"]))
		r.reasoning += firstOf(textOf(brings["reasoning_content"]), textOf(brings["reasoning"]))
		for _, call := range elements(brings["tool_calls"]) {
			arguments := members(members(call)["function"])["arguments"]
			if some(arguments) {
				r.content, r.answer = true, true
			}
			if members(arguments) != nil { // an object, not a string
				r.arguments += string(arguments)
			}
			r.arguments += textOf(arguments)
		}
	}
	if u := members(top["usage"]); u != nil {
		r.usage.Output, r.usage.Set = count(u["completion_tokens"])
		r.usage.Prompt, _ = count(u["prompt_tokens"])
		r.usage.Cached, r.usage.CacheTold = count(members(u["prompt_tokens_details"])["cached_tokens"])
		own, _ := count(u["reasoning_tokens"])
		detail, _ := count(members(u["completion_tokens_details"])["reasoning_tokens"])
		r.usage.Reasoning = max(own, detail)
		if !r.usage.Set {
			r.usage = Counts{}
		}
	}
	if t := members(top["timings"]); t != nil {
		r.timings.Output, r.timings.Set = count(t["predicted_n"])
		r.timings.Prompt, _ = count(t["prompt_n"])
		r.timings.Cached, r.timings.CacheTold = count(t["cache_n"])
		r.timings.Prompt += r.timings.Cached
		if !r.timings.Set {
			r.timings = Counts{}
		}
	}
	switch e := anyOf(top["error"]); e {
	case nil, "", false:
	default:
		r.failed, r.message = true, messageOf(e)
	}
	return r, true
}

// found decodes data with Chunk.Read.
func found(w way, data []byte) (r reading, ok bool) {
	c := Chunk{Form: w.form, Keep: w.keep}
	ok = c.Read(data, nil)
	r = reading{content: c.Content, answer: c.Answer, thought: c.Thought, bare: c.Bare, failed: c.Failed, finish: string(c.Finish), message: c.Message, usage: c.Usage, timings: c.Timings}
	return r, ok
}

// textsOf returns the texts of data that are kept.
func textsOf(w way, data []byte) (said, reasoning, arguments string) {
	c := Chunk{Form: w.form, Keep: w.keep}
	if !c.Read(data, nil) {
		return "", "", ""
	}
	var all Texts
	all.Add(&c)
	return string(all.Content), string(all.Reasoning), string(all.Arguments)
}

// anyOf decodes a value with encoding/json.
func anyOf(raw []byte) (v any) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // a number too large for a float is still JSON
	if d.Decode(&v) != nil {
		return nil
	}
	return v
}

// members returns the members of an object, or nil for any other value.
func members(raw []byte) (m map[string]json.RawMessage) {
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

func elements(raw []byte) (e []json.RawMessage) {
	if json.Unmarshal(raw, &e) != nil {
		return nil
	}
	return e
}

func depth(data []byte) (most int) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	for now := 0; ; {
		switch t, err := d.Token(); {
		case err == io.EOF:
			return most
		case err != nil:
			return deepest + 1
		case t == json.Delim('{') || t == json.Delim('['):
			now++
			most = max(most, now)
		case t == json.Delim('}') || t == json.Delim(']'):
			now--
		}
	}
}

func some(raw []byte) bool {
	switch v := anyOf(raw).(type) {
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return false
}

func count(raw []byte) (int, bool) {
	number, ok := anyOf(raw).(json.Number)
	if !ok || len(number) > maxNumber {
		return 0, false
	}
	f, err := number.Float64()
	if err != nil || f != math.Trunc(f) || f < 0 || f > MaxTokens {
		return 0, false
	}
	return int(f), true
}

// textOf returns a string, or the joined texts of a list of content parts.
func textOf(raw []byte) string {
	switch v := anyOf(raw).(type) {
	case string:
		return v
	case []any:
		var all strings.Builder
		for _, part := range v {
			object, _ := part.(map[string]any)
			words, _ := object["text"].(string)
			all.WriteString(words)
		}
		return all.String()
	}
	return ""
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
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
			want, known := decoded(w, data)
			got, ok := found(w, data)
			if ok != known {
				t.Fatalf("Read says %v, encoding/json %v: %q", ok, known, data)
			}
			if !known {
				continue
			}
			if w.keep {
				got.said, got.reasoning, got.arguments = textsOf(w, data)
			} else {
				want.said, want.reasoning, want.arguments = "", "", ""
			}
			if shown := MaxMessage / 4; len(data) > shown { // only the beginning of a long message is kept
				want.message, got.message = beginning(want.message, shown), beginning(got.message, shown)
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
	`{"choices":[{"text":"a"},null],"choices":[{"delta":{"content":"\ud800"},"delta":null}],"usage":{"completion_tokens":5},"usage":null}`,
	"{\"choices\":[{\"finish_reason\":\"\xff\"}],\"error\":null}",
	`{"choices":[{"text":"a"},{"text":"\ud83d\ude00"}],"choices":[{"message":{"content":"\ud800","reasoning":"r"},"delta":{"reasoning_content":"\u0000"}}]}`,
	"{\"choices\":[{\"message\":{\"content\":\"a\xff\",\"tool_calls\":[{\"function\":{\"arguments\":\"{}\"}},{\"function\":{\"arguments\":\"b\"}}]}}]}",
	`{"\u0063hoices":[{"m\u0065ssage":{"content":"a"},"delta":{"content":"b\u"}}]}`,
	`{"\u0063hoices":[{"m\u0065ssage":{"content":"a"},"d\u0065lta":{"conten\u0074":"b\\"}}],"Choices":[]}`,
	`{"choices":[{"delta":{"content":[{"type":"text","text":"a"},{"text":5},{"t\u0065xt":"b"},"c"],"reasoning":[{"text":""}]},"text":"d"},{"text":["e",{"text":"f"}]}]}`,
	`{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":{"a": [1, {}]}}},{"function":{"arguments":[]}},{"function":null},7]}}]}`,
	`{"choices":[{"delta":{"token_ids":"5","content":{"a":1}}},{"token_ids":{"a":1},"delta":7}]}`,
	`{"choices":{"text":"a"},"usage":[{"completion_tokens":5}],"timings":7,"error":{"message":5,"b":[1e400,true]}}`,
	`{"usage":{"prompt_tokens":5.0,"completion_tokens":6e0,"prompt_tokens_details":{"cached_tokens":-0},"completion_tokens_details":[],"reasoning_tokens":10000000000}}`,
	`{"usage":{"prompt_tokens":"5","completion_tokens":000}}`,
	`{"timings":{"predicted_n":1E1,"prompt_n":null,"cache_n":2.5},"error":false}`,
	`{"choices":[{"finish_reason":"caf\u00e9","text":{}},{"finish_reason":["a"],"text":[ ]}],"error":[ ]}`,
	`{"deep":` + strings.Repeat("[", deepest-1) + strings.Repeat("]", deepest-1) + `}`,
	`{"deep":` + strings.Repeat("[", deepest) + strings.Repeat("]", deepest) + `}`,
	"{\"a\":\"\\ud83d\\ude0\xff\"}", "\xef\xbb\xbf{}", "{}\x00", "{} {}", `{"a":tru`, `{"a":1.}`, ``, `null`,
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
		var value json.RawMessage
		err := json.NewDecoder(bytes.NewReader(data)).Decode(&value)
		want := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if first := bytes.TrimLeft(data, " \t\r\n"); len(first) > 0 && first[0] != '{' || bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) > deepest {
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
	for _, in := range append(usual, whole, `{"usage":{"prompt_tokens":9,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":8}}}`,
		`{"usage":{"completion_tokens":9,"reasoning_tokens":3},"error":{"message":"a"}}`, `{"choices":[{"delta":{"reasoning_content":"a","reasoning":"b","token_ids":[1]}}]}`, `{"choices":[{"text":"a","token_ids":[1]}]}`) {
		odd := key.ReplaceAllStringFunc(in, func(k string) string { return fmt.Sprintf(`"\u%04x%s`, k[1], k[2:]) })
		for _, w := range []way{{keep: true}, {form: Whole, keep: true}} {
			want, _ := found(w, []byte(in))
			want.said, want.reasoning, want.arguments = textsOf(w, []byte(in))
			got, ok := found(w, []byte(odd))
			got.said, got.reasoning, got.arguments = textsOf(w, []byte(odd))
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
	fill := func(s string) string { return strings.Repeat(s+",", 100_000) + s }
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
