package wiretest

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// Readable waits until the kernel has bytes or the end of a TCP connection.
func Readable(t testing.TB, c net.Conn) { t.Helper(); poll(t, c, unix.POLLIN) }

// Closed waits until the peer has closed a TCP connection.
func Closed(t testing.TB, c net.Conn) { t.Helper(); poll(t, c, unix.POLLRDHUP) }

func poll(t testing.TB, c net.Conn, events int16) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: events}}, 120_000)
			if err == nil && n == 1 {
				return
			}
			if err != unix.EINTR {
				t.Errorf("want events %#x within a minute, got %d, %v", events, n, err)
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
