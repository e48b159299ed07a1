package openai

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"replayd/internal/measure"
)

// pair returns a certificate of a client that signs itself, and its key.
func pair(t *testing.T, number int64) (certificate, key []byte) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(number), NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	text, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text})
}

// In the middle of a rotation the files do not fit: connections have the last certificates that did, the client says so, and no request fails.
func TestTLSFilesThatChange(t *testing.T) {
	seen := make(chan int64, 9)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.TLS.PeerCertificates[0].SerialNumber.Int64()
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, delta("a")+done)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	server.StartTLS()
	defer server.Close()
	dir := t.TempDir()
	put := func(name string, text []byte) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	oldCert, oldKey := pair(t, 1)
	newCert, newKey := pair(t, 2)
	c := newClient(t, Target{Options: Options{
		URL: server.URL, Timeouts: patient, Connections: ConnectionsEach, HTTP: config.HTTPClientConfig{TLSConfig: config.TLSConfig{
			CAFile: put("ca.pem", certificatePEM(server)), CertFile: put("cert.pem", oldCert), KeyFile: put("key.pem", oldKey),
		}},
	}})
	l := c.Lane()
	defer l.Close()
	for _, step := range []struct {
		file   string
		text   []byte
		serial int64
		fault  string
		failed int64
	}{
		{"cert.pem", oldCert, 1, "", 0},
		{"cert.pem", newCert, 1, "private key does not match public key", 1},
		{"key.pem", newKey, 2, "", 1},
		{"ca.pem", []byte("half"), 2, "CA cert", 2},
		{"ca.pem", certificatePEM(server), 2, "", 2},
		{"key.pem", nil, 2, "key", 3},
		{"cert.pem", nil, 2, "cert", 4},
	} {
		put(step.file, step.text)
		var req measure.Request
		do(t, l, &req)
		if req.Outcome != measure.OK {
			t.Fatalf("with %s of %d bytes: %s: %s", step.file, len(step.text), req.Outcome, req.Error)
		}
		failed, fault := c.TLSFiles()
		if serial := <-seen; serial != step.serial || failed != step.failed || (fault != nil) != (step.fault != "") ||
			fault != nil && !strings.Contains(fault.Error(), step.fault) {
			t.Errorf("with %s of %d bytes: certificate %d, %d failed, %v; want %+v", step.file, len(step.text), serial, failed, fault, step)
		}
	}
}
