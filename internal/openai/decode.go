package openai

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
)

// decode reads a chunk of any shape with encoding/json: it defines what the fields of chunk mean, and find is a
// short cut to it. It is false when data is not a JSON object.
func (c *chunk) decode(data []byte) bool {
	*c = chunk{form: c.form, bare: true}
	if !json.Valid(data) { // a Decoder stops at the end of the first value
		return false
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // a number too large for a float is still JSON
	var top map[string]any
	if d.Decode(&top) != nil || top == nil {
		return false
	}
	choices, _ := top["choices"].([]any)
	c.bare = len(choices) == 0
	var s spoken
	for _, v := range choices {
		choice, _ := v.(map[string]any)
		brings := choice["delta"]
		if c.form.whole {
			brings = choice["message"]
		}
		c.content = c.content || some(choice["text"]) || some(choice["token_ids"]) || someDelta(brings)
		if reason, _ := choice["finish_reason"].(string); reason != "" {
			c.finish = []byte(reason)
		}
		s.add(choice["text"], brings)
	}
	if c.form.keep {
		c.said = s.said()
	}
	if u, _ := top["usage"].(map[string]any); u != nil {
		c.usage.output, c.usage.set = count(u["completion_tokens"])
		c.usage.prompt, _ = count(u["prompt_tokens"])
		c.usage.cached = countIn(u["prompt_tokens_details"], "cached_tokens")
		own, _ := count(u["reasoning_tokens"])
		c.usage.reasoning = max(own, countIn(u["completion_tokens_details"], "reasoning_tokens"))
		if !c.usage.set {
			c.usage = counts{}
		}
	}
	if t, _ := top["timings"].(map[string]any); t != nil {
		c.timings.output, c.timings.set = count(t["predicted_n"])
		c.timings.prompt, _ = count(t["prompt_n"])
		c.timings.cached, _ = count(t["cache_n"])
		c.timings.prompt += c.timings.cached
		if !c.timings.set {
			c.timings = counts{}
		}
	}
	switch e := top["error"]; e {
	case nil, "", false:
	default:
		c.failed, c.message = true, messageOf(e)
	}
	return true
}

func someDelta(v any) bool {
	delta, _ := v.(map[string]any)
	calls, _ := delta["tool_calls"].([]any)
	for _, v := range calls {
		call, _ := v.(map[string]any)
		function, _ := call["function"].(map[string]any)
		if some(function["arguments"]) {
			return true
		}
	}
	return some(delta["content"]) || some(delta["reasoning_content"]) || some(delta["reasoning"]) || some(delta["token_ids"])
}

// some reports whether a value brings anything: text that is not empty, or a list (token ids, content parts) or
// an object (arguments that were not put into a string) with something in it.
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

// count is a whole number of tokens, however it is written.
func count(v any) (int, bool) {
	number, ok := v.(json.Number)
	if !ok {
		return 0, false
	}
	f, err := number.Float64()
	if err != nil || f != math.Trunc(f) || f < 0 || f > maxTokens {
		return 0, false
	}
	return int(f), true
}

func countIn(v any, key string) int {
	object, _ := v.(map[string]any)
	n, _ := count(object[key])
	return n
}

// spoken are the texts of all choices, one after the other.
type spoken struct{ content, reasoning, arguments strings.Builder }

func (s *spoken) add(own, brings any) {
	delta, _ := brings.(map[string]any)
	content := textOf(delta["content"])
	if content == "" {
		content = textOf(own)
	}
	s.content.WriteString(content)
	reasoning := textOf(delta["reasoning_content"])
	if reasoning == "" {
		reasoning = textOf(delta["reasoning"])
	}
	s.reasoning.WriteString(reasoning)
	calls, _ := delta["tool_calls"].([]any)
	for _, v := range calls {
		call, _ := v.(map[string]any)
		function, _ := call["function"].(map[string]any)
		if object, ok := function["arguments"].(map[string]any); ok { // not put into a string
			raw, _ := json.Marshal(object) // it came out of JSON
			s.arguments.Write(raw)
			continue
		}
		s.arguments.WriteString(textOf(function["arguments"]))
	}
}

func (s *spoken) said() said {
	quoted := func(b *strings.Builder) text {
		if b.Len() == 0 {
			return nil
		}
		return quote(b.String())
	}
	return said{quoted(&s.content), quoted(&s.reasoning), quoted(&s.arguments)}
}

// textOf is a string, or the texts of a list of content parts.
func textOf(v any) string {
	switch v := v.(type) {
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
