package openai

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/test/wiretest"
)

// large returns a message larger than every socket buffer.
func large(t *testing.T, c *Client) []byte {
	t.Helper()
	m, err := c.AppendRequest(nil, Body{Prompt: bytes.Repeat([]byte(" about"), 1_400_000), Stream: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const early429 = "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: 21\r\n\r\n" + `{"error":"too large"}`

// readSome reads only the beginning of a message.
func readSome(conn net.Conn) {
	_, _ = io.ReadFull(conn, make([]byte, 100))
}

// An answer is read while the message is still being written. Over a pipe each write waits for its read.
func TestAnswerDuringUpload(t *testing.T) {
	for name, c := range map[string]struct {
		serve   func(conn net.Conn)
		hooks   Hooks
		abort   bool
		outcome measure.Outcome
		text    string
		after   time.Duration // from the start to the end
		reused  bool
	}{
		"429, and reads no more": {func(conn net.Conn) {
			readSome(conn)
			pass(time.Second)
			send(conn, early429)
			pass(1) // the answer is read before the rest of the message
			_, _ = io.Copy(io.Discard, conn)
		}, Hooks{}, false, measure.HTTP429, "HTTP 429: too large", time.Second, false},
		"503, and closes": {func(conn net.Conn) {
			readSome(conn)
			send(conn, "HTTP/1.1 503 Busy\r\nConnection: close\r\nContent-Length: 4\r\n\r\nbusy")
			_ = conn.Close()
		}, Hooks{}, false, measure.HTTP5xx, "HTTP 503: busy", 0, false},
		"429 at half of it, then reads on": {func(conn net.Conn) {
			_, _ = io.ReadFull(conn, make([]byte, 4<<20))
			send(conn, early429)
			pass(1)
			_, _ = io.Copy(io.Discard, conn)
		}, Hooks{}, false, measure.HTTP429, "too large", 0, false},
		"a stream begins early": {func(conn net.Conn) {
			readSome(conn)
			send(conn, streamHead+chunked(delta("a")))
			pass(time.Second)
			_, _, _ = requestRest(conn)
			send(conn, chunked(finish("stop")+done)+bodyEnd)
			_, _ = io.Copy(io.Discard, conn)
		}, Hooks{}, false, measure.OK, "", time.Second, true},
		"100, then 200": {func(conn net.Conn) {
			readSome(conn)
			send(conn, "HTTP/1.1 100 Continue\r\n\r\n")
			pass(time.Second)
			_, _, _ = requestRest(conn)
			send(conn, streamHead+chunked(delta("a")+finish("stop")+done)+bodyEnd)
			_, _ = io.Copy(io.Discard, conn)
		}, Hooks{}, false, measure.OK, "", time.Second, true},
		"200 when it is read": {func(conn net.Conn) {
			pass(time.Second)
			readSome(conn)
			_, _, _ = requestRest(conn)
			send(conn, streamHead+chunked(delta("a")+finish("stop")+done)+bodyEnd)
			_, _ = io.Copy(io.Discard, conn)
		}, Hooks{}, false, measure.OK, "", time.Second, true},
		"closes": {func(conn net.Conn) {
			readSome(conn)
			_ = conn.Close()
		}, Hooks{}, false, measure.NoAnswer, "before any byte of an answer", 0, false},
		"neither reads nor answers": {func(conn net.Conn) {
			readSome(conn)
			pass(time.Hour)
		}, Hooks{}, false, measure.TimeoutFirstToken, "", limits.FirstToken, false},
		"is to be cancelled": {func(conn net.Conn) {
			pass(time.Second)
			readSome(conn)
			_, _, _ = requestRest(conn)
			pass(time.Hour)
		}, Hooks{Cancel: true, CancelAfter: 500 * time.Millisecond}, false, measure.Cancelled, "", 1500 * time.Millisecond, false},
		"a hard stop": {func(conn net.Conn) {
			readSome(conn)
			pass(time.Hour)
		}, Hooks{}, true, measure.Aborted, "", time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t, Target{Options: Options{Timeouts: limits}})
				over(t, client, func(_ int, conn net.Conn) { c.serve(conn) })
				l := client.Lane()
				defer l.Close()
				ctx, abort := context.WithCancel(t.Context())
				defer abort()
				if c.abort {
					time.AfterFunc(time.Second, abort)
				}
				sent := 0
				h := c.hooks
				h.Sent = func() { sent++ }
				var req measure.Request
				start := time.Now()
				l.Do(ctx, large(t, client), &req, h)
				if req.Outcome != c.outcome || !strings.Contains(string(req.Error), c.text) || req.Timeline.End.Sub(start) != c.after || sent != 1 {
					t.Errorf("want %s, %q after %v and sent once, got %s, %q after %v, %d times", c.outcome, c.text, c.after, req.Outcome, req.Error, req.Timeline.End.Sub(start), sent)
				}
				if reused := l.Fresh(time.Now()); reused != c.reused {
					t.Errorf("want the connection kept: %v, got %v", c.reused, reused)
				}
			})
		})
	}
}

