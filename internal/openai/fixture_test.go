package openai

import (
	"encoding/pem"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/wire"
)

func certificatePEM(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// start starts server, over TLS if secure, and returns it as a target.
func start(server *httptest.Server, secure bool) Target {
	var target Target
	if secure {
		server.StartTLS()
		target.HTTP.TLSConfig.CA = string(certificatePEM(server))
	} else {
		server.Start()
	}
	target.URL = server.URL
	return target
}

// Streams in the format that each engine's source defines, sent over a connection.
func TestEngineStreams(t *testing.T) {
	type want struct {
		outcome        measure.Outcome
		chunks, events int
		finish, text   string
		usage          measure.Usage
	}
	for name, w := range map[string]want{
		"vllm_chat": {
			measure.OK, 3, 5, "length", "",
			measure.Usage{Prompt: 24, Output: 4, Cached: 16, CacheReported: true, Source: measure.UsageFinal},
		},
		"vllm_reasoning": {
			measure.OK, 3, 5, "tool_calls", "",
			measure.Usage{Prompt: 9, Output: 6, Reasoning: 2, Source: measure.UsageFinal},
		},
		"sglang_completions":   {measure.OK, 2, 5, "stop", "", measure.Usage{Prompt: 7, Output: 2, Reasoning: 1, Source: measure.UsageFinal}},
		"trtllm_chat":          {measure.OK, 2, 5, "stop", "", measure.Usage{Prompt: 5, Output: 3, Cached: 4, CacheReported: true, Source: measure.UsageFinal}},
		"tgi_completions":      {measure.OK, 2, 2, "length", "", measure.Usage{Prompt: 3, Output: 2, Source: measure.UsageFinal}},
		"llamacpp_chat":        {measure.OK, 2, 4, "stop", "", measure.Usage{Prompt: 237, Output: 35, Cached: 236, CacheReported: true, Source: measure.UsageTimings}},
		"llamacpp_completions": {measure.OK, 1, 2, "length", "", measure.Usage{Prompt: 6, Output: 2, Source: measure.UsageFinal}},
		"lmdeploy_chat":        {measure.OK, 1, 3, "stop", "", measure.Usage{Prompt: 11, Output: 1, Source: measure.UsageFinal}},
		"token_ids":            {measure.OK, 2, 3, "length", "", measure.Usage{Output: 2, Source: measure.UsageCounted}},
		"vllm_error":           {measure.ErrorEvent, 1, 2, "", "EngineCore encountered an issue.", measure.Usage{Output: 1, Source: measure.UsageCounted}},
		"llamacpp_error":       {measure.ErrorEvent, 1, 2, "", "context shift is disabled", measure.Usage{Output: 1, Source: measure.UsageCounted}},
		"dynamo_error":         {measure.ErrorEvent, 1, 3, "", `event: error: "the worker went away"`, measure.Usage{Output: 1, Source: measure.UsageCounted}},
		"tgi_error":            {measure.ErrorEvent, 0, 1, "", "Request failed during generation", measure.Usage{}},
		"trtllm_error":         {measure.ErrorEvent, 0, 1, "", "executor was shut down", measure.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			body, err := os.ReadFile(filepath.Join("testdata", "synthetic_"+name+".sse"))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, Target{Options: Options{Timeouts: limits}})
				over(t, c, func(_ int, conn net.Conn) {
					_, _, _ = request(conn)
					send(conn, streamHead+chunked(string(body))+bodyEnd)
				})
				l := c.Lane()
				defer l.Close()
				var req measure.Request
				do(t, l, &req)
				got := want{req.Outcome, len(req.Timeline.Chunks), req.Events, string(req.FinishReason), string(req.Error), req.Usage}
				if got != w {
					t.Errorf("\nwant %+v\n got %+v", w, got)
				}
			})
		})
	}
}

