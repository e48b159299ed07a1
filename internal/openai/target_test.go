package openai

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/config"
)

func TestURL(t *testing.T) {
	for in, want := range map[string]endpoint{
		"http://h":                        {host: "h", name: "h", address: "h:80"},
		"h:8000":                          {host: "h:8000", name: "h", address: "h:8000"},
		"localhost:8000/v1":               {host: "localhost:8000", name: "localhost", address: "localhost:8000"},
		"https://h":                       {secure: true, host: "h", name: "h", address: "h:443"},
		"https://h:8443/a/b/":             {secure: true, host: "h:8443", name: "h", address: "h:8443", prefix: "/a/b"},
		"http://h/v1":                     {host: "h", name: "h", address: "h:80"},
		"http://h/v1/":                    {host: "h", name: "h", address: "h:80"},
		"http://h/v1/chat/completions":    {host: "h", name: "h", address: "h:80"},
		"http://h/openai/v1/completions/": {host: "h", name: "h", address: "h:80", prefix: "/openai"},
		"http://h/v1/v1":                  {host: "h", name: "h", address: "h:80", prefix: "/v1"},
		"http://h/openai/v1":              {host: "h", name: "h", address: "h:80", prefix: "/openai"},
		"http://h/a%20b":                  {host: "h", name: "h", address: "h:80", prefix: "/a%20b"},
		"http://[::1]:8000/prefix":        {host: "[::1]:8000", name: "::1", address: "[::1]:8000", prefix: "/prefix"},
		"[2001:db8::1]:8000":              {host: "[2001:db8::1]:8000", name: "2001:db8::1", address: "[2001:db8::1]:8000"},
		"https://[2001:db8::1]/v1//":      {secure: true, host: "[2001:db8::1]", name: "2001:db8::1", address: "[2001:db8::1]:443"},
	} {
		if got, err := parseURL(in); err != nil || got != want {
			t.Errorf("%s: want %+v, got %+v, %v", in, want, got, err)
		}
	}
	if got, _ := parseURL("https://h:1/p/v1"); got.String() != "https://h:1/p" {
		t.Errorf("got %s", got)
	}
	for in, want := range map[string]string{
		"":                    "url: want http://HOST:PORT, got none",
		"ftp://h":             `url: want scheme http or https, got "ftp"`,
		"http://":             "url: want a host, got none",
		"http://u:s3cret@h":   "url: want no user or password in it: use http.basic_auth",
		"http://u:s3cret@h:x": "url: want an address, got one that is none and has an @ in it",
		"http://h?key=1":      `url: want no query and no fragment, got "http://h?key=1"`,
	} {
		if _, err := parseURL(in); err == nil || err.Error() != want || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: want %s, got %v", in, want, err)
		}
	}
}

// New reports all faults at once.
func TestNewErrors(t *testing.T) {
	_, err := New(Target{
		Name: "vllm", URL: "ftp://h", API: "chats", Output: "all", Idle: -1,
		Timeouts:  Timeouts{Connect: -1, FirstToken: -time.Second, Stall: -1, Total: -1},
		ExtraBody: map[string]any{"f": func() {}},
	})
	want := `target vllm: url: want scheme http or https, got "ftp"
api: want chat or completions, got "chats"
output: want exact, max or free, got "all"
timeouts.connect: want 0 or more, got -1ns
timeouts.first_token: want 0 or more, got -1s
timeouts.stall: want 0 or more, got -1ns
timeouts.total: want 0 or more, got -1ns
idle: want 0 or more, got -1ns
extra_body: json: unsupported type: func()`
	if err == nil || err.Error() != want {
		t.Errorf("want %s\n got %v", want, err)
	}
}

// HTTP options that are not supported are refused, not ignored.
func TestNewRefusesHTTP(t *testing.T) {
	headers := func(name string) config.HTTPClientConfig {
		return config.HTTPClientConfig{HTTPHeaders: &config.Headers{Headers: map[string]config.Header{name: {Values: []string{"x"}}}}}
	}
	proxy := config.URL{}
	if err := proxy.UnmarshalJSON([]byte(`"http://proxy:3128"`)); err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]config.HTTPClientConfig{
		"http.oauth2: want none":                           {OAuth2: &config.OAuth2{ClientID: "i", TokenURL: "u"}},
		"http.proxy_url: want none":                        {ProxyConfig: config.ProxyConfig{ProxyURL: proxy}},
		"http.proxy_from_environment: want none":           {ProxyConfig: config.ProxyConfig{ProxyFromEnvironment: true}},
		"http.no_proxy: want none":                         {ProxyConfig: config.ProxyConfig{ProxyURL: proxy, NoProxy: "h"}},
		"http.basic_auth.username_ref: want none":          {BasicAuth: &config.BasicAuth{UsernameRef: "r"}},
		"http.basic_auth.password_ref: want none":          {BasicAuth: &config.BasicAuth{PasswordRef: "r"}},
		"http.authorization.credentials_ref: want none":    {Authorization: &config.Authorization{CredentialsRef: "r"}},
		"http.tls_config.ca_ref: want none":                {TLSConfig: config.TLSConfig{CARef: "r"}},
		"http.tls_config.cert_ref: want none":              {TLSConfig: config.TLSConfig{CertRef: "r"}},
		"http.tls_config.key_ref: want none":               {TLSConfig: config.TLSConfig{KeyRef: "r"}},
		"http.http_headers: X-Request-Id is set by":        headers("x-request-id"),
		"http.http_headers: Transfer-Encoding is set":      headers("Transfer-Encoding"),
		`http: setting header "Authorization" is not`:      headers("Authorization"),
		`http.http_headers: want a header name, got "a b"`: headers("a b"),
		`http.http_headers: want a header name, got ""`:    headers(""),
		"http: at most one of basic_auth":                  {BasicAuth: &config.BasicAuth{}, Authorization: &config.Authorization{}},
		"http.authorization.credentials_file: open ":       {Authorization: &config.Authorization{CredentialsFile: "testdata/none"}},
		"http.tls_config: unable to read CA cert":          {TLSConfig: config.TLSConfig{CAFile: "testdata/none"}},
	} {
		_, err := New(Target{Name: "t", URL: "https://h", API: Chat, Output: OutputExact, HTTP: cfg})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	// The defaults of prometheus/common enable HTTP/2 and redirects, and are accepted. New does not change the
	// caller's structs.
	cfg := config.DefaultHTTPClientConfig
	cfg.Authorization = &config.Authorization{Credentials: "c"}
	if _, err := New(Target{Name: "t", URL: "https://h", API: Chat, Output: OutputExact, HTTP: cfg}); err != nil || cfg.Authorization.Type != "" {
		t.Errorf("%v, type %q", err, cfg.Authorization.Type)
	}
}
