package openai

import (
	"net"
	"strings"
	"testing"

	"replayd/internal/measure"
)

// An address is understood in every form: with and without /v1, with an endpoint, a version or a deployment at its end,
// and with a query.
func TestAddress(t *testing.T) {
	for in, want := range map[string]struct{ address, posts, lists string }{
		"http://h":                        {"h:80", "/v1/chat/completions", "/v1/models"},
		"h:8000":                          {"h:8000", "/v1/chat/completions", "/v1/models"},
		"localhost:8000/v1":               {"localhost:8000", "/v1/chat/completions", "/v1/models"},
		"https://h":                       {"h:443", "/v1/chat/completions", "/v1/models"},
		"https://h:8443/a/b/":             {"h:8443", "/a/b/v1/chat/completions", "/a/b/v1/models"},
		"http://h/v1/":                    {"h:80", "/v1/chat/completions", "/v1/models"},
		"http://h/v1/chat/completions":    {"h:80", "/v1/chat/completions", "/v1/models"},
		"http://h/v1/chat/completions//":  {"h:80", "/v1/chat/completions", "/v1/models"},
		"http://h/v1/models":              {"h:80", "/v1/chat/completions", "/v1/models"},
		"http://h/openai/v1/completions/": {"h:80", "/openai/v1/completions", "/openai/v1/models"},
		"http://h/chat/completions":       {"h:80", "/chat/completions", "/models"},
		"http://h/completions":            {"h:80", "/completions", "/models"},
		"http://h/a/chat/completions":     {"h:80", "/a/chat/completions", "/a/models"},
		"http://h/v1/v1":                  {"h:80", "/v1/v1/chat/completions", "/v1/v1/models"},
		"http://h/openai/v1":              {"h:80", "/openai/v1/chat/completions", "/openai/v1/models"},
		"http://h/api/v3":                 {"h:80", "/api/v3/chat/completions", "/api/v3/models"},
		"http://h/api/v3/":                {"h:80", "/api/v3/chat/completions", "/api/v3/models"},
		"http://h/api/v3/completions":     {"h:80", "/api/v3/completions", "/api/v3/models"},
		"http://h/v1beta":                 {"h:80", "/v1beta/chat/completions", "/v1beta/models"},
		"http://h/chat":                   {"h:80", "/chat/v1/chat/completions", "/chat/v1/models"},
		"http://h/v2x/vllm":               {"h:80", "/v2x/vllm/v1/chat/completions", "/v2x/vllm/v1/models"},
		"http://h/a%20b":                  {"h:80", "/a%20b/v1/chat/completions", "/a%20b/v1/models"},
		"http://h?a=1&b":                  {"h:80", "/v1/chat/completions?a=1&b", "/v1/models?a=1&b"},
		"http://[::1]:8000/prefix":        {"[::1]:8000", "/prefix/v1/chat/completions", "/prefix/v1/models"},
		"[2001:db8::1]:8000":              {"[2001:db8::1]:8000", "/v1/chat/completions", "/v1/models"},
		"https://h/openai/deployments/d?api-version=2024-06-01": {
			"h:443", "/openai/deployments/d/chat/completions?api-version=2024-06-01",
			"/openai/deployments/d/models?api-version=2024-06-01",
		},
		"https://h/openai/deployments/d/completions?api-version=2024-06-01": {
			"h:443", "/openai/deployments/d/completions?api-version=2024-06-01",
			"/openai/deployments/d/models?api-version=2024-06-01",
		},
	} {
		o := Options{URL: in, API: Chat}
		o.FollowAddress()
		e, f := o.endpoint()
		if len(f) > 0 || e.address != want.address || e.generates(o.API) != want.posts || e.lists() != want.lists {
			t.Errorf("%s: want %+v, got %s, %s, %s, %v", in, want, e.address, e.generates(o.API), e.lists(), f)
		}
	}
	if got, _ := parseURL("https://h:1/p/v1?key=k"); got.String() != "https://h:1/p" {
		t.Errorf("got %s", got)
	}
}