// If the final usage is missing, the usage of the last chunk that has one is used.
func TestUsageOfChunks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{Options: Options{Timeouts: limits}})
		over(t, c, func(_ int, conn net.Conn) {
			_, _, _ = request(conn)
			send(conn, streamHead+chunked(`data: {"choices":[{"text":"a"}],"usage":{"prompt_tokens":4,"completion_tokens":2}}`+"\n\n"))
			_ = conn.Close()
		})
		var req measure.Request
		do(t, c.Lane(), &req)
		want := measure.Usage{Prompt: 4, Output: 2, Source: measure.UsageChunks}
		if req.Usage != want || req.Outcome != measure.Truncated {
			t.Errorf("want %+v and truncated, got %+v and %s", want, req.Usage, req.Outcome)
		}
	})
}

// With usage in each chunk, the tokens of the first content chunk are known; the chunk with the role is none. Without being asked
// for, usage in chunks says nothing of them. The request asks for it.
func TestUsagePerChunk(t *testing.T) {
	const body = `data: {"choices":[{"delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":4,"completion_tokens":0}}` + "\n\n" +
		`data: {"choices":[{"delta":{"content":"a b c d e"}}],"usage":{"prompt_tokens":4,"completion_tokens":5}}` + "\n\n" +
		`data: {"choices":[{"delta":{"content":" f"},"finish_reason":"length"}],"usage":{"prompt_tokens":4,"completion_tokens":6}}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":6}}` + "\n\ndata: [DONE]\n\n"
	for asked, opening := range map[bool]int{true: 5, false: 0} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, Target{Options: Options{Timeouts: limits, Stream: true, PerChunk: asked}})
			var sent string
			over(t, c, func(_ int, conn net.Conn) {
				_, b, _ := request(conn)
				sent = b
				send(conn, streamHead+chunked(body)+bodyEnd)
			})
			l := c.Lane()
			defer l.Close()
			var req measure.Request
			do(t, l, &req)
			want := measure.Usage{Prompt: 4, Output: 6, Opening: opening, Source: measure.UsageFinal}
			if req.Usage != want || req.Outcome != measure.OK || strings.Contains(sent, `"continuous_usage_stats":true`) != asked {
				t.Errorf("asked %t: want %+v, got %+v and %s from %s", asked, want, req.Usage, req.Outcome, sent)
			}
		})
	}
}

// Cached tokens never exceed prompt tokens and reasoning tokens never exceed output tokens, whatever the server
// says: more reasoning than output was not in it.
func TestUsageThatCannotBe(t *testing.T) {
	for body, want := range map[string]measure.Usage{
		`{"usage":{"prompt_tokens":4,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":5},` +
			`"completion_tokens_details":{"reasoning_tokens":3}}}`: {
			Prompt: 4,
			Output: 5, Cached: 4, Reasoning: 3, CacheReported: true, Source: measure.UsageFinal,
			Rules: measure.ReasoningBeside | measure.Clipped,
		},
		`{"usage":{"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":5},"reasoning_tokens":9}}`: {
			Output:    11,
			Reasoning: 9, CacheReported: true, Source: measure.UsageFinal, Rules: measure.ReasoningBeside | measure.Clipped,
		},
		// A count of 0 is a value. A null, a non-number or a missing field is not.
		`{"usage":{"prompt_tokens":4,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":0}}}`:    {Prompt: 4, Output: 2, CacheReported: true, Source: measure.UsageFinal},
		`{"usage":{"prompt_tokens":4,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":null}}}`: {Prompt: 4, Output: 2, Source: measure.UsageFinal},
		`{"usage":{"prompt_tokens":4,"completion_tokens":2,"prompt_tokens_details":null}}`:                   {Prompt: 4, Output: 2, Source: measure.UsageFinal},
		`{"timings":{"cache_n":7,"prompt_n":1,"predicted_n":2}}`:                                             {Prompt: 8, Output: 2, Cached: 7, CacheReported: true, Source: measure.UsageTimings},
	} {
		l := newClient(t, Target{}).Lane()
		var req measure.Request
		l.present.req = &req
		if !l.chunk.Read([]byte(body), nil) || l.present.handle(wire.Arrival{}) != nil {
			t.Error(body)
		}
		if l.present.settleUsage(); req.Usage != want {
			t.Errorf("%s: want %+v, got %+v", body, want, req.Usage)
		}
		l.Close()
	}
}
