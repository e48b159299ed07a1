package config

import (
	"net/http"
	"strings"

	"replayd/internal/fault"
	"replayd/internal/openai"
	"replayd/internal/secret"
)

// maxRowHeaders bounds the headers that rows of a trace may set.
const maxRowHeaders = 16

// checkRowHeaders checks the headers that rows may set. A trace comes from elsewhere: it may set no credentials, and nothing that
// the configuration sets.
func (w *Workload) checkRowHeaders(at string, t *Target, f *fault.List) {
	f.If(len(w.Trace.RowHeaders) > maxRowHeaders, at, "want at most %d headers, got %d", maxRowHeaders, len(w.Trace.RowHeaders))
	f.If(len(w.Trace.RowHeaders) > 0 && w.Trace.Path == "", at, "want a trace with headers in its rows, got none")
	for _, name := range w.Trace.RowHeaders {
		err := openai.CheckHeader(name, "x")
		switch {
		case err != nil:
			f.Add(at, "%v", err)
		case secret.IsName(name):
			f.Add(at, "want no credentials in rows, got %s: they are the target's http", name)
		case openai.HeaderSet(t.HTTP.HTTPHeaders, name) != "":
			f.Add(at, "contradicts http.http_headers.%s of target %q: want one of them", name, t.Name)
		case w.Request.EchoHeader != "" && strings.EqualFold(openai.EchoedAs(w.Request.EchoHeader), name):
			f.Add(at, "contradicts request.echo_header %s: want one of them", w.Request.EchoHeader)
		}
		for own := range w.Request.Headers {
			f.If(strings.EqualFold(own, name), at, "contradicts request.headers.%s: want one of them", own)
		}
	}
}

// RowHeader reports whether a row of the trace may set a header to a value.
func (t *Trace) RowHeader(name, value string) bool {
	for _, allowed := range t.RowHeaders {
		if http.CanonicalHeaderKey(allowed) == http.CanonicalHeaderKey(name) {
			return openai.CheckHeader(name, "x") == nil && openai.CheckValue(value) == nil
		}
	}
	return false
}