// requestRest reads the rest of a large message, up to its known last bytes.
func requestRest(conn net.Conn) (n int, last string, err error) {
	buffer := make([]byte, 64<<10)
	for !strings.HasSuffix(last, `"include_usage":true}}`) && err == nil {
		var m int
		m, err = conn.Read(buffer)
		n += m
		last = (last + string(buffer[:m]))[max(0, len(last)+m-100):]
	}
	return n, last, err
}

// The same over TCP and TLS, where closing a connection with unread data resets it.
func TestAnswerDuringUploadOverTCP(t *testing.T) {
	stay := func(conn net.Conn) { // then stops reading, so its receive buffer soon fills up
		readSome(conn)
		send(conn, early429)
	}
	reset := func(conn net.Conn) {
		readSome(conn)
		send(conn, strings.Replace(early429, "\r\n", "\r\nConnection: close\r\n", 1))
		_ = conn.Close()
	}
	read := func(conn net.Conn) {
		_, _, _ = requestRest(conn)
		send(conn, streamHead+chunked(delta("a")+finish("stop")+done)+bodyEnd)
	}
	for name, c := range map[string]struct {
		serve   func(conn net.Conn)
		secure  bool
		begin   bool
		outcome measure.Outcome
	}{
		"429 and stays":           {stay, false, false, measure.HTTP429},
		"429 and stays, begun":    {stay, false, true, measure.HTTP429},
		"429 and stays, TLS":      {stay, true, true, measure.HTTP429},
		"429 and resets":          {reset, false, false, measure.HTTP429},
		"429 and resets, begun":   {reset, false, true, measure.HTTP429},
		"200 when it is read":     {read, false, true, measure.OK},
		"200, over TLS":           {read, true, true, measure.OK},
		"200, over TLS, unbegun":  {read, true, false, measure.OK},
		"200, over TCP, not done": {read, false, false, measure.OK},
	} {
		t.Run(name, func(t *testing.T) {
			target := Target{}
			serve := c.serve
			if c.secure {
				s := httptest.NewUnstartedServer(nil)
				target = start(s, true)
				config := s.TLS.Clone()
				s.Close()
				serve = func(conn net.Conn) { c.serve(tls.Server(conn, config)) }
			}
			ended := make(chan struct{})
			address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
				serve(conn)
				<-ended
			})
			target.URL = address
			if c.secure {
				target.URL = "https://" + address
			}
			client := newClient(t, target)
			l := client.Lane()
			defer l.Close()
			defer close(ended)
			m := large(t, client)
			var req measure.Request
			if c.begin {
				if err := client.Warm(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				l.Begin(m, &req)
			}
			l.Do(t.Context(), m, &req, Hooks{Again: func() ([]byte, error) { return nil, errors.New("asked for the message again") }})
			if req.Outcome != c.outcome {
				t.Errorf("want %s, got %s: %s", c.outcome, req.Outcome, req.Error)
			}
		})
	}
}
