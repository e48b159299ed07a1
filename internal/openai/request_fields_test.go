package openai

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/common/config"
)

// A row's own headers come beside those of the workload. A server that repeats them finds them masked.
func TestOwnHeaders(t *testing.T) {
	c, err := New(Target{Options: Options{URL: "http://h", API: Chat, Output: OutputMax}, UserAgent: "replayd/test"})
	if err != nil {
		t.Fatal(err)
	}
	message, err := c.AppendRequest(nil, Body{Prompt: []byte("x"), Request: RequestFields{
		Headers: map[string]string{"X-A": "{session}"}, Own: map[string]string{"x-tenant": "acme {session}"}, Session: "s1",
	}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\r\nX-A: s1\r\n", "\r\nX-Tenant: acme {session}\r\n"} {
		if !strings.Contains(string(message), want) {
			t.Errorf("want %q in %q", want, message)
		}
	}
	if got := c.Hidden().Hide("unknown tenant acme {session}"); strings.Contains(got, "acme") {
		t.Errorf("want the value masked, got %q", got)
	}
}

func TestCheckHeader(t *testing.T) {
	const ok = ""
	for _, c := range []struct{ name, value, want string }{
		{"X-Tenant", "canary", ok},
		{"x_tenant.a", "a: b, c=d; \"e\"", ok},
		{"X-Long", strings.Repeat("a", maxHeaderValue), ok},
		{"X-Long", strings.Repeat("a", maxHeaderValue+1), "want a value of 1 to 1024 bytes, got 1025"},
		{"X-A", "", "want a value of 1 to 1024 bytes, got 0"},
		{"X-A", "a\r\nX-B: c", "want printable ASCII, without a space at either end"},
		{"X-A", "a\nb", "want printable ASCII, without a space at either end"},
		{"X-A", "a\x00b", "want printable ASCII, without a space at either end"},
		{"X-A", "é", "want printable ASCII, without a space at either end"},
		{"X-A", "\xff", "want printable ASCII, without a space at either end"},
		{"X-A", " a", "want printable ASCII, without a space at either end"},
		{"", "a", `want a header name, got ""`},
		{"X A", "a", `want a header name, got "X A"`},
		{"X-A:", "a", `want a header name, got "X-A:"`},
		{"X-A\r\nX-B: c", "a", `want a header name, got "X-A\r\nX-B: c"`},
		{"X-Ä", "a", `want a header name, got "X-Ä"`},
		{strings.Repeat("x", maxHeaderValue+1), "a", `want a header name, got "` + strings.Repeat("x", 64) + `"`},
		{"Authorization", "Bearer sesame", "want no credentials here: they are the target's http"},
		{"proxy-authorization", "Basic sesame", "want no credentials here: they are the target's http"},
		{"COOKIE", "a=b", "want no credentials here: they are the target's http"},
		{"content-length", "0", "Content-Length is set by replayd"},
		{"Content-Type", "text/plain", "Content-Type is set by replayd"},
		{"Host", "other", "Host is set by replayd"},
		{"Connection", "close", "Connection is set by replayd"},
		{"transfer-encoding", "chunked", "Transfer-Encoding is set by replayd"},
		{"Accept", "*/*", "Accept is set by replayd"},
		{"Accept-Encoding", "gzip", "Accept-Encoding is set by replayd"},
		{"user-agent", "a", "User-Agent is set by replayd"},
		{"X-REQUEST-ID", "a", "X-Request-Id is set by replayd"},
	} {
		got := ok
		if err := CheckHeader(c.name, c.value); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: %q: want %q, got %q", c.name, c.value, c.want, got)
		}
	}
}

