//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"replayd/bench/lab"
)

// A loop is the client. Everything in it belongs to one thread.
type loop struct {
	plan   lab.Plan
	head   []byte // of a request, up to its id
	body   []byte
	epoll  int
	conns  map[int]*conn
	free   []*conn
	events []unix.EpollEvent
	buffer []byte
	start  time.Time

	header  unix.Msghdr
	vector  unix.Iovec
	control [8]uint64 // one control message of header and timespec, aligned
	stamp   int64     // of the last read

	sent, ended, tokens int
	seen                []lab.Seen // nil: not recorded
}

// A conn is a connection and its current answer.
type conn struct {
	fd       int
	request  int
	lines    int    // that begin with data:
	rest     []byte // of an incomplete line
	out      []byte // rest of a request that the kernel had no room for
	watching uint32
}

// open opens the connections.
func open(plan lab.Plan) (*loop, error) {
	u, err := url.Parse(plan.URL)
	if err != nil {
		return nil, err
	}
	if u.Scheme != "http" {
		return nil, fmt.Errorf("--url: want http, got %q", plan.URL)
	}
	to, err := net.ResolveTCPAddr("tcp4", u.Host)
	if err != nil {
		return nil, err
	}
	l := &loop{plan: plan, conns: map[int]*conn{}, events: make([]unix.EpollEvent, 256), buffer: make([]byte, 256<<10)}
	l.body = []byte(plan.Body())
	l.head = fmt.Appendf(nil, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nX-Request-Id: floor/0/", u.Host, len(l.body))
	if plan.Out != "" {
		l.seen = make([]lab.Seen, plan.Requests)
		l.vector.Base = &l.buffer[0]
		l.vector.SetLen(len(l.buffer))
		l.header.Iov = &l.vector
		l.header.SetIovlen(1)
		l.header.Control = (*byte)(unsafe.Pointer(&l.control))
	}
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	address := &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}
	for range plan.Streams {
		if err := l.connect(address); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

func (l *loop) connect(to unix.Sockaddr) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	c := &conn{fd: fd}
	l.conns[fd] = c
	if err := unix.Connect(fd, to); err != nil {
		return os.NewSyscallError("connect", err)
	}
	err = errors.Join(unix.SetNonblock(fd, true), unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
	if l.seen != nil {
		err = errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1))
	}
	if err != nil {
		return err
	}
	l.free = append(l.free, c)
	return l.watch(c, unix.EPOLL_CTL_ADD, unix.EPOLLIN)
}

func (l *loop) watch(c *conn, op int, events uint32) error {
	c.watching = events
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epoll, op, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)}))
}

func (l *loop) close() {
	for fd := range l.conns {
		_ = unix.Close(fd)
	}
	_ = unix.Close(l.epoll)
}

func (l *loop) due() time.Time { return l.start.Add(time.Duration(l.sent) * l.plan.Spacing) }

// send sends the requests that are due, while connections are free.
func (l *loop) send() error {
	for l.sent < l.plan.Requests && len(l.free) > 0 && !time.Now().Before(l.due()) {
		c := l.free[len(l.free)-1]
		l.free = l.free[:len(l.free)-1]
		c.request, c.lines = l.sent, 0
		c.out = strconv.AppendInt(append(c.out[:0], l.head...), int64(l.sent), 10)
		c.out = append(append(c.out, "\r\n\r\n"...), l.body...)
		if l.seen != nil {
			l.seen[l.sent] = lab.Seen{ID: "floor/0/" + strconv.Itoa(l.sent), Start: time.Now().UnixNano(), Chunks: make([]int64, 0, l.plan.Tokens)}
		}
		l.sent++
		if err := l.push(c); err != nil {
			return err
		}
	}
	return nil
}