// What Host and the certificate's name are: a zone and a user's alphabet are no part of them.
func TestHost(t *testing.T) {
	for in, want := range map[string]struct{ dialed, host, name string }{
		"http://h":                       {"h:80", "h", "h"},
		"https://H:8443/v1":              {"H:8443", "H:8443", "H"},
		"http://[::1%25lo]:9906":         {"[::1%lo]:9906", "[::1]:9906", "::1"},
		"http://[fe80::1%25eth0]":        {"[fe80::1%eth0]:80", "[fe80::1]", "fe80::1"},
		"http://[2001:db8::1]:80":        {"[2001:db8::1]:80", "[2001:db8::1]:80", "2001:db8::1"},
		"https://müller.example:1":       {"xn--mller-kva.example:1", "xn--mller-kva.example:1", "xn--mller-kva.example"},
		"http://推論.例え":                   {"xn--jzu158f.xn--r8jz45g:80", "xn--jzu158f.xn--r8jz45g", "xn--jzu158f.xn--r8jz45g"},
		"http://xn--mller-kva.example:1": {"xn--mller-kva.example:1", "xn--mller-kva.example:1", "xn--mller-kva.example"},
	} {
		e, err := parseURL(in)
		if err != nil || e.address != want.dialed || e.host != want.host || e.name != want.name {
			t.Errorf("%s: want %+v, got %s, %s, %s, %v", in, want, e.address, e.host, e.name, err)
		}
	}
	if _, err := parseURL("http://a\u2024b"); err == nil || !strings.Contains(err.Error(), "want the name of a host") {
		t.Errorf("want a name that is none refused, got %v", err)
	}
	c := newClient(t, Target{Options: Options{URL: "http://[::1%25lo]:1", Host: "engine.example"}})
	if m := message(t, c); !strings.Contains(string(m), "\r\nHost: engine.example\r\n") {
		t.Errorf("want the host that was asked for, got %q", m)
	}
	for _, bad := range []string{"a b", "a/b", "h:", "http://h", "[::1", "a\r\nb"} {
		if _, err := New(Target{Options: Options{URL: "h", Host: bad}, Name: "t"}); err == nil || !strings.Contains(err.Error(), "host_header") {
			t.Errorf("%q: want it refused, got %v", bad, err)
		}
	}
}

// A path stands in place of the API's, behind the path of the address. A /v1 that both have is there once.
func TestPath(t *testing.T) {
	for in, want := range map[[2]string][2]string{
		{"http://h", "/x/chat/completions"}:            {"/x/chat/completions", "/x/models"},
		{"http://h/base", "x/completions"}:             {"/base/x/completions", "/base/x/models"},
		{"http://h/v1", "/v1/chat/completions"}:        {"/v1/chat/completions", "/v1/models"},
		{"http://h/v1/", "/generate"}:                  {"/generate", "/v1/models"},
		{"http://h/api/v3", "/chat/completions/"}:      {"/api/v3/chat/completions", "/api/v3/models"},
		{"http://h", "/d/chat/completions?a=1"}:        {"/d/chat/completions?a=1", "/d/models"},
		{"http://h?b=2", "/d/chat/completions?a=1"}:    {"/d/chat/completions?a=1&b=2", "/d/models?b=2"},
		{"http://h?b=2", "/d/chat/completions"}:        {"/d/chat/completions?b=2", "/d/models?b=2"},
		{"http://h/v1/completions", "/v1/completions"}: {"/v1/completions", "/v1/models"},
		{"http://h/openai/deployments/d", "/generate"}: {"/openai/deployments/d/generate", "/openai/deployments/d/models"},
	} {
		o := Options{URL: in[0], Path: in[1], API: Chat}
		o.FollowAddress()
		if e, f := o.endpoint(); len(f) > 0 || e.generates(o.API) != want[0] || e.lists() != want[1] {
			t.Errorf("%s: want %s, got %s, %s, %v", in, want, e.generates(o.API), e.lists(), f)
		}
	}
}