// A header that passes CheckHeader is sent unchanged and once, and adds no other header.
func FuzzRequestHeader(f *testing.F) {
	for _, name := range append(slices.Clone(ownHeaders), "X-A", "x-a", "X-A: b\r\nX-C", "Content-Length", "If-None-Match", "Range", "a|b") {
		for _, value := range []string{"a", "a\r\nX-B: c", "a,b", "\t", `"`, "a: b", "{session}"} {
			f.Add(name, value)
		}
	}
	c, err := New(Target{
		Options: Options{URL: "http://h", API: Chat, Output: OutputExact, HTTP: config.HTTPClientConfig{
			HTTPHeaders: &config.Headers{Headers: map[string]config.Header{"X-A": {Values: []string{"1", "2"}}}},
		}},
		UserAgent: "replayd/test",
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(c.Close)
	head := func(t *testing.T, m RequestFields) http.Header {
		t.Helper()
		message, err := c.AppendRequest(nil, Body{Prompt: []byte("a"), RequestID: "w/0/0", Request: m})
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(message)))
		if err != nil {
			t.Fatalf("%v in %q", err, message)
		}
		r.Header.Set("Host", r.Host)
		return r.Header
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		if CheckHeader(name, value) != nil {
			return
		}
		want := head(t, RequestFields{})
		for had := range want { // fasthttp and net/http spell some header names differently
			if strings.EqualFold(had, name) {
				delete(want, had)
			}
		}
		got := head(t, RequestFields{Headers: map[string]string{name: value}, Session: "0"})
		value = strings.ReplaceAll(value, SessionMark, "0")
		lines := 0
		for has, values := range got {
			if strings.EqualFold(has, name) {
				lines += len(values)
				if values[0] != value {
					t.Errorf("%s: want %q, got %q", name, value, values)
				}
			} else if !slices.Equal(want[has], values) {
				t.Errorf("%q: %q has changed %s from %q to %q", name, value, has, want[has], values)
			}
		}
		if lines != 1 || len(got) != len(want)+1 {
			t.Errorf("%q: %q: want one line, got %d: %q", name, value, lines, got)
		}
	})
}

// Secrets in the headers of earlier requests are masked in error texts, too.
func TestSecretsOfRequestFieldsAreRedacted(t *testing.T) {
	c := newClient(t, Target{Options: Options{URL: "http://h"}})
	send := func(m RequestFields) {
		t.Helper()
		if _, err := c.AppendRequest(nil, Body{Prompt: []byte("a"), Request: m}); err != nil {
			t.Fatal(err)
		}
	}
	send(RequestFields{Headers: map[string]string{"X-Tenant": "canary", "x_api.KEY": "sesame-1", "X-Customer-Token": "sesame-2", "X-Key": "abc"}})
	send(RequestFields{Headers: map[string]string{"X-Password": "sesame-3"}})
	send(RequestFields{})
	const said = "sesame-1, sesame-2, sesame-3, canary, abc"
	if got, want := c.Redact(said), "<secret>, <secret>, <secret>, canary, abc"; string(got) != want {
		t.Errorf("want %s, got %s", want, got)
	}
	for i := range maxRequestSecrets - 1 { // a reload can add secrets, so their number is limited
		send(RequestFields{Headers: map[string]string{"X-Key": fmt.Sprint("another-", i)}})
	}
	if n := len(c.hidden.Load().requests); n != maxRequestSecrets {
		t.Errorf("want %d values remembered, got %d", maxRequestSecrets, n)
	}
	if got, want := c.Redact(said), "sesame-1, sesame-2, <secret>, canary, abc"; string(got) != want {
		t.Errorf("want %s, got %s", want, got)
	}
}

// Secrets in the target's own headers are masked if the name of the header is secret-like or the header is
// configured under secrets.
func TestHeaderSecretsAreRedacted(t *testing.T) {
	target := Target{Options: Options{URL: "http://h"}}
	target.HTTP.HTTPHeaders = &config.Headers{Headers: map[string]config.Header{
		"X-Api-Key": {Values: []string{"sesame-1"}}, "X-Tenant": {Values: []string{"canary"}}, "X-A": {Secrets: []config.Secret{"sesame-2"}},
	}}
	c := newClient(t, target)
	if _, err := c.AppendRequest(nil, Body{Prompt: []byte("a")}); err != nil {
		t.Fatal(err)
	}
	got, want := c.Redact("bad key sesame-1 of canary, sesame-2"), "bad key <secret> of canary, <secret>"
	if string(got) != want {
		t.Errorf("want %s, got %s", want, got)
	}
}