// push writes the rest of a request.
func (l *loop) push(c *conn) error {
	for len(c.out) > 0 {
		n, _, errno := unix.RawSyscall(unix.SYS_WRITE, uintptr(c.fd), uintptr(unsafe.Pointer(&c.out[0])), uintptr(len(c.out)))
		if errno == unix.EAGAIN {
			break
		}
		if errno != 0 && errno != unix.EINTR {
			return os.NewSyscallError("write", errno)
		}
		if errno == 0 {
			c.out = c.out[:copy(c.out, c.out[n:])]
		}
	}
	events := uint32(unix.EPOLLIN)
	if len(c.out) > 0 {
		events |= unix.EPOLLOUT
	}
	if events == c.watching {
		return nil
	}
	return l.watch(c, unix.EPOLL_CTL_MOD, events)
}

// receive waits for answers or until the next request is due, and reads each ready socket once.
func (l *loop) receive() error {
	var timeout *unix.Timespec
	if l.sent < l.plan.Requests && len(l.free) > 0 {
		ts := unix.NsecToTimespec(int64(max(0, time.Until(l.due()))))
		timeout = &ts
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.epoll), uintptr(unsafe.Pointer(&l.events[0])), uintptr(len(l.events)),
		uintptr(unsafe.Pointer(timeout)), 0, 0)
	if errno == unix.EINTR {
		return nil
	}
	if errno != 0 {
		return os.NewSyscallError("epoll_pwait2", errno)
	}
	for _, e := range l.events[:n] {
		c := l.conns[int(e.Fd)]
		if e.Events&unix.EPOLLOUT != 0 {
			if err := l.push(c); err != nil {
				return err
			}
		}
		if e.Events&^unix.EPOLLOUT != 0 {
			if err := l.read(c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *loop) read(c *conn) error {
	n, errno := l.take(c.fd)
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return nil
	case errno != 0:
		return os.NewSyscallError("read", errno)
	case n == 0:
		return fmt.Errorf("request %d: the server closed the connection", c.request)
	}
	return l.scan(c, l.buffer[:n])
}

// take reads once. If times are wanted, it also takes the kernel timestamp of the last segment, as replayd does.
func (l *loop) take(fd int) (n uintptr, errno syscall.Errno) {
	if l.seen == nil {
		n, _, errno = unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&l.buffer[0])), uintptr(len(l.buffer)))
		return n, errno
	}
	l.header.SetControllen(int(unsafe.Sizeof(l.control)))
	n, _, errno = unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&l.header)), 0)
	l.stamp = time.Now().UnixNano()
	var ts unix.Timespec
	h := (*unix.Cmsghdr)(unsafe.Pointer(&l.control))
	if errno == 0 && int(l.header.Controllen) >= unix.CmsgLen(int(unsafe.Sizeof(ts))) && h.Type == unix.SCM_TIMESTAMPNS {
		ts = *(*unix.Timespec)(unsafe.Add(unsafe.Pointer(&l.control), unix.CmsgLen(0)))
		l.stamp = ts.Nano()
	}
	return n, errno
}

// scan finds the ends of lines. The first data lines have content. The empty last chunk of the coding ends the answer.
func (l *loop) scan(c *conn, b []byte) error {
	if len(c.rest) > 0 {
		c.rest = append(c.rest, b...)
		b = c.rest
	}
	for {
		end := bytes.IndexByte(b, '\n')
		if end < 0 {
			break
		}
		switch line := b[:end]; {
		case len(line) > 5 && string(line[:5]) == "data:":
			if c.lines++; c.lines <= l.plan.Tokens {
				l.tokens++
				if l.seen != nil {
					l.seen[c.request].Chunks = append(l.seen[c.request].Chunks, l.stamp)
				}
			}
		case len(line) == 2 && line[0] == '0':
			if c.lines != l.plan.Tokens+lab.Tail {
				return fmt.Errorf("request %d: want %d data lines, got %d", c.request, l.plan.Tokens+lab.Tail, c.lines)
			}
			l.ended++
			l.free = append(l.free, c)
		}
		b = b[end+1:]
	}
	c.rest = append(c.rest[:0], b...)
	return nil
}
