package openai

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/test/wiretest"
)

// doWhole plays one request for a non-streamed answer.
func doWhole(t *testing.T, l *Lane, req *measure.Request, h Hooks) {
	t.Helper()
	req.Timeline.Whole = true
	m, err := l.client.AppendRequest(nil, Body{Prompt: []byte("about"), MaxTokens: 3, RequestID: "w/0/0"})
	if err != nil {
		t.Fatal(err)
	}
	h.Again = func() ([]byte, error) { return m, nil }
	l.Do(t.Context(), m, req, h)
	if req.Timeline.End.IsZero() || !req.Timeline.Whole || (req.Error == "") != (req.Outcome == measure.OK) {
		t.Errorf("want an end, an answer in one piece and an error text unless ok, got %+v", req)
	}
}

// answered returns an HTTP answer with a Content-Length.
func answered(body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

const wholeHello = `{"choices":[{"index":0,"message":{"role":"assistant","content":"Hello there."},"finish_reason":"length"}],"usage":{"prompt_tokens":9,"completion_tokens":3}}`

// Non-streamed answers, in the format that each engine's source defines.
func TestWholeOfEngines(t *testing.T) {
	usage := func(prompt, output, cached, reasoning int, s measure.UsageSource) measure.Usage {
		return measure.Usage{Prompt: prompt, Output: output, Cached: cached, Reasoning: reasoning, CacheReported: cached > 0, Source: s}
	}
	for name, c := range map[string]struct {
		api          API
		body         string
		finish, text string
		usage        measure.Usage
	}{
		"vllm chat": {
			Chat, `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"Hello \"you\"","refusal":null,` +
				`"annotations":null,"audio":null,"function_call":null,"tool_calls":[],"reasoning":"Hm.","reasoning_content":"Hm."},"logprobs":null,"finish_reason":"stop","stop_reason":null,"token_ids":null}],` +
				`"service_tier":null,"usage":{"prompt_tokens":24,"total_tokens":28,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":16}},"prompt_logprobs":null,"kv_transfer_params":null}`,
			"stop", `Hello "you"`, usage(24, 4, 16, 0, measure.UsageFinal),
		},
		"vllm completions": {
			Completions, `{"id":"cmpl-1","object":"text_completion","choices":[{"index":0,"text":" a b","logprobs":null,"finish_reason":"length","stop_reason":null,"prompt_logprobs":null}],` +
				`"usage":{"prompt_tokens":5,"total_tokens":7,"completion_tokens":2,"prompt_tokens_details":null}}`,
			"length", " a b", usage(5, 2, 0, 0, measure.UsageFinal),
		},
		"vllm tool call": {Chat, `{"choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"a\": 1}"}}]},"finish_reason":"tool_calls"}],` +
			`"usage":{"prompt_tokens":5,"completion_tokens":12}}`, "tool_calls", "", usage(5, 12, 0, 0, measure.UsageFinal)},
		"sglang chat": {
			Chat, `{"choices":[{"index":0,"message":{"role":"assistant","content":"b","reasoning_content":"a","tool_calls":null},"logprobs":null,"finish_reason":"stop","matched_stop":151645}],` +
				`"usage":{"prompt_tokens":7,"total_tokens":9,"completion_tokens":2,"prompt_tokens_details":null,"reasoning_tokens":1},"metadata":{"weight_version":"default"}}`,
			"stop", "b", usage(7, 2, 0, 1, measure.UsageFinal),
		},
		"openai reasoning": {
			Chat, `{"choices":[{"index":0,"message":{"role":"assistant","content":"b","refusal":null},"finish_reason":"stop"}],` +
				`"usage":{"prompt_tokens":7,"completion_tokens":9,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":8,"audio_tokens":0}}}`,
			"stop", "b", usage(7, 9, 4, 8, measure.UsageFinal),
		},
		"llamacpp chat": {Chat, `{"choices":[{"finish_reason":"stop","index":0,"message":{"role":"assistant","content":"a"}}],"created":1,"model":"m","object":"chat.completion",` +
			`"timings":{"cache_n":236,"prompt_n":1,"prompt_ms":30.958,"predicted_n":35,"predicted_ms":661.064}}`, "stop", "a", usage(237, 35, 236, 0, measure.UsageTimings)},
		"tgi chat": {Chat, `{"object":"chat.completion","id":"","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"logprobs":null,"finish_reason":"length"}],` +
			`"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}`, "length", "a", usage(3, 2, 0, 0, measure.UsageFinal)},
		"no usage, no finish reason": {Chat, `{"choices":[{"message":{"content":"a"}}]}`, "", "a", usage(0, 1, 0, 0, measure.UsageCounted)},
		"token ids":                  {Completions, `{"choices":[{"text":"","token_ids":[5,6]}]}`, "", "", usage(0, 1, 0, 0, measure.UsageCounted)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t, Target{Options: Options{API: c.api, Timeouts: limits}})
				over(t, client, func(_ int, conn net.Conn) {
					_, _, _ = request(conn)
					send(conn, answered(c.body))
				})
				l := client.Lane()
				defer l.Close()
				var req measure.Request
				doWhole(t, l, &req, Hooks{Keep: true})
				if req.Outcome != measure.OK || string(req.FinishReason) != c.finish || string(req.Text) != c.text || req.Usage != c.usage || len(req.Timeline.Chunks) != 1 || req.Events != 0 {
					t.Errorf("want ok, %q, %q, %+v and one chunk, got %+v with %q", c.finish, c.text, c.usage, req, req.Text)
				}
			})
		})
	}
}

