package openai

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/common/config"

	"replayd/internal/measure"
)

// overTLS gives a client of a server that serves one connection at a time.
func overTLS(t *testing.T, serve func(*tls.Conn)) *Client {
	t.Helper()
	server := httptest.NewTLSServer(nil) // only its certificate is wanted
	server.Close()
	address := listen(t, "tcp4", func(raw net.Conn) {
		serve(tls.Server(raw, &tls.Config{Certificates: server.TLS.Certificates}))
	})
	return newClient(t, Target{
		URL: "https://" + address, API: Completions,
		HTTP: config.HTTPClientConfig{TLSConfig: config.TLSConfig{CA: string(certificatePEM(server))}},
	})
}

// Over TLS Begin hands over whole records, and Do the rest.
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
				if n, want := len(m)-len(l.begun.first), min(len(m), beginBytes); i > 0 && (n != want || l.begun.err != nil) {
					t.Errorf("want %d bytes begun, got %d, %v", want, n, l.begun.err)
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

// An offer does not wait for a server that does not read. What the kernel has no room for goes out in its turn.
func TestOfferTLS(t *testing.T) {
	total, got := make(chan int, 1), make(chan []byte, 1)
	c := overTLS(t, func(conn *tls.Conn) {
		_ = conn.Handshake() // an error is the client's too
		read := make([]byte, <-total)
		n, _ := io.ReadFull(conn, read)
		got <- read[:n]
	})
	conn, f := c.connect(t.Context(), time.Time{})
	if f != nil {
		close(total)
		t.Fatal(f.text)
	}
	defer conn.cut()
	var want []byte
	for i := 0; len(conn.wire.left) == 0 && len(want) < 256<<20; i++ {
		piece := bytes.Repeat([]byte{byte(i)}, beginBytes)
		if n, err := conn.offer(piece); n != len(piece) || err != nil {
			close(total)
			t.Fatalf("want %d bytes taken, got %d, %v", len(piece), n, err)
		}
		want = append(want, piece...)
	}
	if len(conn.wire.left) == 0 {
		t.Error("want bytes left by a server that does not read, got none")
	}
	total <- len(want) + 1
	if _, err := conn.app.Write([]byte{'.'}); err != nil || len(conn.wire.left) > 0 {
		t.Errorf("want all written, got %v and %d bytes left", err, len(conn.wire.left))
	}
	if read := <-got; !bytes.Equal(read, append(want, '.')) {
		t.Errorf("want the %d bytes in their order, got %d", len(want)+1, len(read))
	}
}
