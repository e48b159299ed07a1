package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	commoncfg "github.com/prometheus/common/config"
)

func TestMarkBounds(t *testing.T) {
	headers := func(n int) map[string]string {
		all := map[string]string{}
		for i := range n {
			all[fmt.Sprintf("X-%d", i)] = "a"
		}
		return all
	}
	for _, c := range []struct {
		request Request
		want    string // the only fault; "": none
	}{
		{Request{}, ""},
		{Request{CacheSalt: "none"}, ""},
		{Request{CacheSalt: "fixed:a", User: strings.Repeat("u", maxRequestUser), Headers: headers(maxRequestHeaders)}, ""},
		{Request{CacheSalt: "Loop"}, `w.request.cache_salt: want loop, session, none or fixed:NAME, got "Loop"`},
		{Request{User: strings.Repeat("u", maxRequestUser+1)}, "w.request.user: want at most 256 bytes, got 257"},
		{Request{Headers: headers(maxRequestHeaders + 1)}, "w.request.headers: want at most 16 headers, got 17"},
		{Request{Headers: map[string]string{"a\nb": "c"}}, `w.request.headers: want a header name, got "a\nb"`},
		{Request{Headers: map[string]string{"X-A": "a-{session}"}, SessionField: "session_id", EchoHeader: "x-session-token"}, ""},
		{Request{SessionField: "user", EchoHeader: "set-cookie"}, ""},
		{Request{Headers: map[string]string{"X-A": "{loop}"}}, "w.request.headers.X-A: want {session}, or braces of a JSON object, got other braces"},
		{Request{SessionField: "model"}, "w.request.session_field: model is set by replayd"},
		{Request{SessionField: "user", User: "a"}, "w.request.session_field: contradicts user: want one of them"},
		{Request{SessionField: "cache_salt", CacheSalt: "loop"}, "w.request.session_field: contradicts cache_salt: want one of them"},
		{Request{EchoHeader: "x y"}, `w.request.echo_header: want a header name, got "x y"`},
		{Request{EchoHeader: "cookie"}, "w.request.echo_header: want no credentials here: they are the target's http"},
		{Request{Headers: map[string]string{"x-a": "a"}, EchoHeader: "X-A"}, "w.request.echo_header: contradicts headers.x-a: want one of them"},
	} {
		var faults Faults
		c.request.check("w.request", &faults)
		got := ""
		for _, f := range faults {
			got += f.Path + ": " + f.Want
		}
		if got != c.want {
			t.Errorf("%+v: want %q, got %q", c.request, c.want, got)
		}
	}
}

// A header that is sent back cannot be one of the target's own too.
func TestEchoAgainstTheTarget(t *testing.T) {
	for echo, want := range map[string]string{
		"": "", "X-Other": "", "X-A": `echo: contradicts http.http_headers.x-a of target "t": want one of them`,
		"Set-Cookie": `echo: contradicts http.http_headers.Cookie of target "t": want one of them`,
	} {
		target := Target{Name: "t"}
		target.HTTP.HTTPHeaders = &commoncfg.Headers{Headers: map[string]commoncfg.Header{"x-a": {}, "Cookie": {}}}
		var faults Faults
		Request{EchoHeader: echo}.checkAgainst("echo", &target, &faults)
		got := ""
		for _, f := range faults {
			got += f.Path + ": " + f.Want
		}
		if got != want {
			t.Errorf("%q: want %q, got %q", echo, want, got)
		}
	}
}

// Reload compares requests by value: the same section is equal, and another priority or none is a change.
func TestRequestFieldsOfAReload(t *testing.T) {
	mark := func(priority string) Workload {
		return readBack(t, "workloads: [{name: w, request: {priority: "+priority+", headers: {X-A: b}}}]").Workloads[0]
	}
	if !reflect.DeepEqual(mark("0"), mark("0")) {
		t.Error("a section that was read twice differs")
	}
	for _, other := range []string{"1", "null", "-9223372036854775808"} {
		if reflect.DeepEqual(mark("0"), mark(other)) {
			t.Errorf("priority 0 and %s are the same", other)
		}
	}
}