// Every outcome of a non-streamed answer that depends on the bytes from the server.
func TestWholeOutcomes(t *testing.T) {
	closed := func(kind, body string) string {
		return "HTTP/1.1 200 OK\r\nContent-Type: " + kind + "\r\nConnection: close\r\n\r\n" + body
	}
	chunks := "HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nTransfer-Encoding: chunked\r\n\r\n"
	for name, c := range map[string]struct {
		answer  string
		outcome measure.Outcome
		text    string
	}{
		"by length":           {answered(wholeHello), measure.OK, ""},
		"chunked":             {chunks + chunked(wholeHello[:30]) + chunked(wholeHello[30:]) + bodyEnd, measure.OK, ""},
		"to the close":        {closed("Application/JSON", wholeHello), measure.OK, ""},
		"with white space":    {answered("\n " + wholeHello + "\r\n"), measure.OK, ""},
		"only tool calls":     {answered(`{"choices":[{"message":{"tool_calls":[{"function":{"arguments":"{}"}}]}}]}`), measure.OK, ""},
		"several choices":     {answered(`{"choices":[{"message":{"content":"a"}},{"message":{"content":"b"}}]}`), measure.OK, ""},
		"empty content":       {answered(`{"choices":[{"message":{"role":"assistant","content":""},"finish_reason":"stop"}],"usage":{"completion_tokens":1}}`), measure.Empty, "no content"},
		"a delta, no message": {answered(`{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}`), measure.Empty, "no content"},
		"an error":            {answered(`{"error":{"message":"out of memory","code":500}}`), measure.ErrorEvent, "out of memory"},
		"no choices":          {answered(`{"status":"fine"}`), measure.BadStream, `want choices in the answer, got "{\"status\":`},
		"none of the choices": {answered(`{"choices":[]}`), measure.BadStream, "want choices"},
		"a list":              {answered(`[1]`), measure.BadStream, `want a JSON object, got "[1]"`},
		"half of it":          {answered(wholeHello[:40]), measure.Truncated, "cut short after 40 bytes"},
		"two of them":         {answered(wholeHello + wholeHello), measure.BadStream, "want a JSON object"},
		"nothing":             {answered(""), measure.BadStream, `want a JSON object, got ""`},
		"no content":          {"HTTP/1.1 204 No Content\r\nContent-Type: application/json\r\n\r\n", measure.BadStream, "want a JSON object"},
		"a stream":            {streamHead + chunked(delta("a")), measure.BadStream, `want content type application/json, got "text/event-stream": the server streams, and was not asked to`},
		"HTML":                {closed("text/html", "<html>hi</html>"), measure.BadStream, `want content type application/json, got "text/html": <html>hi</html>`},
		"compressed":          {strings.Replace(answered("\x1f\x8b"), "\r\n", "\r\nContent-Encoding: gzip\r\n", 1), measure.BadStream, `got "gzip"`},
		"broken chunks":       {chunks + "zz\r\n", measure.BadStream, "broken chunked"},
		"over 16 MiB":         {closed("application/json", `{"x":"`+strings.Repeat("x", 17<<20)), measure.BadStream, "over 16777216 bytes"},
		"short of its length": {answered(wholeHello)[:100], measure.Truncated, "cut short"},
		"cut in a chunk":      {chunks + chunked(wholeHello)[:50], measure.Truncated, "cut short"},
		"cut by the close":    {closed("application/json", wholeHello[:50]), measure.Truncated, "cut short after 50 bytes"},
		"closed before it":    {closed("application/json", ""), measure.Truncated, "cut short after 0 bytes"},
		"garbage by close":    {closed("application/json", "oops"), measure.BadStream, `got "oops"`},
		"after its head":      {chunks, measure.Truncated, "cut short"},
		"closes at once":      {"", measure.NoAnswer, "before any byte"},
		"400":                 {strings.Replace(answered(`{"error":{"message":"too big"}}`), "200 OK", "400 Bad Request", 1), measure.HTTP4xx, "HTTP 400: too big"},
		"503":                 {"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\n{}", measure.HTTP5xx, "HTTP 503"},
	} {
		t.Run(name, func(t *testing.T) {
			address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
				if _, _, err := request(conn); err == nil {
					send(conn, c.answer)
				}
			})
			l := newClient(t, Target{Options: Options{URL: address, Timeouts: limits}}).Lane()
			defer l.Close()
			var req measure.Request
			doWhole(t, l, &req, Hooks{})
			chunks := 0
			if c.outcome == measure.OK {
				chunks = 1
			}
			if req.Outcome != c.outcome || !strings.Contains(string(req.Error), c.text) || len(req.Timeline.Chunks) != chunks {
				t.Errorf("want %s with %q, got %s with %q and %d chunks", c.outcome, c.text, req.Outcome, req.Error, len(req.Timeline.Chunks))
			}
		})
	}
}