// A refused address has a reason, which repeats no password and no query.
func TestAddressRefused(t *testing.T) {
	long := strings.Repeat("a", maxPath)
	for want, o := range map[string]Options{
		"url: want http://HOST:PORT, got none": {},
		`url: want scheme http or https, got "ftp"`: {
			URL: "ftp://h",
		},
		"url: want a host, got none": {URL: "http://"},
		"url: want no user or password in it: use http.basic_auth": {
			URL: "http://u:s3cret@h",
		},
		"url: want an address, got one that is none and has an @ in it": {
			URL: "http://u:s3cret@h:x",
		},
		"url: ends in /responses: want an address that ends in /chat/completions, /completions or in front of them": {
			URL: "h/v1/responses/",
		},
		"url: ends in /chat: want an address that ends in /chat/completions, /completions or in front of them": {
			URL: "h/api/v3/chat?key=s3cret",
		},
		"url: want no fragment, got one": {URL: "http://h?key=s3cret#s3cret"},
		"url: want a query of at most 2048 printable characters without a space": {
			URL: "http://h?key=s3cret a",
		},
		"url: want a path of at most 2048 printable characters without a space": {
			URL: "http://h/" + long,
		},
		"endpoint_path: want a path of at most 2048 printable characters without a space": {
			URL: "h", Path: "/s3cret\r\nX: y",
		},
		"endpoint_path: want no fragment, got one": {
			URL: "h", Path: "/a#s3cret",
		},
		"endpoint_path: want the endpoint here or in url, got both: url ends in /chat/completions": {
			URL: "http://h/v1/chat/completions?key=s3cret", Path: "/a",
		},
		"url: ends in /completions, which is api completions, and api is chat: want api completions, or an address " +
			"without it": {
			URL: "http://h/v1/completions?key=s3cret", API: Chat,
		},
		"endpoint_path: ends in /chat/completions, which is api chat, and api is completions: want api chat, or an " +
			"address without it": {
			URL: "http://h", Path: "/chat/completions?key=s3cret", API: Completions,
		},
	} {
		if f := o.CheckAddress(); f.Err() == nil || f.Error() != want || strings.Contains(f.Error(), "s3cret") {
			t.Errorf("%+v: want %s, got %v", o, want, f)
		}
	}
}

// A secret in a query is sent, and shown in no text, however the server repeats it.
func TestSecretsInQueries(t *testing.T) {
	for _, o := range []Options{
		{URL: "http://test/v1?api-key=kana%2Frie&api-version=2024-06-01"},
		{URL: "http://test", Path: "/v1/chat/completions?a=1&sig=kana%2Frie&api-version=2024-06-01"},
		{URL: "http://test?code=kana%2Frie&api-version=2024-06-01"},
	} {
		c := newClient(t, Target{Options: o})
		var asked string
		over(t, c, func(_ int, conn net.Conn) {
			r, _, err := request(conn)
			if err != nil {
				return
			}
			asked = r.RequestURI
			send(conn, "HTTP/1.1 401 No\r\nConnection: close\r\n\r\nno such key: kana/rie, kana%2Frie, api-version 2024-06-01")
			_ = conn.Close()
		})
		var req measure.Request
		l := c.Lane()
		do(t, l, &req)
		l.Close()
		if want := "HTTP 401: no such key: <secret>, <secret>, api-version 2024-06-01"; string(req.Error) != want {
			t.Errorf("want %s, got %s", want, req.Error)
		}
		if !strings.Contains(asked, "=kana%2Frie") || !strings.Contains(asked, "api-version=2024-06-01") {
			t.Errorf("asked %s", asked)
		}
	}
}
