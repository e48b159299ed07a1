package web

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/fault"
	"replayd/test/outside"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const tlsSection = "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"

func TestTLS(t *testing.T) {
	dir := t.TempDir()
	client := outside.Certificate(t, dir)
	s := serve(t, Options{ConfigFile: write(t, dir, "web.yaml", tlsSection)})
	if !strings.HasPrefix(s.URL(), "https://127.0.0.1:") {
		t.Fatalf("want https, got %s", s.URL())
	}
	if got := getWith(t, client, s.URL()+"/-/healthy", ""); got.code != http.StatusOK || !got.secure {
		t.Errorf("want 200 over TLS, got %d, TLS %v", got.code, got.secure)
	}
}

const users = "basic_auth_users: {prometheus: $2a$04$4edF.6YLvdOTjChNtKGpwe9YFz6VVIzSVmRJiqGOsl9sfF3YQSMsu}\n" // bcrypt of "secret"

// A stream can set deadlines and flush through exporter-toolkit's wrappers, in HTTP/1.1 and HTTP/2.
func TestStreamOverTLS(t *testing.T) {
	for http2, protocol := range map[string]string{"true": "HTTP/2.0", "false": "HTTP/1.1"} {
		dir := t.TempDir()
		client := outside.Certificate(t, dir)
		client.Transport.(*http.Transport).ForceAttemptHTTP2 = true
		file := write(t, dir, "web.yaml", tlsSection+users+"http_server_config: {http2: "+http2+"}\n")
		s := serve(t, Options{ConfigFile: file, Live: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			control := http.NewResponseController(w)
			err := errors.Join(control.SetWriteDeadline(time.Now().Add(outside.Patience)), control.Flush())
			fmt.Fprint(w, r.Proto, " ", err)
		})})
		got := getWith(t, client, strings.Replace(s.URL(), "://", "://prometheus:secret@", 1)+"/live/events", "")
		if want := protocol + " <nil>"; got.code != 200 || got.body != want {
			t.Errorf("want %q, got %d, %q", want, got.code, got.body)
		}
	}
}

// A file with passwords but no TLS section serves plain HTTP.
func TestPasswords(t *testing.T) {
	s := serve(t, Options{ConfigFile: write(t, t.TempDir(), "web.yaml", users)})
	if !strings.HasPrefix(s.URL(), "http://127.0.0.1:") {
		t.Fatalf("want http, got %s", s.URL())
	}
	for credentials, status := range map[string]int{"": 401, "prometheus:wrong@": 401, "prometheus:secret@": 200} {
		if got := get(t, strings.Replace(s.URL(), "://", "://"+credentials, 1)+"/-/healthy", ""); got.code != status {
			t.Errorf("%q: want %d, got %d", credentials, status, got.code)
		}
	}
}

func TestBadConfig(t *testing.T) {
	dir := t.TempDir()
	outside.Certificate(t, dir)
	for name, c := range map[string]struct{ text, want string }{
		"unknown key":  {"tls_server_confg: {}", "field tls_server_confg not found"},
		"not YAML":     {"a: [", "did not find expected node content"},
		"no such cert": {"tls_server_config: {cert_file: nowhere.pem, key_file: key.pem}", "nowhere.pem: no such file"},
		"no key":       {"tls_server_config: {cert_file: cert.pem}", "missing one of key or key_file"},
		"not a hash":   {"basic_auth_users: {a: b}", "hashedSecret too short"},
	} {
		t.Run(name, func(t *testing.T) {
			file := write(t, dir, "bad.yaml", c.text)
			_, err := Listen(Options{Listen: "127.0.0.1:0", ConfigFile: file, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
			if bad, is := errors.AsType[fault.Fault](err); !is || bad.Key != ConfigFile || !strings.HasPrefix(err.Error(), "web.config_file: "+file+": ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want web.config_file: %s: … %s, got %v", file, c.want, err)
			}
		})
	}
	_, err := Listen(Options{Listen: "127.0.0.1:0", ConfigFile: "nowhere.yaml", Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("want a missing file, got %v", err)
	}
}

// If the file becomes invalid before Run, Run fails and frees the address.
func TestConfigBecomesBad(t *testing.T) {
	dir := t.TempDir()
	file := write(t, dir, "web.yaml", users)
	s, err := Listen(Options{Listen: "127.0.0.1:0", ConfigFile: file, Registry: prometheus.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	write(t, dir, "web.yaml", "basic_auth_users: {a: b}")
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "web: ") {
		t.Errorf("want web: and what is wrong, got %v", err)
	}
	if _, err := s.listener.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error("the address is still bound")
	}
}
