package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"replayd/internal/measure"
)

// A failure is why a request did not end well.
type failure struct {
	outcome measure.Outcome
	text    string
	stale   bool // a kept connection had been closed: worth a second try
}

func failed(o measure.Outcome, format string, args ...any) *failure {
	return &failure{outcome: o, text: fmt.Sprintf(format, args...)}
}

func aborted(ctx context.Context) *failure {
	return failed(measure.Aborted, "stopped by replayd: %v", context.Cause(ctx))
}

// Bounds of what a server says about its own errors.
const (
	errorBodyBytes = 4 << 10
	errorTextBytes = 512
	shownBytes     = 64 // of what is no answer at all
)

// words makes a line out of what may hold a server's text: printable, at most 512 bytes, without our credentials.
func (c *Client) words(text string) string {
	text = strings.ToValidUTF8(c.redact(text), "\uFFFD")
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if len(text) > errorTextBytes {
		cut := errorTextBytes - len("…")
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return text
}

// serverText finds the message in the body of an error answer, which engines shape differently:
// {"error":{"message":…}}, {"error":"…"}, {"message":…}, FastAPI's {"detail":…}, or no JSON at all.
func serverText(body []byte) string {
	var shape struct {
		Error, Message, Detail any
	}
	if json.Unmarshal(body, &shape) != nil {
		return string(body)
	}
	for _, v := range []any{shape.Error, shape.Message, shape.Detail} {
		if text := messageOf(v); text != "" {
			return text
		}
	}
	return string(body)
}

// messageOf is an error value in words; "" when it says nothing.
func messageOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case map[string]any:
		if text, _ := v["message"].(string); text != "" {
			return text
		}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return "" // it came out of JSON
	}
	return string(raw)
}
