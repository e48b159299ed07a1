package openai

import (
	"bytes"
	"net"
	"testing"
	"testing/synctest"

	"replayd/internal/measure"
	"replayd/test/wiretest"
)

// Do writes the part of a message that Begin could not write, and the answer is the same. The kernel accepts the
// small message in one write, but not the one of 16 MiB.
func TestBegin(t *testing.T) {
	for name, size := range map[string]int{"a small message": 10, "a large message": 16 << 20} {
		t.Run(name, func(t *testing.T) {
			bodies := make(chan int, 3)
			address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
				for {
					_, body, err := request(conn)
					if err != nil {
						return
					}
					bodies <- len(body)
					send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
				}
			})
			l := newClient(t, Target{Options: Options{URL: address, API: Completions}}).Lane()
			defer l.Close()
			m, err := l.client.AppendRequest(nil, Body{Prompt: bytes.Repeat([]byte("a"), size), Stream: true})
			if err != nil {
				t.Fatal(err)
			}
			var req measure.Request
			for i := range 3 {
				begun := l.Begin(m, &req)
				if begun != (i > 0) {
					t.Errorf("request %d: begun: want %v, got %v", i, i > 0, begun)
				}
				if n := len(m) - len(l.present.out.first); begun && (req.Timeline.Write.IsZero() || n == 0) {
					t.Errorf("request %d: %d of %d bytes written at %v", i, n, len(m), req.Timeline.Write)
				}
				write, sent := req.Timeline.Write, 0
				l.Do(t.Context(), m, &req, Hooks{Sent: func() { sent++ }})
				if req.Outcome != measure.OK || sent != 1 || len(req.Timeline.Chunks) != 1 {
					t.Errorf("request %d: %s %s, sent %d times, chunks %v", i, req.Outcome, req.Error, sent, req.Timeline.Chunks)
				}
				if begun && !req.Timeline.Write.Equal(write) {
					t.Errorf("request %d: want the write at %v, got %v", i, write, req.Timeline.Write)
				}
			}
			first := <-bodies
			for range 2 {
				if n := <-bodies; n != first || n < size {
					t.Errorf("the server got %d bytes, then %d, want %d and more", first, n, size)
				}
			}
		})
	}
}

// If the server closes a kept connection without an answer, Do retries once, also after Begin.
func TestBeginOnAClosedConnection(t *testing.T) {
	address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
		if _, _, err := request(conn); err == nil {
			send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
			_, _, _ = request(conn)
		}
	})
	l := newClient(t, Target{Options: Options{URL: address}}).Lane()
	defer l.Close()
	m := message(t, l.client)
	var req measure.Request
	for i := range 2 {
		if begun := l.Begin(m, &req); begun != (i > 0) {
			t.Fatalf("request %d: begun: want %v, got %v", i, i > 0, begun)
		}
		l.Do(t.Context(), m, &req, Hooks{Again: func() ([]byte, error) { return m, nil }})
		if req.Outcome != measure.OK || req.Retried != (i > 0) {
			t.Errorf("request %d: %s %s, retried %v", i, req.Outcome, req.Error, req.Retried)
		}
	}
}

// On a connection without a file descriptor Begin returns false, and Do writes the whole message.
func TestBeginNeedsADescriptor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{})
		over(t, c, func(_ int, conn net.Conn) {
			for {
				if _, _, err := request(conn); err != nil {
					return
				}
				send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
			}
		})
		l := c.Lane()
		defer l.Close()
		var req measure.Request
		for range 2 {
			if l.Begin(message(t, c), &req) {
				t.Error("begun over a pipe")
			}
			do(t, l, &req)
			if req.Outcome != measure.OK {
				t.Error(req.Outcome, req.Error)
			}
		}
	})
}
