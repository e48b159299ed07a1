package chunk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
)

// A reading is a chunk as encoding/json decodes it. Read must find the same.
type reading struct {
	content, answer, thought, bare, failed bool
	finish, message                        string
	unread                                 string // the first member without a meaning; noMeaning: the chunk has none
	usage, timings                         Counts

	said, reasoning, calls string
}

const noMeaning = "{"

// A way is a set of options for Read.
type way struct {
	form Form
	keep bool
}

var ways = []way{{}, {keep: true}, {form: Whole}, {form: Whole, keep: true}}

// decoded decodes data with encoding/json, by the table of meaning. ok is false if data is not a JSON object or is
// nested too deeply for a scanner.
func decoded(w way, data []byte) (r reading, ok bool) {
	top := members(data)
	if top == nil || depth(data) > deepest {
		return r, false
	}
	choices := elements(top["choices"])
	r.bare = len(choices) == 0
	r.usage, r.timings = usageOf(top["usage"]), timingsOf(top["timings"])
	faults := []any{anyOf(top["error"])}
	for _, raw := range choices {
		choice := members(raw)
		faults = append(faults, anyOf(choice["error"]))
		if u := usageOf(choice["usage"]); !r.usage.Set {
			r.usage = u
		}
		f := reasonOf(anyOf(choice["finish_reason"]))
		behind := members(choice["provider_specific_fields"])["native_finish_reason"]
		for _, native := range []json.RawMessage{behind, choice["native_finish_reason"]} {
			if n := reasonOf(anyOf(native)); aborts([]byte(n)) {
				f = n
			}
		}
		if f != "" && !aborts([]byte(r.finish)) {
			r.finish = f
		}
		name := map[Form]string{Streamed: "delta", Whole: "message"}[w.form]
		if r.unread == "" {
			r.unread = unreadIn(raw, "text", "token_ids", "finish_reason", "error", "usage", name)
		}
		r.part(choice, choice[name])
	}
	r.content = r.content || r.answer || r.thought
	for _, fault := range faults {
		if !r.failed && !empty(fault) {
			r.failed, r.message = true, wordsOf(fault)
		}
	}
	marked := anyOf(top["object"]) == "error" || anyOf(top["type"]) == "error" || !empty(anyOf(top["error_code"]))
	texts := []string{"message", "error_msg", "msg", "detail", "errors"}
	if marked {
		texts = append(texts, "text")
	}
	if !marked && (!r.bare || r.usage.Set || r.timings.Set) {
		texts = nil
	}
	for _, name := range texts {
		if v := anyOf(top[name]); !r.failed && !empty(v) {
			r.failed, r.message = true, wordsOf(v)
		}
	}
	if marked && !r.failed {
		r.failed, r.message = true, string(data)
	}
	_, a := top["choices"]
	_, b := top["usage"]
	_, c := top["timings"]
	switch {
	case r.failed:
		r.unread = ""
	case !a && !b && !c:
		r.unread = noMeaning
	}
	return r, true
}

// part reads the delta or message of a choice.
func (r *reading) part(choice map[string]json.RawMessage, raw json.RawMessage) {
	if r.unread == "" {
		r.unread = unreadIn(raw, "content", "refusal", "reasoning_content", "reasoning", "reasoning_text",
			"reasoning_details", "thinking_blocks", "tool_calls", "function_call", "audio", "token_ids")
	}
	part := map[string]any{}
	for name, v := range members(raw) {
		part[name] = anyOf(v)
	}
	text, thought := contentOf(part["content"])
	r.answer = r.answer || text || some(anyOf(choice["text"])) || some(part["refusal"])
	audio, _ := part["audio"].(map[string]any)
	r.answer = r.answer || some(audio["data"]) || some(audio["transcript"])
	r.said += firstOf(textsIn(part["content"], "text", "refusal"), textsIn(anyOf(choice["text"]), "text", "refusal"))
	r.said += textsIn(part["refusal"])

	r.thought = r.thought || thought ||
		some(part["reasoning_content"]) || some(part["reasoning"])
	for _, name := range []string{"reasoning_text", "reasoning_details"} {
		r.thought = r.thought || textsIn(part[name], "text", "summary", "data") != ""
	}
	r.thought = r.thought || textsIn(part["thinking_blocks"], "thinking", "data") != ""
	keys := []string{"text", "summary"}
	var thoughts string
	if parts, ok := part["content"].([]any); ok {
		for _, p := range parts {
			p, _ := p.(map[string]any)
			thoughts += textsIn(p["thinking"], "text")
		}
	}
	r.reasoning += firstOf(textsIn(part["reasoning_content"], keys...), textsIn(part["reasoning"], keys...),
		textsIn(part["reasoning_text"], keys...), textsIn(part["reasoning_details"], keys...),
		textsIn(part["thinking_blocks"], "thinking"), thoughts)

	r.content = r.content || some(anyOf(choice["token_ids"])) || some(part["token_ids"])
	for _, raw := range elements(members(raw)["tool_calls"]) {
		call := members(raw)
		r.call(call["function"])
		r.call(call["custom"])
	}
	r.call(members(raw)["function_call"])
}

// call reads a tool call.
func (r *reading) call(raw json.RawMessage) {
	call := members(raw)
	arguments, ok := call["arguments"]
	if !ok {
		arguments = call["input"]
	}
	r.answer = r.answer || some(anyOf(call["name"])) || some(anyOf(arguments))
	r.calls += textsIn(anyOf(call["name"]))
	if members(arguments) != nil { // an object, not a string
		r.calls += string(arguments)
	}
	r.calls += textsIn(anyOf(arguments))
}

