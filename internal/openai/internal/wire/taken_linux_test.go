package wire

import (
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"replayd/test/wiretest"
)

// The kernel knows whether the peer has acknowledged a byte of the present message, also after the connection has ended.
func TestTaken(t *testing.T) {
	for name, c := range map[string]struct {
		closes bool // the peer has closed the connection before the message is written
		taken  bool
	}{"stale": {closes: true}, "taken": {taken: true}} {
		t.Run(name, func(t *testing.T) {
			next := make(chan struct{})
			address := wiretest.Listen(t, "tcp4", func(conn net.Conn) {
				hello := make([]byte, 5)
				_, _ = io.ReadFull(conn, hello)
				_, _ = conn.Write(hello)
				if <-next; c.closes {
					return
				}
				_, _ = io.ReadFull(conn, hello)
			})
			raw, err := net.Dial("tcp4", address)
			if err != nil {
				t.Fatal(err)
			}
			conn := NewConn(raw, NewClock())
			defer conn.Cut()
			buf := make([]byte, 99)
			for _, message := range []string{"hello", strings.Repeat("m", 5)} {
				if err := conn.Arm(time.Time{}); err != nil {
					t.Fatal(err)
				}
				if taken, _, known := conn.Taken(); taken || !known {
					t.Errorf("before %q is written: taken %v, known %v", message, taken, known)
				}
				if message != "hello" {
					close(next)
					if c.closes {
						wiretest.Closed(t, raw)
					}
				}
				if err := conn.Write([]byte(message)); err != nil {
					t.Fatal(err)
				}
				n, err := conn.Read(buf)
				if message == "hello" && (n != 5 || err != nil) {
					t.Fatal(n, err)
				}
			}
			_, _ = io.Copy(io.Discard, conn) // until the end or the reset
			taken, trip, known := conn.Taken()
			if taken != c.taken || !known || trip <= 0 {
				t.Errorf("want taken %v, got %v, a round trip of %v, known %v", c.taken, taken, trip, known)
			}
		})
	}
}
