package wire

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// piped returns a connection without kernel timestamps, and its other end.
func piped(t *testing.T) (*Conn, net.Conn) {
	t.Helper()
	near, far := net.Pipe()
	t.Cleanup(func() { _ = near.Close(); _ = far.Close() })
	return NewConn(near, NewClock()), far
}

// A read ends at the deadline. The deadline may move while the read waits, also when another goroutine wakes the
// read.
func TestDeadlineMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, far := piped(t)
		start := time.Now()
		if err := c.Arm(start.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		read := func() (string, time.Duration, error) {
			buffer := make([]byte, 10)
			n, err := c.Read(buffer)
			return string(buffer[:n]), time.Since(start), err
		}
		c.Until = start.Add(3 * time.Second) // the timer of the earlier deadline still fires first
		time.AfterFunc(2*time.Second, func() { send(far, "a") })
		if got, at, err := read(); got != "a" || at != 2*time.Second || err != nil {
			t.Errorf("want what came after 2s, got %q after %v, %v", got, at, err)
		}
		if last := c.Last; last.Kernel || last.Delay != 0 || last.ReadAt().Sub(start) != 2*time.Second || last.Read != 1 {
			t.Errorf("want the time of the first read, got %+v", last)
		}
		var woken atomic.Bool
		c.Wakes = func() bool {
			if !woken.Swap(false) {
				return false
			}
			c.Until = start.Add(5 * time.Second)
			return true
		}
		c.Until = time.Time{}
		time.AfterFunc(2*time.Second, func() { woken.Store(true); c.Wake() })
		if got, at, err := read(); got != "" || at != 5*time.Second || !errors.Is(err, os.ErrDeadlineExceeded) || !errors.Is(c.Err(), os.ErrDeadlineExceeded) {
			t.Errorf("want the deadline of whoever woke it, after 5s, got %q after %v, %v", got, at, err)
		}
		c.Wakes = nil
		if err := c.Arm(time.Time{}); err != nil || c.Err() != nil {
			t.Errorf("want no error since then, got %v, %v", err, c.Err())
		}
		_ = far.Close()
		if _, _, err := read(); !errors.Is(err, io.EOF) || !errors.Is(c.Err(), io.EOF) {
			t.Errorf("want the end, got %v", err)
		}
	})
}

// A write ends at its own deadline. A pipe has no descriptor to check, so Silent returns true.
func TestWriteUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, far := piped(t)
		if c.Stamped() || !c.Silent() {
			t.Error("want a pipe taken to be silent, without stamps")
		}
		got := make(chan string)
		go func() {
			b, _ := io.ReadAll(io.LimitReader(far, 2))
			got <- string(b)
		}()
		if err := c.Write([]byte("a"), nil, []byte("b")); err != nil || <-got != "ab" {
			t.Errorf("want both pieces written: %v", err)
		}
		if c.Left() || c.Flush() != nil {
			t.Error("want nothing left")
		}
		start := time.Now()
		if err := c.SetWriteDeadline(start.Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if err := c.Write([]byte("nobody reads it"), []byte("nor this")); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("want the deadline after 1s, got %v after %v", err, time.Since(start))
		}
	})
}

// The handshake fails if the server does not speak TLS.
func TestStartTLSFails(t *testing.T) {
	_, trusting := listenTLS(t, nil)
	c, far := piped(t)
	go func() {
		_, _ = far.Read(make([]byte, 64<<10))
		send(far, "HTTP/1.1 400 Bad Request\r\n\r\n")
		_, _ = io.Copy(io.Discard, far)
	}()
	if err := c.StartTLS(t.Context(), trusting); err == nil {
		t.Error("want an error, got none")
	}
}
