package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/test/outside"
	"replayd/test/wiretest"
)

// A request is cancelled exactly CancelAfter after its write, unless it ends earlier.
func TestCancel(t *testing.T) {
	const after = 500 * time.Millisecond
	stall := Timeouts{FirstToken: time.Minute, Stall: 100 * time.Millisecond}
	for name, c := range map[string]struct {
		timeouts Timeouts
		after    time.Duration
		whole    bool
		serve    func(conn net.Conn)
		outcome  measure.Outcome
		end      time.Duration // from the write to the end of the request
		head     bool
		chunks   int
	}{
		"at once":        {limits, 0, false, func(net.Conn) {}, measure.Cancelled, 0, false, 0},
		"before a head":  {limits, after, false, func(net.Conn) {}, measure.Cancelled, after, false, 0},
		"within a head":  {limits, after, false, func(conn net.Conn) { send(conn, streamHead[:30]) }, measure.Cancelled, after, false, 0},
		"after the head": {limits, after, false, func(conn net.Conn) { send(conn, streamHead) }, measure.Cancelled, after, true, 0},
		"in mid-stream": {limits, after, false, func(conn net.Conn) {
			send(conn, streamHead)
			for range 100 {
				pass(90 * time.Millisecond)
				send(conn, chunked(delta("a")))
			}
		}, measure.Cancelled, after, true, 5},
		"after the finish reason": {limits, after, false, func(conn net.Conn) { send(conn, streamHead+chunked(delta("a")+finish("stop"))) }, measure.Cancelled, after, true, 1},
		// The lane waits for the end of the body, to keep the connection, only until the cancellation time.
		"after [DONE]":          {limits, after, false, func(conn net.Conn) { send(conn, streamHead+chunked(delta("a")+done)) }, measure.OK, after, true, 1},
		"after the end":         {limits, after, false, func(conn net.Conn) { send(conn, streamHead+chunked(delta("a")+done)+bodyEnd) }, measure.OK, 0, true, 1},
		"stalls before":         {stall, after, false, func(conn net.Conn) { send(conn, streamHead+chunked(delta("a"))) }, measure.TimeoutStall, 100 * time.Millisecond, true, 1},
		"without other limits":  {Timeouts{}, after, false, func(conn net.Conn) { send(conn, streamHead+chunked(delta("a"))) }, measure.Cancelled, after, true, 1},
		"total before":          {Timeouts{Total: 300 * time.Millisecond}, after, false, func(net.Conn) {}, measure.TimeoutTotal, 300 * time.Millisecond, false, 0},
		"cut before":            {limits, after, false, func(conn net.Conn) { send(conn, streamHead+chunked(delta("a"))); _ = conn.Close() }, measure.Truncated, 0, true, 1},
		"in one piece":          {limits, after, true, func(conn net.Conn) { send(conn, answered(wholeHello)[:90]) }, measure.Cancelled, after, true, 0},
		"in one piece, at once": {limits, 0, true, func(net.Conn) {}, measure.Cancelled, 0, false, 0},
		"in one piece, ended":   {limits, after, true, func(conn net.Conn) { send(conn, answered(wholeHello)) }, measure.OK, 0, true, 1},
		"an error's body": {limits, after, false, func(conn net.Conn) {
			send(conn, "HTTP/1.1 500 Broken\r\nContent-Length: 10\r\n\r\nabc") // seven bytes are missing
		}, measure.HTTP5xx, after, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t, Target{Options: Options{Timeouts: c.timeouts}})
				var left time.Time
				over(t, client, func(_ int, conn net.Conn) {
					_, _, _ = request(conn)
					c.serve(conn)
					_, _ = conn.Read(make([]byte, 1)) // until the client closes the connection
					left = time.Now()
				})
				l := client.Lane()
				var req measure.Request
				req.Timeline.Whole = c.whole
				l.Do(t.Context(), message(t, client), &req, Hooks{Cancel: true, CancelAfter: c.after})
				tl := &req.Timeline
				if got := tl.End.Sub(tl.Write); req.Outcome != c.outcome || got != c.end || len(tl.Chunks) != c.chunks {
					t.Errorf("want %s after %v with %d chunks, got %s after %v with %d: %s", c.outcome, c.end, c.chunks, req.Outcome, got, len(tl.Chunks), req.Error)
				}
				if tl.Head.IsZero() == c.head {
					t.Errorf("head: want %v, got %v", c.head, tl.Head)
				}
				var cancel time.Time
				if c.outcome == measure.Cancelled {
					cancel = tl.Write.Add(c.after)
					if l.Fresh(time.Now()) || req.Error == "" {
						t.Errorf("want the connection thrown away and a reason, got %q", req.Error)
					}
				}
				if !tl.Cancel.Equal(cancel) {
					t.Errorf("cancelled at %v, want %v", tl.Cancel, cancel)
				}
				client.Close()
				synctest.Wait()
				if c.outcome == measure.Cancelled && c.end > 0 && c.chunks == 0 && !left.Equal(cancel) {
					t.Errorf("the server saw the end at %v, want %v", left, cancel)
				}
			})
		})
	}
}

