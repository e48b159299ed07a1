package openai

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

// Before a lane dials, it takes a connection that was opened ahead by Warm: the oldest one that is still fresh.
func TestWarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{Idle: 3 * time.Second})
		dials := 0
		over(t, c, func(_ int, conn net.Conn) {
			for {
				if _, _, err := request(conn); err != nil {
					return
				}
				send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
			}
		})
		dial := c.dial
		var dialling atomic.Bool
		c.dial = func(ctx context.Context, n, a string) (net.Conn, error) {
			pass(time.Millisecond)
			if !dialling.CompareAndSwap(false, true) { // over's dial counts without a lock
				t.Error("this test dials one at a time")
			}
			defer dialling.Store(false)
			dials++
			return dial(ctx, n, a)
		}
		warm := func(n, want int) {
			t.Helper()
			if err := c.Warm(t.Context(), n); err != nil || dials != want {
				t.Fatalf("warm %d: %v after %d dials, want %d", n, err, dials, want)
			}
		}
		warm(0, 0)
		warm(1, 1)
		warm(1, 1)
		warm(2, 2)
		a, b, d := c.Lane(), c.Lane(), c.Lane()
		defer a.Close()
		defer b.Close()
		defer d.Close()
		var req measure.Request
		play := func(l *Lane, connect time.Duration, want int) {
			t.Helper()
			do(t, l, &req)
			if req.Outcome != measure.OK || req.Timeline.Connect != connect || dials != want || req.Retried {
				t.Errorf("got %s, connect %v, %d dials; want ok, %v, %d", req.Outcome, req.Timeline.Connect, dials, connect, want)
			}
		}
		play(a, 0, 2)
		play(a, 0, 2)
		play(b, 0, 2)
		play(d, time.Millisecond, 3) // the pool is empty
		warm(1, 4)
		pass(2 * time.Second)
		play(b, 0, 4) // b's own connection is still fresh
		pass(2 * time.Second)
		play(a, time.Millisecond, 5) // a's own connection and the one in the pool are too old
		warm(1, 6)
		c.Close()
		play(d, time.Millisecond, 7)
		warm(1, 8) // the closed client closes the new connection at once
		if n := c.pool.Fresh(time.Now(), time.Hour); n != 0 {
			t.Errorf("%d connections in the pool of a closed client", n)
		}
	})
}

// Warm stops at the first failure, so that an unreachable target is not dialled 100 times.
func TestWarmFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{})
		var dials atomic.Int64
		c.dial = func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			return nil, errors.New("no route")
		}
		err := c.Warm(t.Context(), 100)
		if err == nil || !strings.Contains(err.Error(), "warm up http://test:8000: no route") || dials.Load() > 16 {
			t.Errorf("got %v after %d dials", err, dials.Load())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := c.Warm(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("want context.Canceled, got %v", err)
		}
	})
}

// The server may have closed a pooled connection. The request is then retried on a new connection.
func TestWarmStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Target{})
		over(t, c, func(n int, conn net.Conn) {
			_, _, _ = request(conn)
			if n == 1 {
				send(conn, streamHead+chunked(delta("a")+done)+bodyEnd)
			}
			_ = conn.Close()
		})
		if err := c.Warm(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		l := c.Lane()
		defer l.Close()
		var req measure.Request
		do(t, l, &req)
		if req.Outcome != measure.OK || !req.Retried {
			t.Errorf("want ok at the second try, got %s, retried %v: %s", req.Outcome, req.Retried, req.Error)
		}
	})
}

// Without a configured timeout, the kernel's connect timeout (ETIMEDOUT) is reported as timeout_connect.
func TestConnectKernelTimeout(t *testing.T) {
	c := newClient(t, Target{})
	c.dial = func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ETIMEDOUT)}
	}
	var req measure.Request
	do(t, c.Lane(), &req)
	if req.Outcome != measure.TimeoutConnect {
		t.Errorf("want timeout_connect, got %s: %s", req.Outcome, req.Error)
	}
}
