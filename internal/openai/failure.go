package openai

import (
	"context"
	"fmt"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/chunk"
	"replayd/internal/scarce"
	"replayd/internal/secret"
)

// A failure is the outcome of a request that did not end ok.
type failure struct {
	outcome measure.Outcome
	text    string
	stale   bool // a kept connection was stale: the message may be sent again
	unsent  bool // nothing was sent, for want of a resource of this process: see Lane.Unsent
}

// unsent returns the failure of a request for which this process lacked a resource before anything was sent. Its outcome is not reported.
func unsent(err error) *failure {
	f := failed(measure.Aborted, "replayd itself lacks %s: %v", scarce.Of(err), err)
	f.unsent = true
	return f
}

// A LackError says which resource of its own this process lacked.
type LackError string

func (e LackError) Error() string { return string(e) }

// notBuilt returns the failure of a request that could not be built or read again.
func notBuilt(err error) *failure {
	if scarce.Met(err) {
		return unsent(err)
	}
	return failed(measure.ConnectFailed, "%v", err)
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

// Redact lets in a text that may be a server's, for messages.
func (c *Client) Redact(text string) secret.Text { return c.Hidden().Text(text, errorTextBytes) }
