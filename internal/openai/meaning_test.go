package openai

import (
	"strings"
	"testing"
	"time"

	"replayd/internal/measure"
)

const second = time.Second

// Answers that users of other tools reported. Each was played to a version that took it wrongly.
func TestReportedAnswers(t *testing.T) {
	content := `{"choices":[{"delta":{"content":"a"}}]}`
	end := func(reason string) string {
		return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
	}
	usage := func(counts string) string { return `{"choices":[],"usage":{` + counts + `}}` }
	two := usage(`"prompt_tokens":3,"completion_tokens":2,"total_tokens":5`)
	five := strings.Repeat(content+"\n", 5)
	call := func(name, arguments string) string {
		return `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"` + name + `","arguments":"` +
			arguments + `"}}]}}]}`
	}
	for name, c := range map[string]struct {
		events  string // one a line, 10 ms apart
		outcome measure.Outcome
		text    string // a part of the error's text
		chunks  int
		usage   measure.Usage
		unread  int
		end     time.Duration // after the request; 0: with the last event
	}{
		// vllm-project/vllm#57082: a shutdown, a sleep, a scale-down.
		"abort": {
			content + "\n" + end("abort") + "\n" + two + "\n[DONE]", measure.ServerAbort, "finish_reason abort", 1,
			measure.Usage{Prompt: 3, Output: 2, Source: measure.UsageFinal},
			0, 0,
		},
		"abort before content": {end("abort") + "\n[DONE]", measure.ServerAbort, "abort", 0, measure.Usage{}, 0, 0},
		"abort of one of two": {
			`{"choices":[{"delta":{"content":"a"},"finish_reason":"abort"},{"delta":{},"finish_reason":"stop"}]}` + "\n[DONE]",
			measure.ServerAbort, "abort", 1,
			measure.Usage{Output: 1, Source: measure.UsageCounted},
			0, 0,
		},
		"DeepSeek": {
			content + "\n" + end("insufficient_system_resource") + "\n[DONE]", measure.ServerAbort, "insufficient",
			1,
			measure.Usage{Output: 1, Source: measure.UsageCounted},
			0, 0,
		},
		"not known": {
			content + "\n" + end("boredom") + "\n[DONE]", measure.OK, "", 1,
			measure.Usage{Output: 1, Source: measure.UsageCounted},
			0, 0,
		},
		// ai-dynamo/aiperf#1330.
		"flat error": {
			content + "\n" + `{"object":"error","message":"engine died","code":500}` + "\n[DONE]",
			measure.ErrorEvent, "engine died", 1,
			measure.Usage{Output: 1, Source: measure.UsageCounted},
			0, 0,
		},
		"flat error first": {
			`{"text":"out of memory","error_code":50001}`, measure.ErrorEvent, "out of memory", 0,
			measure.Usage{},
			0, 0,
		},
		"error of a choice": {
			content + "\n" + `{"choices":[{"delta":{},"error":{"code":502,"message":"gone"},"finish_reason":"error"}]}`,
			measure.ErrorEvent, "gone", 1,
			measure.Usage{Output: 1, Source: measure.UsageCounted},
			0, 0,
		},
		"message alone": {
			`{"code":"InvalidParameter","message":"too long","request_id":"x"}`, measure.ErrorEvent,
			"too long", 0,
			measure.Usage{},
			0, 0,
		},
		"empty errors": {
			`{"choices":[{"delta":{"content":"a"}}],"error":{}}` + "\n" + `{"choices":[{"delta":{"content":"b"}}],"error":[]}` +
				"\n" + `{"choices":[{"delta":{},"finish_reason":"stop"}],"error":{"code":0,"message":"","param":null}}` + "\n" +
				two + "\n[DONE]",
			measure.OK, "", 2,
			measure.Usage{Prompt: 3, Output: 2, Source: measure.UsageFinal},
			0, 0,
		},
		// vllm-project/vllm#37098 and #55082.
		"a tool without arguments": {
			call("f", "") + "\n" + end("tool_calls") + "\n" + two + "\n[DONE]", measure.OK, "", 1,
			measure.Usage{Prompt: 3, Output: 2, Source: measure.UsageFinal},
			0, 0,
		},
		"two calls": {
			call("f", "") + "\n" + call("", "{}") + "\n" + call("g", "") + "\n" + call("",
				"{}") + "\n" + end("tool_calls") + "\n[DONE]",
			measure.OK, "", 4,
			measure.Usage{Output: 4, Source: measure.UsageCounted},
			0, 0,
		},
		// langchain4j/langchain4j#6376.
		"refusal": {
			`{"choices":[{"delta":{"refusal":"no"}}]}` + "\n" + end("stop") + "\n[DONE]", measure.OK, "", 1,
			measure.Usage{Output: 1, Source: measure.UsageCounted},
			0, 0,
		},
		"empty part": {
			`{"choices":[{"delta":{"content":[{"type":"text","text":""}]}}]}` + "\n" + end("stop") + "\n[DONE]",
			measure.Empty, "no content", 0,
			measure.Usage{},
			0, 0,
		},
		// UKGovernmentBEIS/inspect_ai#5528.
		"reasoning beside": {
			five + usage(`"prompt_tokens":12,"completion_tokens":2,"total_tokens":331,`+
				`"completion_tokens_details":{"reasoning_tokens":317}`) + "\n[DONE]",
			measure.OK, "", 5,
			measure.Usage{
				Prompt: 12, Output: 319, Reasoning: 317, Source: measure.UsageFinal,
				Rules: measure.ReasoningBeside,
			},
			0, 0,
		},
		// BerriAI/litellm#8349.
		"zeros": {
			five + usage(`"prompt_tokens":0,"completion_tokens":0,"total_tokens":0`) + "\n[DONE]", measure.OK, "", 5,
			measure.Usage{Output: 5, Source: measure.UsageCounted, Rules: measure.NoOutput},
			0, 0,
		},
		"no completion": {
			five + usage(`"prompt_tokens":12,"total_tokens":19`) + "\n[DONE]", measure.OK, "", 5,
			measure.Usage{Prompt: 12, Output: 7, Source: measure.UsageFinal, Rules: measure.TotalMinusPrompt},
			0, 0,
		},
		"prompt alone": {
			five + usage(`"prompt_tokens":12`) + "\n[DONE]", measure.OK, "", 5,
			measure.Usage{Prompt: 12, Output: 5, Source: measure.UsageCounted, Rules: measure.NoOutput},
			0, 0,
		},
		"DeepSeek's cache": {
			content + "\n" + usage(`"prompt_tokens":12,"completion_tokens":2,"prompt_cache_hit_tokens":8,`+
				`"prompt_cache_miss_tokens":4`) + "\n[DONE]",
			measure.OK, "", 1,
			measure.Usage{Prompt: 12, Output: 2, Cached: 8, CacheReported: true, Source: measure.UsageFinal},
			0, 0,
		},
		"Kimi's cache": {
			content + "\n" + `{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":12,` +
				`"completion_tokens":2,"cached_tokens":8}}]}` + "\n[DONE]",
			measure.OK, "", 1,
			measure.Usage{Prompt: 12, Output: 2, Cached: 8, CacheReported: true, Source: measure.UsageFinal},
			0, 0,
		},
		"a worse usage later": {
			content + "\n" + usage(`"prompt_tokens":12,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":8}`) +
				"\n" + usage(`"prompt_tokens":12,"completion_tokens":0`) + "\n[DONE]",
			measure.OK, "", 1,
			measure.Usage{
				Prompt: 12, Output: 4, Cached: 8, CacheReported: true, Source: measure.UsageFinal,
				Rules: measure.KeptLarger,
			},
			0, 0,
		},
		// maximhq/bifrost#6784.
		"held": {
			content + "\n" + end("stop") + "\n" + two + "\n" + "-", measure.OK, "", 1,
			measure.Usage{Prompt: 3, Output: 2, Source: measure.UsageFinal},
			0, second + 30*time.Millisecond,
		},
		"an error after the end": {
			content + "\n" + end("stop") + "\n" + two + "\n" + `{"error":"late"}` + "\n[DONE]",
			measure.OK, "", 1,
			measure.Usage{Prompt: 3, Output: 2, Source: measure.UsageFinal},
			1, 0,
		},
		"half a chunk after the end": {
			content + "\n" + end("stop") + "\n" + two + "\n" + `{"choices":[{"delta":{"content":"private` + "\n[DONE]",
			measure.OK, "", 1,
			measure.Usage{Prompt: 3, Output: 2, Source: measure.UsageFinal},
			1, 0,
		},
		"without a meaning": {
			content + "\n" + `{"choices":[{"delta":{"output_text":"b"}}]}` + "\n" + `{"status":"busy"}` + "\n" + end("stop") +
				"\n[DONE]",
			measure.OK, "", 1,
			measure.Usage{Output: 1, Source: measure.UsageCounted},
			2, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var pieces []piece
			events, held := strings.CutSuffix(c.events, "\n-")
			at, end := time.Duration(0), time.Duration(0)
			for event := range strings.SplitSeq(events, "\n") {
				at += 10 * time.Millisecond
				pieces = append(pieces, piece{at, "data: " + event + "\n\n"})
			}
			if !held {
				end = at
			}
			req := played(t, false, streamHead, pieces, end, bodyEnd)
			if req.Outcome != c.outcome || !strings.Contains(string(req.Error), c.text) ||
				len(req.Timeline.Chunks) != c.chunks {
				t.Errorf("want %s with %q and %d chunks, got %s with %q and %d", c.outcome, c.text, c.chunks,
					req.Outcome, req.Error, len(req.Timeline.Chunks))
			}
			if req.Usage != c.usage || req.Unread != c.unread {
				t.Errorf("want %+v and %d unread, got %+v and %d: %s", c.usage, c.unread, req.Usage, req.Unread,
					req.UnreadText)
			}
			if strings.Contains(string(req.UnreadText), "private") {
				t.Errorf("shown: %s", req.UnreadText)
			}
			if took := req.Timeline.End.Sub(req.Timeline.Write); c.end > 0 && took != c.end {
				t.Errorf("want the end after %v, got it after %v", c.end, took)
			}
		})
	}
}

