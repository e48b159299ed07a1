package openai

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

// Each timeout fires exactly at its deadline, and pings do not extend it.
func TestLaneTimeouts(t *testing.T) {
	ping := func(conn net.Conn, n int) {
		for range n {
			pass(5 * time.Second)
			send(conn, chunked(": ping\n\n"))
		}
	}
	for name, c := range map[string]struct {
		timeouts Timeouts
		serve    func(conn net.Conn)
		outcome  measure.Outcome
		after    time.Duration
		chunks   int
	}{
		"never answers": {limits, func(net.Conn) {}, measure.TimeoutFirstToken, 60 * time.Second, 0},
		"one byte a second": {limits, func(conn net.Conn) {
			for _, b := range []byte(streamHead) {
				pass(time.Second)
				send(conn, string(b))
			}
		}, measure.TimeoutFirstToken, 60 * time.Second, 0},
		"only a role": {limits, func(conn net.Conn) {
			send(conn, streamHead+chunked(delta("")))
			ping(conn, 100)
		}, measure.TimeoutFirstToken, 60 * time.Second, 0},
		"stalls": {limits, func(conn net.Conn) {
			send(conn, streamHead)
			pass(50 * time.Second)
			send(conn, chunked(delta("a")))
			pass(20 * time.Second)
			send(conn, chunked(delta("b")))
			ping(conn, 100)
		}, measure.TimeoutStall, 100 * time.Second, 2},
		"stalls after events without content": {limits, func(conn net.Conn) {
			send(conn, streamHead+chunked(delta("a")))
			pass(20 * time.Second)
			send(conn, chunked(delta("")))
		}, measure.TimeoutStall, 50 * time.Second, 1},
		"stalls before the end": {limits, func(conn net.Conn) {
			send(conn, streamHead+chunked(delta("a"))+chunked(finish("stop")))
		}, measure.OK, 30 * time.Second, 1},
		"never stops": {limits, func(conn net.Conn) {
			send(conn, streamHead)
			for range 100 {
				send(conn, chunked(delta("a")))
				pass(9 * time.Second)
			}
		}, measure.TimeoutTotal, 10 * time.Minute, 67},
		"after its end and usage": {limits, func(conn net.Conn) {
			send(conn, streamHead+chunked(delta("a")+finish("stop")+`data: {"choices":[],"usage":{"prompt_tokens":5}}`+"\n\n"))
			pass(900 * time.Millisecond)
			send(conn, chunked(`data: {"choices":[{"delta":{"content":"b"}}],"error":"broken"}`+"\n\n"))
		}, measure.OK, time.Second, 1},
		"total before first token": {Timeouts{FirstToken: time.Minute, Total: time.Second}, func(net.Conn) {}, measure.TimeoutTotal, time.Second, 0},
		"total alone": {Timeouts{Total: time.Second}, func(conn net.Conn) {
			send(conn, streamHead+chunked(delta("a")))
		}, measure.TimeoutTotal, time.Second, 1},
		"none": {Timeouts{}, func(conn net.Conn) {
			send(conn, streamHead)
			pass(24 * time.Hour)
			send(conn, chunked(delta("a")))
			pass(24 * time.Hour)
			send(conn, chunked(done)+bodyEnd)
		}, measure.OK, 48 * time.Hour, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := newClient(t, Target{Options: Options{Timeouts: c.timeouts}})
				over(t, client, func(_ int, conn net.Conn) {
					if _, _, err := request(conn); err != nil {
						t.Error(err)
					}
					c.serve(conn)
				})
				l := client.Lane()
				defer l.Close()
				var req measure.Request
				start := time.Now()
				do(t, l, &req)
				if req.Outcome != c.outcome || time.Since(start) != c.after || len(req.Timeline.Chunks) != c.chunks {
					t.Errorf("want %s after %v with %d chunks, got %s after %v with %d: %s", c.outcome, c.after, c.chunks,
						req.Outcome, time.Since(start), len(req.Timeline.Chunks), req.Error)
				}
				if c.outcome != measure.OK && l.Fresh(time.Now()) {
					t.Error("a connection that was cut is kept")
				}
			})
		})
	}
}

// A timeout also covers the write to a server that does not read.
func TestLaneTimeoutCoversTheWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{Options: Options{Timeouts: limits}})
		over(t, c, func(int, net.Conn) {})
		l := c.Lane()
		defer l.Close()
		var req measure.Request
		start := time.Now()
		do(t, l, &req)
		if req.Outcome != measure.TimeoutFirstToken || time.Since(start) != limits.FirstToken {
			t.Errorf("want timeout_first_token after 60s, got %s after %v", req.Outcome, time.Since(start))
		}
	})
}

func TestLaneTimeoutConnect(t *testing.T) {
	for _, c := range []struct {
		timeouts Timeouts
		outcome  measure.Outcome
		after    time.Duration
	}{
		{limits, measure.TimeoutConnect, 5 * time.Second},
		{Timeouts{Connect: 5 * time.Second, Total: 2 * time.Second}, measure.TimeoutTotal, 2 * time.Second},
		{Timeouts{Total: 3 * time.Second}, measure.TimeoutTotal, 3 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := newClient(t, Target{Options: Options{Timeouts: c.timeouts}})
			client.dial = func(ctx context.Context, _, _ string) (net.Conn, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			l := client.Lane()
			var req measure.Request
			start := time.Now()
			do(t, l, &req)
			if req.Outcome != c.outcome || time.Since(start) != c.after || !req.Timeline.Write.IsZero() {
				t.Errorf("want %s after %v and no write, got %s after %v", c.outcome, c.after, req.Outcome, time.Since(start))
			}
		})
	}
}