// contentOf reports which kinds of content there are in a text or a list of parts.
func contentOf(v any) (text, thought bool) {
	parts, ok := v.([]any)
	if !ok {
		return some(v), false
	}
	for _, v := range parts {
		part, ok := v.(map[string]any)
		if !ok {
			text = text || some(v)
			continue
		}
		kind, _ := part["type"].(string)
		text = text || some(part["text"]) || some(part["refusal"])
		thought = thought || textsIn(part["thinking"], "text") != ""
		if part["text"] == nil && part["refusal"] == nil && part["thinking"] == nil {
			text = text || !slices.Contains([]string{"", "text", "refusal", "thinking"}, kind)
		}
	}
	return text, thought
}

// unreadIn returns the name of the first member of an object that has content and no meaning.
func unreadIn(raw []byte, known ...string) string {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return ""
	}
	for d.More() {
		key, _ := d.Token()
		var v json.RawMessage
		name, _ := key.(string)
		if d.Decode(&v) == nil && some(anyOf(v)) && !ignored[name] && !slices.Contains(known, name) {
			return "member " + name
		}
	}
	return ""
}

func usageOf(raw []byte) (u Counts) {
	m := members(raw)
	larger := func(n *int, m map[string]json.RawMessage, name string) bool {
		given, ok := countOf(m, name)
		*n = max(*n, given)
		return ok
	}
	u.HasPrompt = larger(&u.Prompt, m, "prompt_tokens")
	u.HasPrompt = larger(&u.Prompt, m, "input_tokens") || u.HasPrompt
	u.HasOutput = larger(&u.Output, m, "completion_tokens")
	u.HasOutput = larger(&u.Output, m, "output_tokens") || u.HasOutput
	u.HasTotal = larger(&u.Total, m, "total_tokens")
	if u.Set = u.HasPrompt || u.HasOutput || u.HasTotal; !u.Set {
		return Counts{}
	}
	for _, name := range []string{"cached_tokens", "prompt_cache_hit_tokens", "cache_read_input_tokens"} {
		u.CacheReported = larger(&u.Cached, m, name) || u.CacheReported
	}
	for _, details := range []string{"prompt_tokens_details", "input_tokens_details"} {
		u.CacheReported = larger(&u.Cached, members(m[details]), "cached_tokens") || u.CacheReported
	}
	larger(&u.Reasoning, m, "reasoning_tokens")
	for _, details := range []string{"completion_tokens_details", "output_tokens_details"} {
		larger(&u.Reasoning, members(m[details]), "reasoning_tokens")
	}
	return u
}

func timingsOf(raw []byte) (t Counts) {
	m := members(raw)
	t.Output, t.HasOutput = countOf(m, "predicted_n")
	t.Prompt, t.HasPrompt = countOf(m, "prompt_n")
	t.Cached, t.CacheReported = countOf(m, "cache_n")
	t.Prompt += t.Cached
	if t.Set = t.HasPrompt || t.HasOutput; !t.Set {
		return Counts{}
	}
	return t
}

func reasonOf(v any) string {
	if m, ok := v.(map[string]any); ok {
		v = m["type"]
	}
	reason, _ := v.(string)
	return reason
}

// found decodes data with Chunk.Read.
func found(w way, data []byte) (r reading, ok bool) {
	c := Chunk{Form: w.form, Keep: w.keep}
	ok = c.Read(data, nil)
	r = reading{
		content: c.Content, answer: c.Answer, thought: c.Thought, bare: c.Bare, failed: c.Failed,
		finish: string(c.Finish), message: c.Message, usage: c.Usage, timings: c.Timings,
	}
	switch {
	case c.Failed || c.Unread == nil:
	case c.Unread[0] == '"':
		name, _ := json.NewDecoder(bytes.NewReader(c.Unread)).Token()
		r.unread = fmt.Sprint("member ", name)
	default:
		r.unread = noMeaning
	}
	if ok && w.keep {
		var all Texts
		all.Add(&c)
		r.said, r.reasoning, r.calls = string(all.Content), string(all.Reasoning), string(all.Calls)
	}
	return r, ok
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

func some(v any) bool {
	switch v := v.(type) {
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return false
}

// empty reports whether an error's value says that there is none.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case bool:
		return !v
	case json.Number:
		mantissa, _, _ := strings.Cut(strings.ToLower(v.String()), "e")
		return !strings.ContainsAny(mantissa, "123456789")
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !empty(e) })
	case map[string]any:
		return empty(slices.Collect(maps.Values(v)))
	}
	return v == ""
}

// wordsOf returns the text of an error.
func wordsOf(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	m, _ := v.(map[string]any)
	if text, _ := m["message"].(string); text != "" {
		return text
	}
	raw, _ := json.Marshal(v)
	return string(raw)
}

func countOf(m map[string]json.RawMessage, name string) (int, bool) {
	number, ok := anyOf(m[name]).(json.Number)
	f, err := number.Float64()
	if ok && err == nil && len(number) <= maxNumber && f == math.Trunc(f) && 0 <= f && f <= MaxTokens {
		return int(f), true
	}
	return 0, false
}

// textsIn returns a string, or the joined texts of a list: strings, and of objects these members.
func textsIn(v any, keys ...string) (all string) {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		for _, entry := range v {
			if text, ok := entry.(string); ok {
				all += text
			}
			object, _ := entry.(map[string]any)
			for _, key := range keys {
				all += textsIn(object[key], keys...)
			}
		}
	}
	return all
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}
