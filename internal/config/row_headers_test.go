package config

import (
	"strings"
	"testing"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/fault"
)

// Rows may set what the configuration names, and never credentials, the message's own lines or what the configuration sets itself.
func TestRowHeaders(t *testing.T) {
	target := DefaultTarget()
	target.Name = "vllm"
	target.HTTP.HTTPHeaders = &commoncfg.Headers{Headers: map[string]commoncfg.Header{"X-Team": {Values: []string{"a"}}}}
	w := DefaultWorkload()
	w.Trace.Path = "t.jsonl"
	w.Request.Headers, w.Request.EchoHeader = map[string]string{"X-Canary": "1"}, "X-Route"
	for name, want := range map[string]string{
		"x-tenant": "", "X-Priority": "",
		"x-api-key": "want no credentials in rows", "Api-Key": "want no credentials in rows", "X-Auth-Token": "want no credentials in rows",
		"authorization": "want no credentials here", "Cookie": "want no credentials here", "host": "Host is set by replayd",
		"content-length": "is set by replayd", "Transfer-Encoding": "is set by replayd", "X-Request-Id": "is set by replayd",
		"x-team": "contradicts http.http_headers.x-team of target", "x-canary": "contradicts request.headers.X-Canary",
		"x-route": "contradicts request.echo_header", "a b": "want a header name", "": "want a header name",
	} {
		var f fault.List
		w.Trace.RowHeaders = []string{name}
		w.checkRowHeaders("trace.headers", &target, &f)
		if got := f.Error(); want == "" && len(f) > 0 || !strings.Contains(got, want) {
			t.Errorf("%q: want %q, got %q", name, want, got)
		}
	}
	w.Trace.RowHeaders = []string{"x-tenant"}
	for _, c := range []struct {
		name, value string
		want        bool
	}{
		{"X-Tenant", "a", true},
		{"x-tenant", "{session}", true},
		{"x-tenant", "a\r\nAuthorization: b", false},
		{"x-tenant", "", false},
		{"x-tenant", strings.Repeat("a", 2000), false},
		{"x-other", "a", false},
		{"x-tenant ", "a", false},
	} {
		if got := w.Trace.RowHeader(c.name, c.value); got != c.want {
			t.Errorf("%q: %.20q: want %v", c.name, c.value, c.want)
		}
	}
	w.Trace.RowHeaders = make([]string, maxRowHeaders+1)
	var f fault.List
	if w.checkRowHeaders("trace.headers", &target, &f); !strings.Contains(f.Error(), "want at most 16 headers, got 17") {
		t.Errorf("got %v", f)
	}
}
