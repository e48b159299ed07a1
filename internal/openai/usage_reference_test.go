package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"replayd/internal/measure"
)

// counts of a usage by their names. One that was not given is missing.
type counts map[string]int

func usageOf(v any) counts {
	u := counts{}
	u.take("prompt", member(v, "input_tokens"), member(v, "prompt_tokens"))
	u.take("output", member(v, "output_tokens"), member(v, "completion_tokens"))
	u.take("total", member(v, "total_tokens"))
	if len(u) == 0 {
		return nil
	}
	u.take("cached", member(v, "cached_tokens"), member(v, "prompt_cache_hit_tokens"),
		member(v, "cache_read_input_tokens"), member(v, "prompt_tokens_details", "cached_tokens"),
		member(v, "input_tokens_details", "cached_tokens"))
	u.take("reasoning", member(v, "reasoning_tokens"), member(v, "completion_tokens_details", "reasoning_tokens"),
		member(v, "output_tokens_details", "reasoning_tokens"))
	return u
}

func timingsOf(v any) counts {
	t := counts{}
	t.take("prompt", member(v, "prompt_n"))
	t.take("output", member(v, "predicted_n"))
	if len(t) > 0 {
		t.take("cached", member(v, "cache_n"))
	}
	if _, given := t["prompt"]; given {
		t["prompt"] += t["cached"]
	}
	return t
}

// take sets a count to the largest of values that are numbers of tokens.
func (c counts) take(name string, values ...any) {
	for _, v := range values {
		number, _ := v.(json.Number)
		f, err := number.Float64()
		if err == nil && f >= 0 && f <= 1e9 && f == float64(int(f)) {
			c[name] = max(c[name], int(f))
		}
	}
}

// usage returns the usage by the counts of an answer.
func (r *reference) usage() (u measure.Usage) {
	u, known := settled(r.usages, len(r.kinds) > 0)
	if u.Source = measure.UsageChunks; r.final {
		u.Source = measure.UsageFinal
	}
	if t, ok := settled(r.timings, len(r.kinds) > 0); ok && !known {
		t.Rules |= u.Rules
		u, known = t, true
		u.Source = measure.UsageTimings
	}
	if !known {
		if u.Output, u.Reasoning, u.Source = len(r.kinds), 0, measure.UsageCounted; u.Output == 0 {
			u.Source = ""
		}
	}
	return u
}

func settled(all []counts, content bool) (u measure.Usage, known bool) {
	if len(all) == 0 {
		return u, false
	}
	c := counts{}
	for _, later := range all {
		for name, n := range later {
			if n < c[name] && name != "reasoning" {
				u.Rules |= measure.KeptLarger
			}
			c[name] = max(c[name], n)
		}
	}
	output, given := c["output"]
	_, u.CacheReported = c["cached"]
	known = given && (output > 0 || !content)
	total, totaled := c["total"]
	rest := total - c["prompt"]
	if !totaled || c["prompt"] == 0 {
		rest = -1 // there is none
	}
	switch reasoning := c["reasoning"]; {
	case !known && rest > 0:
		output, known = rest, true
		u.Rules |= measure.TotalMinusPrompt
	case reasoning > 0 && (reasoning > output && rest != output || rest == output+reasoning):
		output, known = output+reasoning, true
		u.Rules |= measure.ReasoningBeside
	case !known:
		u.Rules |= measure.NoOutput
	case rest >= 0 && rest != output:
		u.Rules |= measure.TotalDiffers
	}
	u.Prompt, u.Output, u.Cached, u.Reasoning = c["prompt"], output, c["cached"], c["reasoning"]
	if u.Prompt == 0 && totaled && known && total > output {
		u.Prompt = total - output
		u.Rules |= measure.TotalMinusOutput
	}
	if u.Cached > u.Prompt || known && u.Reasoning > u.Output {
		u.Cached, u.Reasoning = min(u.Cached, u.Prompt), min(u.Reasoning, u.Output)
		u.Rules |= measure.Clipped
	}
	return u, known
}

// The pieces below are also in the tests of package chunk: neither reference can hide a mistake of the other.

// object returns the members of a JSON object; nil for anything else.
func object(v any) map[string]any {
	if text, ok := v.(string); ok {
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if !json.Valid([]byte(text)) || d.Decode(&v) != nil {
			return nil
		}
	}
	m, _ := v.(map[string]any)
	return m
}

func list(v any) []any {
	all, _ := v.([]any)
	return all
}

func member(v any, path ...string) any {
	for _, name := range path {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	return v
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

// says reports whether a text, or one of the members of a list's entries, is not empty.
func says(v any, names ...string) bool {
	text, _ := v.(string)
	return text != "" || slices.ContainsFunc(list(v), func(entry any) bool {
		return says(entry) || slices.ContainsFunc(names, func(name string) bool { return says(member(entry, name)) })
	})
}

// odd reports whether an object has a member with content that is not one of names.
func odd(v any, names string) bool {
	m, _ := v.(map[string]any)
	for name, v := range m {
		if some(v) && !slices.Contains(strings.Fields(names), name) {
			return true
		}
	}
	return false
}

func empty(v any) bool {
	switch v := v.(type) {
	case []any:
		return !slices.ContainsFunc(v, func(e any) bool { return !empty(e) })
	case map[string]any:
		for _, e := range v {
			if !empty(e) {
				return false
			}
		}
		return true
	case json.Number:
		return v == "0"
	}
	return slices.Contains([]any{nil, false, ""}, v)
}

// words returns the text of an error.
func words(v any) string {
	if text, _ := member(v, "message").(string); text != "" {
		return text
	}
	if text, ok := v.(string); ok {
		return text
	}
	raw, _ := json.Marshal(v)
	return string(raw)
}