// A non-streamed answer that is cut into two reads at every byte is one chunk, with the time of the read that had
// its last byte. The connection is kept: streams and non-streamed answers alternate on it.
func TestWholeEveryCut(t *testing.T) {
	for name, answer := range map[string]string{
		"by length": answered(wholeHello),
		"chunked":   "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n" + chunked(wholeHello[:50]) + chunked(wholeHello[50:]) + bodyEnd,
	} {
		end := strings.LastIndex(answer, "}") + 1
		headEnd := strings.Index(answer, "\r\n\r\n") + 4
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, Target{Options: Options{Timeouts: limits}})
				over(t, c, func(_ int, conn net.Conn) {
					for cut := 1; cut < len(answer); cut++ {
						if head, body, err := request(conn); err != nil || strings.Contains(body, "stream") || head.Header.Get("Accept") != "application/json" {
							t.Errorf("cut %d: %v: %s", cut, err, body)
							return
						}
						pass(time.Second)
						send(conn, answer[:cut])
						pass(time.Millisecond)
						send(conn, answer[cut:])
						_, _, _ = request(conn)
						send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
					}
				})
				l := c.Lane()
				defer l.Close()
				var req measure.Request
				at := func(last, cut int) time.Duration {
					if last > cut {
						return time.Second + time.Millisecond
					}
					return time.Second
				}
				for cut := 1; cut < len(answer); cut++ {
					doWhole(t, l, &req, Hooks{})
					tl := &req.Timeline
					if want := []time.Duration{at(end, cut)}; req.Outcome != measure.OK || !slices.Equal(tl.Chunks, want) || req.Retried || req.Usage.Output != 3 {
						t.Fatalf("cut at %d: want %v, got %+v", cut, want, req)
					}
					if want := at(headEnd, cut); tl.Head.Sub(tl.Write) != want || !tl.Cancel.IsZero() {
						t.Fatalf("cut at %d: want the head after %v, got %v; cancelled at %v", cut, want, tl.Head.Sub(tl.Write), tl.Cancel)
					}
					tl.Whole = false
					do(t, l, &req)
					if req.Outcome != measure.OK || req.Timeline.Connect != 0 || req.Events != 2-1 {
						t.Fatalf("the stream after cut %d: %+v", cut, req)
					}
				}
			})
		})
	}
}

// The timeouts first_token and stall do not apply to a non-streamed answer: only total limits it.
func TestWholeTimeouts(t *testing.T) {
	for name, c := range map[string]struct {
		timeouts Timeouts
		after    time.Duration // until the second half of the answer; 0: it is never sent
		outcome  measure.Outcome
		end      time.Duration
	}{
		"later than a first token may be": {limits, 9 * time.Minute, measure.OK, 9 * time.Minute},
		"total":                           {limits, 0, measure.TimeoutTotal, 10 * time.Minute},
		"none":                            {Timeouts{FirstToken: time.Second, Stall: time.Second}, 24 * time.Hour, measure.OK, 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t, Target{Options: Options{Timeouts: c.timeouts}})
				over(t, client, func(_ int, conn net.Conn) {
					_, _, _ = request(conn)
					send(conn, answered(wholeHello)[:90])
					if c.after > 0 {
						pass(c.after)
						send(conn, answered(wholeHello)[90:])
					}
				})
				l := client.Lane()
				defer l.Close()
				var req measure.Request
				doWhole(t, l, &req, Hooks{})
				if got := req.Timeline.End.Sub(req.Timeline.Write); req.Outcome != c.outcome || got != c.end {
					t.Errorf("want %s after %v, got %s after %v: %s", c.outcome, c.end, req.Outcome, got, req.Error)
				}
				if req.Timeline.Head.IsZero() {
					t.Error("want the instant of the head, got none")
				}
			})
		})
	}
}