// The first token is the first byte of any content, a tool's name included; the first token of the answer is the
// first that is not reasoning (modelscope/evalscope#1700).
func TestFirstTokenOfAnyKind(t *testing.T) {
	for name, c := range map[string]struct {
		events      []piece
		ttft, ttfat time.Duration
	}{
		"a tool's name": {[]piece{
			{50 * time.Millisecond, `{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":""}}]}}]}`},
			{550 * time.Millisecond, `{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{}"}}]},` +
				`"finish_reason":"tool_calls"}]}`},
		}, 50 * time.Millisecond, 50 * time.Millisecond},
		"OpenRouter's reasoning": {[]piece{
			{50 * time.Millisecond, `{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"h"}]}}]}`},
			{250 * time.Millisecond, `{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"m"}]}}]}`},
			{650 * time.Millisecond, `{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`},
		}, 50 * time.Millisecond, 650 * time.Millisecond},
		"Mistral's thinking": {[]piece{
			{50 * time.Millisecond, `{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text",` +
				`"text":"h"}]}]}}]}`},
			{650 * time.Millisecond, `{"choices":[{"delta":{"content":[{"type":"text","text":"a"}]},"finish_reason":"stop"}]}`},
		}, 50 * time.Millisecond, 650 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			for i, p := range c.events {
				c.events[i].text = "data: " + p.text + "\n\n"
			}
			req := played(t, false, streamHead, c.events, second, chunked(done)+bodyEnd)
			ttft, _ := req.TTFT()
			ttfat, _ := req.TTFAT()
			if req.Outcome != measure.OK || ttft != c.ttft || ttfat != c.ttfat {
				t.Errorf("want ok, %v and %v, got %s, %v and %v", c.ttft, c.ttfat, req.Outcome, ttft, ttfat)
			}
		})
	}
}
