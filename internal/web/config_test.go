package web

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// certificate writes cert.pem and key.pem for 127.0.0.1 into dir and returns a client that trusts them.
func certificate(t *testing.T, dir string) *http.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	write(t, dir, "cert.pem", string(cert))
	write(t, dir, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

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
	client := certificate(t, dir)
	s := serve(t, Options{ConfigFile: write(t, dir, "web.yaml", tlsSection)})
	if !strings.HasPrefix(s.URL(), "https://127.0.0.1:") {
		t.Fatalf("want https, got %s", s.URL())
	}
	if got := getWith(t, client, s.URL()+"/-/healthy", ""); got.code != http.StatusOK || !got.secure {
		t.Errorf("want 200 over TLS, got %d, TLS %v", got.code, got.secure)
	}
}

// A file with passwords and no TLS section is served in plain HTTP.
func TestPasswords(t *testing.T) {
	const users = "basic_auth_users: {prometheus: $2a$04$4edF.6YLvdOTjChNtKGpwe9YFz6VVIzSVmRJiqGOsl9sfF3YQSMsu}\n" // bcrypt of "secret"
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
	certificate(t, dir)
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
			var bad *ConfigError
			if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), "web.config_file: "+file+": ") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want web.config_file: %s: … %s, got %v", file, c.want, err)
			}
		})
	}
	_, err := Listen(Options{Listen: "127.0.0.1:0", ConfigFile: "nowhere.yaml", Log: slog.New(slog.DiscardHandler)})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("want a missing file, got %v", err)
	}
}
