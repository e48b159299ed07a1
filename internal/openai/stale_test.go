package openai

import (
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

// A message that cannot be sent again has what became of its first send, with the reason.
func TestNotSentAgain(t *testing.T) {
	for answer, want := range map[string]measure.Request{
		"": {Outcome: measure.NoAnswer},
		"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n": {Outcome: measure.HTTP4xx, Status: 408},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := newClient(t, Target{Options: Options{Timeouts: limits}})
			over(t, client, func(_ int, conn net.Conn) {
				_, _, _ = request(conn)
				send(conn, answer)
				_ = conn.Close()
			})
			if err := client.Warm(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			l := client.Lane()
			defer l.Close()
			var req measure.Request
			again := func() ([]byte, error) { return nil, errors.New("forbidden") }
			l.Do(t.Context(), message(t, client), &req, Hooks{Again: again})
			said := strings.HasSuffix(string(req.Error), "; not sent again: forbidden")
			if req.Outcome != want.Outcome || req.Status != want.Status || req.Retried || !said {
				t.Errorf("want %s with status %d and the reason, got %s with %d: %s",
					want.Outcome, want.Status, req.Outcome, req.Status, req.Error)
			}
		})
	}
}

// A kept connection that ends is a stale one only at once after the write. What a server has held for longer it may have run: the
// request is lost, with the time for which it was held.
func TestLostRequestIsNotSentAgain(t *testing.T) {
	const timeout408 = "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
	for name, c := range map[string]struct {
		held    time.Duration
		answer  string
		retry   RetryMode
		outcome measure.Outcome
		text    string
		sends   int
	}{
		"at once":               {0, "", "", measure.OK, "", 2},
		"within the window":     {10 * time.Millisecond, "", RetryStale, measure.OK, "", 2},
		"beyond it":             {11 * time.Millisecond, "", RetryStale, measure.NoAnswer, "closed after 11ms, before any byte of an answer: EOF", 1},
		"after seconds":         {6 * time.Second, "", RetryStale, measure.NoAnswer, "closed after 6s", 1},
		"never":                 {0, "", RetryNever, measure.NoAnswer, "closed after 0s", 1},
		"408 at once":           {5 * time.Millisecond, timeout408, RetryStale, measure.OK, "", 2},
		"408 after the window":  {50 * time.Millisecond, timeout408, RetryStale, measure.HTTP4xx, "HTTP 408", 1},
		"408 and never":         {5 * time.Millisecond, timeout408, RetryNever, measure.HTTP4xx, "HTTP 408", 1},
		"a byte at once":        {0, "H", RetryStale, measure.Truncated, "", 1},
		"a status line at once": {0, "HTTP/1.1 200 OK\r\n", RetryStale, measure.Truncated, "", 1},
	} {
		for _, ahead := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", opened ahead"}[ahead], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					client := newClient(t, Target{Options: Options{Timeouts: limits, Retry: c.retry}})
					sends := 0
					over(t, client, func(n int, conn net.Conn) {
						lost := n == 0
						if lost && !ahead {
							_, _, _ = request(conn)
							send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
						}
						if _, _, err := request(conn); err != nil {
							return
						}
						if sends++; lost {
							pass(c.held)
							send(conn, c.answer)
							_ = conn.Close()
							return
						}
						pass(time.Second)
						send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
					})
					l := client.Lane()
					defer l.Close()
					var req measure.Request
					if ahead {
						if err := client.Warm(t.Context(), 1); err != nil {
							t.Fatal(err)
						}
					} else {
						do(t, l, &req)
					}
					began := time.Now()
					do(t, l, &req)
					if req.Outcome != c.outcome || !strings.Contains(string(req.Error), c.text) || sends != c.sends || req.Retried != (sends == 2) {
						t.Errorf("want %s with %q after %d sends, got %s, %q, %d sends, retried %v", c.outcome, c.text, c.sends, req.Outcome, req.Error, sends, req.Retried)
					}
					if waited := time.Since(began); !req.Timeline.Write.Equal(began) || req.Outcome == measure.OK && req.Timeline.Chunks[0] != waited {
						t.Errorf("want all times from the first write, %v before the end, got write at +%v, chunks %v", waited, req.Timeline.Write.Sub(began), req.Timeline.Chunks)
					}
				})
			})
		}
	}
}