// The next request of the lane dials a new connection, and the cancellation of its predecessor does not apply to
// it.
func TestCancelThenNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{Options: Options{Timeouts: limits}})
		connections := 0
		over(t, c, func(n int, conn net.Conn) {
			connections++
			_, _, _ = request(conn)
			if n%2 == 1 {
				pass(time.Minute - 1)
				send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
			}
			_, _ = io.Copy(io.Discard, conn)
		})
		l := c.Lane()
		var req measure.Request
		for range 3 {
			l.Do(t.Context(), message(t, c), &req, Hooks{Cancel: true, CancelAfter: time.Second})
			if req.Outcome != measure.Cancelled {
				t.Errorf("want cancelled, got %s: %s", req.Outcome, req.Error)
			}
			do(t, l, &req)
			if req.Outcome != measure.OK || !req.Timeline.Cancel.IsZero() || req.Retried {
				t.Errorf("want ok and no cancellation, got %+v", req)
			}
			c.Renew()
		}
		if connections != 6 {
			t.Errorf("%d connections, want 6: a cancelled one is not used again", connections)
		}
	})
}

// After a retry on a new connection, CancelAfter counts from the write of the retry.
func TestCancelCountsFromTheRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{Options: Options{Timeouts: limits}})
		over(t, c, func(n int, conn net.Conn) {
			_, _, _ = request(conn)
			if n == 0 {
				send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
				_, _, _ = request(conn)
				pass(5 * time.Millisecond)
				_ = conn.Close()
				return
			}
			_, _ = io.Copy(io.Discard, conn)
		})
		l := c.Lane()
		var req measure.Request
		do(t, l, &req)
		m, start := message(t, c), time.Now()
		l.Do(t.Context(), m, &req, Hooks{Again: func() ([]byte, error) { return m, nil }, Cancel: true, CancelAfter: 500 * time.Millisecond})
		if at := req.Timeline.Cancel.Sub(start); req.Outcome != measure.Cancelled || !req.Retried || at != 505*time.Millisecond {
			t.Errorf("want a cancellation after 505ms, got %s after %v, retried %v", req.Outcome, at, req.Retried)
		}
	})
}

// A hard stop gives the outcome aborted, not cancelled.
func TestCancelAborted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{Options: Options{Timeouts: limits}})
		over(t, c, func(_ int, conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
		ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer stop()
		var req measure.Request
		c.Lane().Do(ctx, message(t, c), &req, Hooks{Cancel: true, CancelAfter: 500 * time.Millisecond})
		if req.Outcome != measure.Aborted || !req.Timeline.Cancel.IsZero() {
			t.Errorf("want aborted, got %s at %v", req.Outcome, req.Timeline.Cancel)
		}
	})
}

// A cancellation wakes a read that waits in the kernel, also after Begin, and leaves no goroutine behind. The
// server has received the whole message and sees the connection close.
func TestCancelOverTCP(t *testing.T) {
	ended := make(chan error, 1)
	address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
		if _, _, err := request(conn); err != nil {
			ended <- err
			return
		}
		_, err := conn.Read(make([]byte, 1)) // nothing is sent: what the client left unread would reset the connection
		ended <- err
	})
	l := newClient(t, Target{Options: Options{URL: address, Timeouts: patient}}).Lane()
	defer l.Close()
	before := runtime.NumGoroutine()
	for _, begin := range []bool{false, true} {
		if begin {
			if err := l.client.Warm(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
		}
		var req measure.Request
		m := message(t, l.client)
		if begun := l.Begin(m, &req); begun != begin {
			t.Errorf("begun: want %v, got %v", begin, begun)
		}
		const after = 20 * time.Millisecond
		l.Do(t.Context(), m, &req, Hooks{Cancel: true, CancelAfter: after})
		if tl := req.Timeline; req.Outcome != measure.Cancelled || tl.Cancel.Sub(tl.Write) < after || len(tl.Chunks) != 0 || l.Fresh(time.Now()) {
			t.Errorf("want a cancellation after %v, got %+v", after, req)
		}
		if err := <-ended; !errors.Is(err, io.EOF) {
			t.Errorf("the server: want the end of the connection, got %v", err)
		}
	}
	outside.Until(t, func() error {
		if now := runtime.NumGoroutine(); now > before {
			return fmt.Errorf("%d goroutines, %d before", now, before)
		}
		return nil
	})
}
