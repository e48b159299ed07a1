package outside

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// reserve binds a free port of loopback until this process ends, and does not listen on it. The kernel never hands out a
// bound port by itself, neither to a bind to port 0 nor to a connection. A server that binds the same number shares the
// port, because both sockets allow that (socket(7), SO_REUSEADDR and SO_REUSEPORT). The options are set after the bind,
// so that a port that another test has reserved is refused.
func reserve() (port int, err error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, os.NewSyscallError("socket", err)
	}
	defer func() {
		if err != nil {
			_ = unix.Close(fd)
		}
	}()
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, os.NewSyscallError("bind", err)
	}
	for _, option := range []int{unix.SO_REUSEADDR, unix.SO_REUSEPORT} {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, option, 1); err != nil {
			return 0, os.NewSyscallError("setsockopt", err)
		}
	}
	bound, err := unix.Getsockname(fd)
	if err != nil {
		return 0, os.NewSyscallError("getsockname", err)
	}
	at, ok := bound.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("want an IPv4 address, got %v", bound)
	}
	return at.Port, nil
}
