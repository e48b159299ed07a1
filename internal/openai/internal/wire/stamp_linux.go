package wire

import (
	"io"
	"net"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A stamper reads a TCP connection with recvmsg, which returns the time at which the kernel received the last segment of
// the data. Everything that a read needs is allocated once: a read does not allocate.
type stamper struct {
	raw     syscall.RawConn
	receive func(fd uintptr) bool
	look    func(fd uintptr) // receives without waiting
	ask     func(fd uintptr) // fills info or errno
	info    unix.TCPInfo
	size    uint32 // of info
	header  unix.Msghdr
	vector  unix.Iovec
	control [8]uint64 // one control message of header and timespec, aligned
	waits   bool      // wait for data
	n       int
	errno   syscall.Errno
}

// KeepStamps opens a socket that enables timestamps and does nothing else. Linux timestamps segments only while a socket
// asks for it, and with a short delay after the first such socket. A client whose connections come and go would miss the
// timestamps of first answers. KeepStamps returns nil if the kernel has no timestamps.
func KeepStamps() io.Closer {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	// An error is found again and handled for each connection.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	return os.NewFile(uintptr(fd), "receive stamps")
}

// newStamper returns nil if the connection is not TCP or the kernel has no timestamps.
func newStamper(c net.Conn) *stamper {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	s := &stamper{raw: raw}
	var refused error
	err = raw.Control(func(fd uintptr) {
		refused = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1)
	})
	if err != nil || refused != nil {
		return nil
	}
	s.header.Iov = &s.vector
	s.header.SetIovlen(1)
	s.header.Control = (*byte)(unsafe.Pointer(&s.control))
	s.receive = func(fd uintptr) bool {
		for {
			s.header.SetControllen(int(unsafe.Sizeof(s.control)))
			// The call does not block, so it bypasses Go's scheduler. A call through the scheduler wakes its monitor thread
			// each time that the process has been idle.
			n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&s.header)), 0)
			switch errno {
			case unix.EINTR:
				continue
			case unix.EAGAIN:
				if s.waits {
					return false // wait for the socket and retry
				}
			}
			s.n, s.errno = int(n), errno
			return true
		}
	}
	s.look = func(fd uintptr) { s.receive(fd) }
	s.ask = func(fd uintptr) {
		s.size = uint32(unsafe.Sizeof(s.info))
		_, _, s.errno = unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.IPPROTO_TCP, unix.TCP_INFO,
			uintptr(unsafe.Pointer(&s.info)), uintptr(unsafe.Pointer(&s.size)), 0)
	}
	return s
}

// read is Read with the timestamp, in ns of CLOCK_REALTIME since the Unix epoch; 0 if the kernel gave none.
func (s *stamper) read(p []byte) (n int, stamp int64, err error) {
	if len(p) == 0 {
		return 0, 0, nil
	}
	s.into(p, true)
	return s.received(s.raw.Read(s.receive))
}

// poll is read without waiting, whatever the deadline. If the kernel has no data, the error is EAGAIN.
func (s *stamper) poll(p []byte) (n int, stamp int64, err error) {
	s.into(p, false)
	return s.received(s.raw.Control(s.look))
}

func (s *stamper) into(p []byte, waits bool) {
	s.waits = waits
	s.vector.Base = &p[0]
	s.vector.SetLen(len(p))
}

func (s *stamper) received(err error) (int, int64, error) {
	s.vector.Base = nil // release the caller's buffer
	switch {
	case err != nil:
		return 0, 0, err
	case s.errno == unix.EAGAIN: // from poll
		return 0, 0, unix.EAGAIN
	case s.errno != 0:
		return 0, 0, os.NewSyscallError("recvmsg", s.errno)
	case s.n == 0:
		return 0, 0, io.EOF
	}
	return s.n, s.stamp(), nil
}

// The timestamp is checked if the read was this late, or if the previous timestamp is this old. The check costs about as
// much as a read. The kernel knows the time of the last data in jiffies of 10 ms at most.
const (
	lateRead = time.Millisecond
	silence  = time.Second
	jiffies  = 20 * time.Millisecond // two jiffies
)

// ofData corrects the instant of bytes that were read at now, with others that came at before, and may have a FIN behind them. A FIN that
// arrives between reads is merged into the last segment, which then gets the FIN's timestamp (tcp_try_coalesce in net/ipv4/tcp_input.c). After this
// process was stopped, the last chunk would be late by the server's idle timeout. The kernel keeps the time of the last
// data separately. An error below silence is not corrected.
func (s *stamper) ofData(at, before, now time.Time) time.Time {
	if at.Sub(before) < silence && now.Sub(at) < lateRead {
		return at
	}
	if err := s.raw.Control(s.ask); err != nil || s.errno != 0 {
		return at
	}
	data := now.Add(-time.Duration(s.info.Last_data_recv) * time.Millisecond)
	if at.Sub(data) > jiffies {
		return data
	}
	return at
}

// taken returns how many bytes of this end the peer's kernel has acknowledged, also after the connection has ended, and the
// smoothed round trip.
func (s *stamper) taken() (bytes uint64, trip time.Duration, known bool) {
	if err := s.raw.Control(s.ask); err != nil || s.errno != 0 {
		return 0, 0, false
	}
	// The count includes the SYN (tcp_snd_una_update in net/ipv4/tcp_input.c).
	return max(s.info.Bytes_acked, 1) - 1, time.Duration(s.info.Rtt) * time.Microsecond, true
}

// write passes p to the kernel once and does not wait, whatever the deadline. n is the number of bytes that the kernel
// accepted; 0 if it has no room.
func (s *stamper) write(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	var errno syscall.Errno
	err = s.raw.Control(func(fd uintptr) {
		for {
			var took uintptr
			if took, _, errno = unix.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(&p[0])), uintptr(len(p))); errno != unix.EINTR {
				n = int(took)
				return
			}
		}
	})
	switch {
	case err != nil:
		return 0, err
	case errno == unix.EAGAIN:
		return 0, nil
	case errno != 0:
		return 0, os.NewSyscallError("write", errno)
	}
	return n, nil
}

func (s *stamper) stamp() int64 {
	var ts unix.Timespec
	if int(s.header.Controllen) < unix.CmsgLen(int(unsafe.Sizeof(ts))) {
		return 0
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&s.control))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SCM_TIMESTAMPNS {
		return 0
	}
	ts = *(*unix.Timespec)(unsafe.Add(unsafe.Pointer(&s.control), unix.CmsgLen(0)))
	return ts.Nano()
}
