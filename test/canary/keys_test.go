//go:build canary

package canary_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"replayd/test/outside"
)

// A gate is a TLS server in front of an engine, with a certificate of its own. It wants a key.
type gate struct {
	*httptest.Server
	ca   string // file
	mu   sync.Mutex
	keys map[string]int // requests by Authorization
}

// open starts a gate. It refuses a wrong key, and repeats it in its answer, which no server should do.
func open(t *testing.T, dir string, s *server, key string) *gate {
	t.Helper()
	g := &gate{keys: map[string]int{}, ca: filepath.Join(dir, s.name+".pem")}
	to, err := url.Parse(s.url())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	g.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Authorization")
		g.mu.Lock()
		g.keys[got]++
		g.mu.Unlock()
		if got != "Bearer "+key {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error": {"message": "no such key: %s"}}`, got)
			return
		}
		// The body is read whole first. Go's server closes it when the answer begins, which the proxy takes for a broken request if it has not seen its end.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	g.TLS = &tls.Config{Certificates: []tls.Certificate{certificate(t, g.ca)}}
	g.Config.ErrorLog = log.New(io.Discard, "", 0) // a client that does not trust it ends the handshake
	g.StartTLS()
	t.Cleanup(g.Close)
	return g
}

// certificate makes a certificate for 127.0.0.1 that vouches for itself, and writes it to a file.
func certificate(t *testing.T, path string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, form, form, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// Each server sees its own key, over TLS by its own authority, and no key is in what the comparison says.
func TestKeys(t *testing.T) {
	t.Parallel()
	const baseKey, candKey, wrongKey = "sk-baseline-5f1c02a7", "sk-candidate-9be4d310", "sk-revoked-77aa01cd"
	for i, c := range []struct {
		name            string
		key             string // of the candidate's file
		trust           string // authority of the candidate's file
		verdict, metric string
	}{
		{"keys and TLS", candKey, "candidate", "pass", ""},
		{"a wrong key", wrongKey, "candidate", "fail", "bad"},
		{"the other side's authority", candKey, "baseline", "fail", "bad"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := newPair(t, 40+uint64(i), nil)
			gates := map[string]*gate{"baseline": open(t, p.dir, p.baseline, baseKey), "candidate": open(t, p.dir, p.candidate, candKey)}
			file := func(side, key, trust string) string {
				return outside.Write(t, p.dir, side+".yaml", fmt.Sprintf("authorization: {credentials: %s}\ntls_config: {ca_file: %s}\n", key, gates[trust].ca))
			}
			var flags []string
			if c.verdict == "pass" {
				flags = fewPairs
			}
			// The last value of a flag counts.
			compared := p.compare(t, c.name, longest(t), append(slices.Clone(flags), "--model", "sim", "--baseline", gates["baseline"].URL, "--candidate", gates["candidate"].URL,
				"--baseline-http.config.file", file("baseline", baseKey, "baseline"), "--candidate-http.config.file", file("candidate", c.key, c.trust))...)
			s := compared.wait(t)
			s.want(t, c.verdict, c.metric)
			if c.verdict == "pass" && s.excess["bad"] != 0 {
				t.Errorf("want no failed request, got an excess of %v", s.excess["bad"])
			}
			for side, own := range map[string]string{"baseline": baseKey, "candidate": c.key} {
				g := gates[side]
				g.mu.Lock()
				t.Logf("%s: requests by key %v", side, g.keys)
				refused := side == "candidate" && c.trust != "candidate"
				if n := g.keys["Bearer "+own]; refused && len(g.keys) > 0 || !refused && (n < 100 || len(g.keys) > 1) {
					t.Errorf("%s: want requests with its own key alone, and none over TLS that it does not trust, got %v", side, g.keys)
				}
				g.mu.Unlock()
			}
			for _, path := range []string{compared.out, p.baseline.log, p.candidate.log} {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				for _, key := range []string{baseKey, candKey, wrongKey} {
					if strings.Contains(string(text), key) {
						t.Errorf("%s has the key %s", filepath.Base(path), key)
					}
				}
			}
		})
	}
}
