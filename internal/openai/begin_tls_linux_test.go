package openai

import (
	"bytes"
	"crypto/tls"
	"net"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/common/config"

	"replayd/internal/measure"
	"replayd/test/wiretest"
)

// overTLS returns a client of a server that serves one connection at a time.
func overTLS(t *testing.T, serve func(*tls.Conn)) *Client {
	t.Helper()
	server := httptest.NewTLSServer(nil) // only its certificate is used
	server.Close()
	address := wiretest.Listen(t, "tcp4", func(raw net.Conn) {
		serve(tls.Server(raw, &tls.Config{Certificates: server.TLS.Certificates}))
	})
	return newClient(t, Target{
		Options: Options{
			URL: "https://" + address, API: Completions,
			HTTP: config.HTTPClientConfig{TLSConfig: config.TLSConfig{CA: string(certificatePEM(server))}},
		},
	})
}

// Over TLS, Begin writes whole records and Do writes the rest.
func TestBeginTLS(t *testing.T) {
	for name, size := range map[string]int{"a small message": 10, "a large message": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			bodies := make(chan string, 2)
			l := overTLS(t, func(conn *tls.Conn) {
				for {
					_, body, err := request(conn)
					if err != nil {
						return
					}
					bodies <- body
					send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
				}
			}).Lane()
			defer l.Close()
			m, err := l.client.AppendRequest(nil, Body{Prompt: bytes.Repeat([]byte("a"), size), Stream: true})
			if err != nil {
				t.Fatal(err)
			}
			var req measure.Request
			for i := range 2 {
				if begun := l.Begin(m, &req); begun != (i > 0) {
					t.Errorf("request %d: begun: want %v, got %v", i, i > 0, begun)
				}
				if n, want := len(m)-len(l.present.out.first), min(len(m), beginBytes); i > 0 && (n != want || l.present.out.err != nil) {
					t.Errorf("want %d bytes begun, got %d, %v", want, n, l.present.out.err)
				}
				l.Do(t.Context(), m, &req, Hooks{})
				if req.Outcome != measure.OK || req.Retried {
					t.Fatalf("request %d: %s %s, retried %v", i, req.Outcome, req.Error, req.Retried)
				}
			}
			if first, second := <-bodies, <-bodies; len(first) < size || first != second {
				t.Errorf("the server got %d bytes, then %d, want the same %d and more", len(first), len(second), size)
			}
		})
	}
}
