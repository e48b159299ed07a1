package openai

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/chunk"
)

// play sends the same request twice to a server that always gives the same answer, and calls use after each.
func play(t *testing.T, whole bool, answer string, h Hooks, use func(req *measure.Request)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{Options: Options{Timeouts: limits}})
		over(t, c, func(_ int, conn net.Conn) {
			for {
				if _, _, err := request(conn); err != nil {
					return
				}
				send(conn, answer)
			}
		})
		l := c.Lane()
		defer l.Close()
		var req measure.Request
		req.Timeline.Whole = whole
		for range 2 { // the second request reuses the buffers of the first
			l.Do(t.Context(), message(t, c), &req, h)
			use(&req)
		}
	})
}

// Request.Text holds the content of a stream or of a non-streamed answer, without reasoning and tool call
// arguments.
func TestKeep(t *testing.T) {
	reasoned := `data: {"choices":[{"delta":{"reasoning":"Let me see. "}}]}` + "\n\n"
	call := `data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{}"}}]}}]}` + "\n\n"
	stream := streamHead + chunked(delta("")+reasoned+delta("Hello")) + chunked(delta(` \"you\"`)+call+delta("\\n")+finish("stop")+done) + bodyEnd
	for name, c := range map[string]struct {
		whole  bool
		answer string
		want   string
	}{
		"stream":       {false, stream, "Hello \"you\"\n"},
		"one piece":    {true, answered(wholeHello), "Hello there."},
		"only a call":  {true, answered(`{"choices":[{"message":{"tool_calls":[{"function":{"arguments":"{}"}}]}}]}`), ""},
		"cut":          {false, streamHead + chunked(delta("Hel")) + "zz\r\n", "Hel"},
		"error before": {false, "HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, c.whole, c.answer, Hooks{Keep: true}, func(req *measure.Request) {
				if string(req.Text) != c.want || req.TextCut {
					t.Errorf("want %q, got %q, cut %v (%s)", c.want, req.Text, req.TextCut, req.Outcome)
				}
			})
			play(t, c.whole, c.answer, Hooks{}, func(req *measure.Request) {
				if len(req.Text) != 0 {
					t.Errorf("kept without being asked: %q", req.Text)
				}
			})
		})
	}
}

// A text longer than 4 MiB is cut at a character boundary and TextCut is set. The outcome stays ok. The tokens of a
// cut text are not counted: the usage is the number of chunks.
func TestKeepIsBounded(t *testing.T) {
	const each = 1 << 20
	var events strings.Builder
	for range 5 {
		events.WriteString(chunked(delta(strings.Repeat("é", each/2) + "x"))) // each is one byte over a MiB
	}
	counted := func([]byte) (int, error) { t.Error("a text that was cut was counted"); return 0, nil }
	play(t, false, streamHead+events.String()+chunked(done)+bodyEnd, Hooks{Keep: true, Count: counted}, func(req *measure.Request) {
		if n := len(req.Text); n > chunk.MaxText || n < chunk.MaxText-1 || !utf8.Valid(req.Text) || !req.TextCut {
			t.Errorf("want %d bytes of whole letters, got %d, cut %v", chunk.MaxText, n, req.TextCut)
		}
		if want := (measure.Usage{Output: 5, Source: measure.UsageCounted}); req.Outcome != measure.OK || req.Usage != want {
			t.Errorf("want ok and %+v, got %s and %+v", want, req.Outcome, req.Usage)
		}
	})
}

// If the server sends no usage, the tokens of the texts are counted, including reasoning and tool call arguments.
func TestCount(t *testing.T) {
	words := func(text []byte) (int, error) { return len(bytes.Fields(text)), nil }
	reasoned := `data: {"choices":[{"delta":{"reasoning":"one two three"}}]}` + "\n\n"
	call := `data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{ }"}}]}}]}` + "\n\n"
	usage := `data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7}}` + "\n\n"
	for name, c := range map[string]struct {
		whole  bool
		answer string
		want   measure.Usage
	}{
		"a stream":        {false, streamHead + chunked(reasoned+delta("Hello there,")+call+delta(" you")+done) + bodyEnd, measure.Usage{Output: 8, Reasoning: 3, Source: measure.UsageText}},
		"with usage":      {false, streamHead + chunked(delta("Hello there")+usage+done) + bodyEnd, measure.Usage{Prompt: 9, Output: 7, Source: measure.UsageFinal}},
		"cut off":         {false, streamHead + chunked(delta("Hello there")) + bodyEnd, measure.Usage{Output: 2, Source: measure.UsageText}},
		"one piece":       {true, answered(`{"choices":[{"message":{"content":"Hello there"}}]}`), measure.Usage{Output: 2, Source: measure.UsageText}},
		"token ids alone": {true, answered(`{"choices":[{"token_ids":[1,2,3]}]}`), measure.Usage{Output: 1, Source: measure.UsageCounted}},
		"nothing":         {false, streamHead + chunked(done) + bodyEnd, measure.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, c.whole, c.answer, Hooks{Count: words}, func(req *measure.Request) {
				if req.Usage != c.want {
					t.Errorf("want %+v, got %+v (%s: %s)", c.want, req.Usage, req.Outcome, req.Error)
				}
			})
		})
	}
}
