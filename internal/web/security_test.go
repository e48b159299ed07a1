package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/test/outside"
)

const canary = "kanarie"

// A password in a wrong place of the web configuration is in no error.
func TestWebConfigKeepsItsSecrets(t *testing.T) {
	dir := t.TempDir()
	outside.Certificate(t, dir)
	for _, text := range []string{
		"basic_auth_users: " + canary, "basic_auth_users: [" + canary + "]", "basic_auth_users: {a: *" + canary + "}",
		"basic_auth_users: {a: !!int " + canary + "}", "basic_auth_users: {a: " + canary + "}", "basic_auth_users: {a: [" + canary + "]}",
		"basic_auth_users: {a: {b: " + canary + "}}", "basic_auth_users: {a: " + canary + ", b: @" + canary + "}", canary, "tls_server_config: " + canary,
	} {
		file := write(t, dir, "web.yaml", text)
		_, err := Listen(Options{Listen: "127.0.0.1:0", ConfigFile: file, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
		if err == nil || strings.Contains(err.Error(), canary[:4]) {
			t.Errorf("%s: want an error without the password, got %v", text, err)
		}
	}
	file := write(t, dir, "web.yaml", "basic_auth_users: {}\n#"+strings.Repeat("x", maxConfig))
	if _, err := Listen(Options{Listen: "127.0.0.1:0", ConfigFile: file, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)}); err == nil || !strings.Contains(err.Error(), "want at most 1048576 bytes, got more") {
		t.Errorf("a large file: got %v", err)
	}
}

// The password is not logged either if the file becomes invalid while the server runs. Then all requests fail.
func TestWebConfigKeepsItsSecretsInTheLog(t *testing.T) {
	var log bytes.Buffer // one request at a time writes to the log
	dir := t.TempDir()
	file := write(t, dir, "web.yaml", "basic_auth_users: {}\n")
	s := serve(t, Options{ConfigFile: file, Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	if got := ask(t, "GET", s.URL()+"/-/healthy", ""); got.code != http.StatusOK {
		t.Fatalf("want 200 before, got %d", got.code)
	}
	if err := os.WriteFile(filepath.Join(dir, "web.yaml"), []byte("basic_auth_users: "+canary), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ask(t, "GET", s.URL()+"/-/healthy", ""); got.code != http.StatusInternalServerError || strings.Contains(got.body, canary[:4]) {
		t.Errorf("want 500 without the password, got %d %q", got.code, got.body)
	}
	if said := log.String(); !strings.Contains(said, "cannot unmarshal !!str into") || strings.Contains(said, canary[:4]) {
		t.Errorf("want why, without the password, got %s", said)
	}
}

// With DNS rebinding, a foreign page has the same origin to its browser. Programs may use any name, browsers only an
// address.
func TestReboundNamesArePowerless(t *testing.T) {
	calls := 0
	s := serve(t, Options{Lifecycle: true, Pause: func(context.Context, string, bool) error { calls++; return nil }})
	address := strings.TrimPrefix(s.URL(), "http://")
	_, port, _ := strings.Cut(address, ":")
	for _, c := range []struct {
		host, key, value string
		status           int
	}{
		{"evil.example:" + port, "Origin", "http://evil.example:" + port, 421},
		{"evil.example", "Origin", "http://evil.example", 421},
		{"127.0.0.1.evil.example:" + port, "Origin", "http://127.0.0.1.evil.example:" + port, 421},
		{"evil.example:" + port, "Sec-Fetch-Site", "same-origin", 421},
		{"replayd.monitoring.svc:" + port, "User-Agent", "curl/8", 200},
		{address, "Origin", s.URL(), 200},
		{"localhost:" + port, "Origin", "http://localhost:" + port, 200},
		{"[::1]:" + port, "Origin", "http://[::1]:" + port, 200},
	} {
		calls = 0
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/-/pause", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = c.host
		req.Header.Set(c.key, c.value)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != c.status || calls > 0 != (c.status == 200) {
			t.Errorf("%s, %s %s: want %d, got %d after %d calls", c.host, c.key, c.value, c.status, resp.StatusCode, calls)
		}
	}
}

// Reads are refused to a browser at a foreign name, too. Programs may use any name, and the operator may allow names.
func TestReboundNamesReadNothing(t *testing.T) {
	const firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	o := Options{
		Profiling: true, Config: func() ([]byte, error) { return []byte("drain: 30s\n"), nil }, AllowedHosts: []string{"replayd.example.com"},
		Live: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), Comparisons: func() ([]byte, error) { return []byte("[]"), nil },
	}
	own, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, o)
	s.Ready()
	o.AllowedHosts = []string{"*"}
	open := serve(t, o)
	open.Ready()
	get := func(s *Server, path, host, key, value string) int {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("User-Agent", "Prometheus/3.5.0")
		req.Header.Set(key, value)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusMisdirectedRequest && !strings.Contains(string(body), "web.allowed_hosts") {
			t.Errorf("%s: want the name of the option, got %s", path, body)
		}
		return resp.StatusCode
	}
	for _, path := range []string{"/", "/metrics", "/config", "/live", "/live/events", "/-/comparisons", "/debug/pprof/", "/debug/pprof/cmdline", "/nowhere"} {
		for _, c := range []struct {
			host, key, value string
			refused          bool
		}{
			{"evil.example:9797", "User-Agent", firefox, true},
			{"evil.example:9797", "Accept-Language", "*", true}, // a script has set User-Agent
			{"evil.example:9797", "Sec-Fetch-Mode", "navigate", true},
			{"evil.example:9797", "Origin", "null", true},
			{"127.0.0.1.evil.example", "User-Agent", firefox, true},
			{"localhost.evil.example", "User-Agent", firefox, true},
			{"EVIL.example.", "User-Agent", firefox, true},
			{"replayd.monitoring.svc:9797", "Accept", "text/plain", false}, // a scrape
			{"127.0.0.1:9797", "User-Agent", firefox, false},
			{"10.1.2.3", "User-Agent", firefox, false},
			{"[fd00::1]:9797", "User-Agent", firefox, false},
			{"LocalHost:9797", "User-Agent", firefox, false},
			{own + ":9797", "User-Agent", firefox, false},
			{"Replayd.example.com", "User-Agent", firefox, false},
		} {
			if got := get(s, path, c.host, c.key, c.value); (got == http.StatusMisdirectedRequest) != c.refused {
				t.Errorf("%s at %s with %s %s: got %d", path, c.host, c.key, c.value, got)
			}
		}
		if got := get(open, path, "evil.example", "User-Agent", firefox); got == http.StatusMisdirectedRequest {
			t.Errorf("%s: want any name allowed", path)
		}
	}
	for _, path := range []string{"/runbook", "/-/healthy", "/-/ready"} { // which alerts link to, or which tell nothing
		if got := get(s, path, "evil.example", "User-Agent", firefox); got != http.StatusOK {
			t.Errorf("%s: want 200, got %d", path, got)
		}
	}
}

// Every page forbids framing, loading of resources and content sniffing.
func TestPagesHaveSecurityHeaders(t *testing.T) {
	s := serve(t, Options{Profiling: true, Config: func() ([]byte, error) { return []byte("drain: 30s\n"), nil }})
	s.Ready()
	for _, path := range []string{"/", "/metrics", "/config", "/runbook", "/-/ready", "/debug/pprof/", "/nowhere"} {
		got := ask(t, "GET", s.URL()+path, "")
		for key, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Content-Security-Policy": policy,
		} {
			if got.header.Get(key) != want {
				t.Errorf("%s: %s: want %q, got %q", path, key, want, got.header.Get(key))
			}
		}
	}
	own := "default-src 'self'"
	file := write(t, t.TempDir(), "web.yaml", fmt.Sprintf("http_server_config: {headers: {Content-Security-Policy: %q}}\n", own))
	if got := ask(t, "GET", serve(t, Options{ConfigFile: file}).URL()+"/", "").header.Get("Content-Security-Policy"); got != own {
		t.Errorf("want the web configuration's own policy, got %q", got)
	}
}

// The size of a request's header is limited. Longer headers reach no handler.
func TestHeaderIsBounded(t *testing.T) {
	s := serve(t, Options{Live: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})})
	for size, want := range map[int]int{8 << 10: 200, 11 << 10: 200, 16 << 10: 0, 64 << 10: 0} { // 0: cut off, with status 431 if the client still reads
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+"/live", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Long", strings.Repeat("x", size))
		got := 0
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if got = resp.StatusCode; got == http.StatusRequestHeaderFieldsTooLarge {
				got = 0
			}
		}
		if got != want {
			t.Errorf("%d bytes: want %d, got %d", size, want, got)
		}
	}
}
