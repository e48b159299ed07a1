package openai

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/chunk"
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
	errorBodyBytes = chunk.MaxMessage
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
