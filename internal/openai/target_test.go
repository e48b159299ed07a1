package openai

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/config"
)

// New reports all faults at once.
func TestNewErrors(t *testing.T) {
	_, err := New(Target{
		Options: Options{
			URL: "ftp://h", API: "chats", Output: "all", Idle: -1,
			Timeouts: Timeouts{
				Connect: -1, FirstToken: -time.Second, Stall: -1,
				Total: -1,
			}, ExtraBody: map[string]any{"f": func() {}},
		},
		Name: "vllm",
	})
	want := `target vllm: url: want scheme http or https, got "ftp"
api: want chat or completions, got "chats" (did you mean chat?)
output: want exact, max or free, got "all"
timeouts.connect: want a duration ≥ 0, got -1ns
timeouts.first_token: want a duration ≥ 0, got -1s
timeouts.stall: want a duration ≥ 0, got -1ns
timeouts.total: want a duration ≥ 0, got -1ns
idle: want a duration > 0, got -1ns
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
		_, err := New(Target{Options: Options{URL: "https://h", API: Chat, Output: OutputExact, HTTP: cfg}, Name: "t"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	// The defaults of prometheus/common enable HTTP/2 and redirects, and are accepted. New does not change the
	// caller's structs.
	cfg := config.DefaultHTTPClientConfig
	cfg.Authorization = &config.Authorization{Credentials: "c"}
	if _, err := New(Target{
		Options: Options{URL: "https://h", API: Chat, Output: OutputExact, HTTP: cfg},
		Name:    "t",
	}); err != nil || cfg.Authorization.Type != "" {
		t.Errorf("%v, type %q", err, cfg.Authorization.Type)
	}
}
