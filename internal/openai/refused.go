package openai

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/chunk"
	"replayd/internal/openai/internal/wire"
)

// The content types of answers.
const (
	eventStream = "text/event-stream"
	jsonObject  = "application/json"
)

// unfit returns the failure of an answer with another content type than requested.
func (x *exchange) unfit(ctx context.Context, want string) *failure {
	h := &x.head
	if x.req.Status < 200 || x.req.Status > 299 {
		return x.refused(ctx)
	}
	kind, _, _ := bytes.Cut(h.ContentType(), []byte(";"))
	kind = bytes.TrimSpace(kind)
	switch {
	case bytes.EqualFold(kind, []byte(want)):
	case len(kind) == 0 && !x.in.Ended(): // the body shows what it is
		if want == eventStream && x.in.Begins() == '{' {
			return x.otherKind(ctx, want, kind)
		}
		x.client.untyped.Store(true)
	case bytes.EqualFold(kind, []byte(eventStream)): // its first words would take until the first token to come
		return failed(measure.BadStream, "want content type %s, got %q: the server streams, and was not asked to", want, x.client.front(kind, shownBytes))
	default:
		return x.otherKind(ctx, want, kind)
	}
	if e := h.ContentEncoding(); len(e) > 0 && !bytes.EqualFold(e, []byte("identity")) {
		return failed(measure.BadStream, "want no content encoding, got %q", x.client.front(e, shownBytes))
	}
	return nil
}

// otherKind returns the failure of an answer of another content type: the error that it reports, if it is one.
func (x *exchange) otherKind(ctx context.Context, want string, kind []byte) *failure {
	shown := x.client.front(kind, shownBytes)
	text, isError := x.serverText(ctx)
	if isError && (len(kind) == 0 || bytes.EqualFold(kind, []byte(jsonObject))) {
		return failed(measure.ErrorEvent, "%s", text)
	}
	return failed(measure.BadStream, "want content type %s, got %q: %s", want, shown, text)
}

// refused returns the failure of a status other than 2xx, with the server's text.
func (x *exchange) refused(ctx context.Context) *failure {
	text, _ := x.serverText(ctx)
	switch s := x.req.Status; {
	case s == 429:
		return failed(measure.HTTP429, "HTTP 429: %s", text)
	case s >= 300 && s < 400:
		return failed(measure.HTTP3xx, "HTTP %d: redirects are not followed: %s", s, location(x.head.Peek("Location")))
	case s >= 400 && s < 500:
		return failed(measure.HTTP4xx, "HTTP %d: %s", s, text)
	case s >= 500 && s < 600:
		return failed(measure.HTTP5xx, "HTTP %d: %s", s, text)
	}
	return failed(measure.BadStream, "want HTTP status 200 to 599, got %d", x.req.Status)
}

// location returns the target of a redirect, without parts that may be secret.
func location(raw []byte) string {
	u, err := url.Parse(string(raw))
	if err != nil {
		return "an invalid Location"
	}
	u.RawQuery, u.Fragment = "", ""
	return u.Redacted()
}

// serverText reads the beginning of a server's text about an error, for one second at most. isError reports that the
// text is that of an error in JSON.
func (x *exchange) serverText(ctx context.Context) (text string, isError bool) {
	x.limit(time.Now(), drainTime, x.late)
	body, _, _ := x.readBody(ctx, nil, errorBodyBytes) // a part is enough
	if len(body) == errorBodyBytes {
		return x.client.front(body, errorBodyBytes), false // it is no whole JSON
	}
	return chunk.ErrorText(body)
}

// readBody appends the body of an unstreamed answer to dst, which is empty, up to most bytes. The arrival is that of the last bytes.
func (x *exchange) readBody(ctx context.Context, dst []byte, most int) (body []byte, a wire.Arrival, f *failure) {
	body, a, err := x.in.All(dst, most)
	switch {
	case err == nil:
	case errors.Is(err, wire.ErrLong):
		f = failed(measure.BadStream, "the answer is over %d bytes", most)
	case errors.Is(err, wire.ErrChunked):
		f = failed(measure.BadStream, "%v", err)
	default:
		f = cmp.Or(x.cutShort(ctx, err), failed(measure.Truncated, "the answer was cut short: %v", err))
	}
	return body, a, f
}

// ErrNoAnswer is in the error of a probe without an HTTP answer: the target was not reached, or did not answer in time.
var ErrNoAnswer = errors.New("no HTTP answer")

// A probeError is the error of a probe, with the status of its answer. Without an answer it is ErrNoAnswer.
type probeError struct {
	error
	status int
}

func (e probeError) Is(err error) bool { return err == ErrNoAnswer && e.status == 0 }
func (e probeError) Unwrap() error     { return e.error }

// noSuchPath reports whether a probe was answered that the server has no such path.
func noSuchPath(err error) bool {
	e, ok := errors.AsType[probeError](err)
	return ok && (e.status == http.StatusNotFound || e.status == http.StatusMethodNotAllowed)
}

// fetch sends a probe message and returns the body of its answer, up to a number of bytes.
func (c *Client) fetch(ctx context.Context, message []byte, most int) ([]byte, error) {
	if err := c.readCredentials(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	const patience = time.Minute // if the target has no timeouts
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	l := c.Lane()
	defer l.Close()
	var body []byte
	var req measure.Request
	again := func() ([]byte, error) { return message, nil }
	l.play(ctx, message, &req, Hooks{Again: again}, func(x *exchange, ctx context.Context) *failure {
		if req.Status < 200 || req.Status > 299 {
			return x.refused(ctx)
		}
		var f *failure
		body, _, f = x.readBody(ctx, nil, most)
		return f
	})
	var err error
	switch {
	case req.Outcome == measure.OK:
		return body, nil
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case l.unsent != nil:
		return nil, fmt.Errorf("%w: %w", ErrNotSent, l.unsent)
	default:
		err = fmt.Errorf("%s: %s", req.Outcome, req.Error)
	}
	return nil, probeError{err, req.Status}
}
