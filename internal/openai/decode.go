package openai

import (
	"bytes"
	"encoding/json"
	"math"
)

// decode reads a chunk of any shape with encoding/json: it defines what the fields of chunk mean, and find is a
// short cut to it. It is false when data is not a JSON object.
func (c *chunk) decode(data []byte) bool {
	*c = chunk{bare: true}
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
	for _, v := range choices {
		choice, _ := v.(map[string]any)
		c.content = c.content || some(choice["text"]) || some(choice["token_ids"]) || someDelta(choice["delta"])
		if reason, _ := choice["finish_reason"].(string); reason != "" {
			c.finish = []byte(reason)
		}
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
