package openai

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/openai/internal/wire"
	"replayd/test/wiretest"
)

// The server may close a kept connection or send data on it before the next request, for instance the 408 of a
// proxy. That data belongs to no request, and the connection is replaced before anything is written.
func TestKeptConnectionHasUnreadBytes(t *testing.T) {
	const answer = streamHead
	for name, news := range map[string]string{
		"its end":             "",
		"a timeout":           "HTTP/1.1 408 Request Time-out\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
		"a whole answer":      answer + chunked(delta("not asked for")+done) + bodyEnd,
		"an end of an answer": "\r\n",
	} {
		for _, secure := range []bool{false, true} {
			for _, begins := range []bool{false, true} {
				t.Run(name+map[bool]string{true: " over TLS"}[secure]+map[bool]string{true: " before Begin"}[begins], func(t *testing.T) {
					requests := make(chan struct{}, 10)
					answered := make(chan struct{})
					readAll := sync.OnceFunc(func() { close(answered) })
					defer readAll()
					first := true
					serve := func(conn net.Conn) {
						for {
							if _, _, err := request(conn); err != nil {
								return
							}
							requests <- struct{}{}
							send(conn, answer+chunked(delta("a")+done)+bodyEnd)
							if !first {
								continue
							}
							first = false
							<-answered // the client has read the whole answer
							if news == "" {
								_ = conn.Close()
								return
							}
							send(conn, news)
						}
					}
					var c *Client
					if secure {
						c = overTLS(t, func(conn *tls.Conn) { serve(conn) })
					} else {
						c = newClient(t, Target{Options: Options{URL: wiretest.Listen(t, "tcp4", serve), API: Completions}})
					}
					l := c.Lane()
					defer l.Close()
					m := message(t, c)
					var req measure.Request
					do(t, l, &req)
					kept := l.left()
					if req.Outcome != measure.OK || kept == nil {
						t.Fatalf("want ok and the connection kept, got %s: %s", req.Outcome, req.Error)
					}
					readAll()
					wiretest.Readable(t, kept.Conn)
					if begins && l.Begin(m, &req) {
						t.Error("begun on a connection that has news")
					}
					l.Do(t.Context(), m, &req, Hooks{Again: func() ([]byte, error) { return m, nil }})
					if req.Outcome != measure.OK || req.Retried || req.Timeline.Connect == 0 || len(requests) != 2 {
						t.Errorf("want ok over a new connection and 2 requests in all, got %s, retried %v, connected in %v, %d requests: %s",
							req.Outcome, req.Retried, req.Timeline.Connect, len(requests), req.Error)
					}
				})
			}
		}
	}
}

// Warmed connections that the server has closed are skipped: Begin skips a few, Do skips all.
func TestWarmedConnectionsHaveNews(t *testing.T) {
	const warmed = beginTries + 2
	for name, c := range map[string]struct {
		secure bool
		ended  int // number of the oldest connections that the server closes
		begun  bool
	}{
		"plain":           {ended: beginTries - 1, begun: true},
		"TLS":             {ended: beginTries - 1, begun: true, secure: true},
		"many have ended": {ended: beginTries},
		"all have ended":  {ended: warmed},
	} {
		t.Run(name, func(t *testing.T) {
			accepted := make(chan net.Conn, warmed)
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, delta("a")+done)
			}))
			// The server may see a close before it has finished its side of the handshake, and would log it.
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			server.Config.ConnState = func(conn net.Conn, state http.ConnState) {
				if state == http.StateNew {
					accepted <- conn
				}
			}
			client := newClient(t, start(server, c.secure))
			defer server.Close()
			if err := client.Warm(t.Context(), warmed); err != nil {
				t.Fatal(err)
			}
			opened := map[string]net.Conn{} // by the client's address
			for range warmed {
				conn := <-accepted
				opened[conn.RemoteAddr().String()] = conn
			}
			pool := &client.pods.Load().all[0].pool
			var open *wire.Conn // the oldest open connection
			for i := range warmed {
				conn := pool.Take(time.Now(), time.Hour, 1)
				if i < c.ended {
					_ = opened[conn.Conn.LocalAddr().String()].Close()
					wiretest.Closed(t, conn.Conn)
				} else if open == nil {
					open = conn
				}
				pool.Add(conn) // it appends, so the loop keeps the order of the pool
			}
			l := client.Lane()
			defer l.Close()
			m := message(t, client)
			var req measure.Request
			for i := range 2 {
				if begun := l.Begin(m, &req); begun != (c.begun || i > 0) {
					t.Errorf("request %d: begun: %v", i, begun)
				}
				l.Do(t.Context(), m, &req, Hooks{})
				dialed := req.Timeline.Connect != 0
				if req.Outcome != measure.OK || req.Retried || dialed != (open == nil && i == 0) {
					t.Errorf("request %d: want ok over a connection that is still open, else a new one, got %s, connected in %v, retried %v: %s",
						i, req.Outcome, req.Timeline.Connect, req.Retried, req.Error)
				}
			}
			var left []*wire.Conn // those that carried a request come last, the first of them at the end
			for conn := pool.Take(time.Now(), time.Hour, 9); conn != nil; conn = pool.Take(time.Now(), time.Hour, 9) {
				left = append(left, conn)
			}
			if want := max(1, warmed-c.ended); len(left) != want || open != nil && left[want-1] != open {
				t.Errorf("want %d connections left in the pool, the oldest that was open among those used, got %d", want, len(left))
			}
		})
	}
}
