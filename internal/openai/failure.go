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

// A failure is the outcome of a request that did not end ok.
type failure struct {
	outcome measure.Outcome
	text    string
	stale   bool // a kept connection had been closed: the request is retried
}

func failed(o measure.Outcome, format string, args ...any) *failure {
	return &failure{outcome: o, text: fmt.Sprintf(format, args...)}
}

func aborted(ctx context.Context) *failure {
	return failed(measure.Aborted, "stopped by replayd: %v", context.Cause(ctx))
}

// Bounds on the texts of a server about its own errors.
const (
	errorBodyBytes = chunk.MaxMessage
	errorTextBytes = 512
	shownBytes     = 64 // of data that is not an answer
)

// words makes one line of a text that may be a server's: printable, at most 512 bytes, without our credentials.
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
