package openai

import (
	"context"
	"errors"
	"net"
	"net/netip"
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
		c := newClient(t, Target{Options: Options{Idle: 3 * time.Second}})
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
		var dialing atomic.Bool
		c.dial = func(ctx context.Context, n, a string) (net.Conn, error) {
			pass(time.Millisecond)
			if !dialing.CompareAndSwap(false, true) { // over's dial counts without a lock
				t.Error("this test dials one at a time")
			}
			defer dialing.Store(false)
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
		play(a, 0, 2) // the first that was opened ahead
		play(b, 0, 2) // the second
		play(a, 0, 2) // one that was used
		pass(3 * time.Second)
		play(d, time.Millisecond, 3) // all are too old
		warm(1, 3)
		warm(2, 4)
		pass(2 * time.Second)
		play(b, 0, 4) // the one that was opened ahead
		pass(2 * time.Second)
		play(a, 0, 4) // the same: the other is too old
		warm(2, 5)
		c.Close()
		play(d, time.Millisecond, 6)
		warm(1, 7) // the closed client closes the new connection at once
		if n := c.pods.Load().all[0].pool.Fresh(time.Now(), time.Hour); n != 0 {
			t.Errorf("%d connections in the pool of a closed client", n)
		}
	})
}

// Warm stops at the first failure, so that an unreachable target is not dialed 100 times.
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

// A pod that refuses takes no connections from the others, and they are not spurned for it; nor is any by a call that is cancelled.
func TestWarmWithABadPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		two := func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}, nil
		}
		c := newClient(t, Target{Options: Options{Pods: []string{"dns+pods:8000"}}, Resolve: two})
		if _, err := c.Lookup(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.dial = func(ctx context.Context, _, address string) (net.Conn, error) {
			if address == "10.0.0.1:8000" {
				return nil, errors.New("refused")
			}
			select {
			case <-time.After(time.Second):
				near, _ := net.Pipe()
				return near, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		good := &c.pods.Load().all[1].pool
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if err := c.Warm(ctx, 0, 3); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("cancelled: %v", err)
		}
		err := c.Warm(t.Context(), 40, 40)
		if err == nil || !strings.HasSuffix(err.Error(), "refused") {
			t.Errorf("want the error of the first pod, got %v", err)
		}
		if n := good.Fresh(time.Now(), DefaultIdle); n != 40 {
			t.Errorf("%d connections to the good pod, want 40", n)
		}
		if n := c.pods.Load().all[0].pool.Reserve(40, time.Now(), DefaultIdle); n != 0 {
			t.Errorf("%d connections are to be opened to the bad one within 10 s", n)
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

// What this process lacks of its own is no outcome: nothing was sent. A target that refuses is blamed as before.
func TestOwnShortageIsNotSent(t *testing.T) {
	dial := func(cause error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8000}, Err: os.NewSyscallError("socket", cause)}
	}
	for _, c := range []struct {
		err    error
		unsent string // "": it has an outcome
	}{
		{dial(syscall.EMFILE), "replayd itself lacks descriptors: dial tcp 127.0.0.1:8000: socket: too many open files"},
		{dial(syscall.ENOBUFS), "replayd itself lacks memory: dial tcp 127.0.0.1:8000: socket: no buffer space available"},
		{dial(syscall.EADDRNOTAVAIL), "replayd itself lacks ports: dial tcp 127.0.0.1:8000: socket: cannot assign requested address"},
		{dial(syscall.ECONNREFUSED), ""},
	} {
		client := newClient(t, Target{})
		client.dial = func(context.Context, string, string) (net.Conn, error) { return nil, c.err }
		l := client.Lane()
		var req measure.Request
		do(t, l, &req)
		got := ""
		if err := l.Unsent(); err != nil {
			got = err.Error()
		}
		if got != c.unsent || c.unsent == "" && req.Outcome != measure.ConnectFailed {
			t.Errorf("%v: want %q, got %q, outcome %s", c.err, c.unsent, got, req.Outcome)
		}
		_, err := client.Models(t.Context())
		_, own := errors.AsType[LackError](err)
		if own != (c.unsent != "") || errors.Is(err, ErrNotSent) != own || errors.Is(err, ErrNoAnswer) == own {
			t.Errorf("%v: the list of models: %v", c.err, err)
		}
	}
}

// A write or a read that fails for want of a resource of this process ends the request as aborted: it was sent, at least in part.
func TestOwnShortageAborts(t *testing.T) {
	client := newClient(t, Target{})
	client.dial = func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		t.Cleanup(func() { _ = far.Close() })
		return lacking{near}, nil
	}
	l := client.Lane()
	defer l.Close()
	var req measure.Request
	do(t, l, &req)
	if req.Outcome != measure.Aborted || l.Unsent() != nil || !strings.Contains(string(req.Error), "replayd itself lacks") {
		t.Errorf("want aborted, got %s, %q, %v", req.Outcome, req.Error, l.Unsent())
	}
}

// lacking is a connection whose writes find no memory.
type lacking struct{ net.Conn }

func (c lacking) Write([]byte) (int, error) {
	_ = c.Close()
	return 0, &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.ENOBUFS)}
}
