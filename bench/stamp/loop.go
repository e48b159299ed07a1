//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A loop is the server. Everything in it belongs to one thread.
type loop struct {
	settings
	book    *book
	words   *wording
	epoll   int
	listen  int
	wake    int // an eventfd: written when the loop is to end
	in      receiver
	buffer  []byte
	conns   map[int]*conn
	begin   queue // answers whose first chunk is due
	proceed queue // answers of which a later chunk is due
}

// A conn is a connection and its current answer.
type conn struct {
	fd      int
	got     []byte // of an incomplete request, or of the next one
	out     []byte // bytes that the kernel had no room for
	entry   *entry // nil: no answer is in progress
	kind    int
	tokens  int
	sent    int   // chunks
	due     int64 // of the next chunk, ns since the Unix epoch
	arrival int64 // the stamp of the last read
	events  uint32
	gone    bool
}

// serveLoop serves until ctx ends.
func serveLoop(ctx context.Context, listener net.Listener, s settings, b *book) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// Waits are exact to the timer slack, which is 50 µs by default.
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("timer slack: %w", err)
	}
	l := &loop{settings: s, book: b, words: newWording(s.chunkBytes), buffer: make([]byte, 256<<10), conns: map[int]*conn{}}
	defer l.close()
	if err := l.open(listener); err != nil {
		return err
	}
	woken := context.AfterFunc(ctx, func() { _, _ = unix.Write(l.wake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) })
	defer woken()
	events := make([]unix.EpollEvent, 256)
	for ctx.Err() == nil {
		n, err := l.wait(events)
		if err != nil {
			return err
		}
		for _, e := range events[:n] {
			switch fd := int(e.Fd); fd {
			case l.listen:
				l.accept()
			case l.wake:
			default:
				l.serve(fd, e.Events)
			}
		}
		l.write()
	}
	return nil
}

func (l *loop) open(listener net.Listener) error {
	f, err := listener.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	defer f.Close()
	if l.listen, err = unix.Dup(int(f.Fd())); err != nil {
		return os.NewSyscallError("dup", err)
	}
	if l.wake, err = unix.Eventfd(0, unix.EFD_NONBLOCK|unix.EFD_CLOEXEC); err != nil {
		return os.NewSyscallError("eventfd", err)
	}
	if l.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return os.NewSyscallError("epoll_create1", err)
	}
	return errors.Join(
		unix.SetNonblock(l.listen, true),
		// Connections inherit the option from the listening socket, so their first segments are stamped too.
		unix.SetsockoptInt(l.listen, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1),
		unix.SetsockoptInt(l.listen, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1),
		l.watch(unix.EPOLL_CTL_ADD, l.listen, unix.EPOLLIN),
		l.watch(unix.EPOLL_CTL_ADD, l.wake, unix.EPOLLIN),
	)
}

func (l *loop) close() {
	for fd := range l.conns {
		_ = unix.Close(fd)
	}
	for _, fd := range []int{l.epoll, l.wake, l.listen} {
		if fd > 0 {
			_ = unix.Close(fd)
		}
	}
}

func (l *loop) watch(op, fd int, events uint32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(l.epoll, op, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}))
}

// wait waits for something to read or for the next due chunk.
func (l *loop) wait(events []unix.EpollEvent) (int, error) {
	var timeout *unix.Timespec
	if due, ok := l.next(); ok {
		ts := unix.NsecToTimespec(max(0, due-time.Now().UnixNano()))
		timeout = &ts
	}
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(l.epoll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)),
		uintptr(unsafe.Pointer(timeout)), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.EINTR:
		return 0, nil
	}
	return 0, os.NewSyscallError("epoll_pwait2", errno)
}

// next returns when the next write is due.
func (l *loop) next() (due int64, ok bool) {
	c := l.first()
	if c == nil {
		return 0, false
	}
	return l.stall.until(max(c.due, time.Now().UnixNano())), true
}

func (l *loop) accept() {
	for {
		fd, _, err := unix.Accept4(l.listen, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			return // no connection waits, or it is gone already
		}
		c := &conn{fd: fd, events: unix.EPOLLIN | unix.EPOLLRDHUP}
		if err := l.watch(unix.EPOLL_CTL_ADD, fd, c.events); err != nil {
			_ = unix.Close(fd)
			continue
		}
		l.conns[fd] = c
	}
}

// serve handles a connection that has something to read or room to write.
func (l *loop) serve(fd int, events uint32) {
	c := l.conns[fd]
	if c == nil {
		return
	}
	if events&unix.EPOLLOUT != 0 && !l.push(c) {
		return
	}
	if events&^unix.EPOLLOUT == 0 {
		return
	}
	n, stamp, errno := l.in.receive(fd, l.buffer)
	switch {
	case errno == syscall.EAGAIN:
		return
	case errno != 0 || n == 0:
		l.drop(c)
		return
	}
	c.got, c.arrival = append(c.got, l.buffer[:n]...), stamp
	l.take(c, time.Now().UnixNano())
}

// maxKept caps the buffer that a connection keeps after a large body.
const maxKept = 64 << 10

// take begins the answers to the requests that have come.
func (l *loop) take(c *conn, now int64) {
	for c.entry == nil && len(c.got) > 0 {
		r, n, err := readRequest(c.got)
		if err != nil {
			l.drop(c)
			return
		}
		if n == 0 {
			return
		}
		if c.got = c.got[:copy(c.got, c.got[n:])]; len(c.got) == 0 && cap(c.got) > maxKept {
			c.got = nil
		}
		if !r.stream {
			c.out = append(c.out, r.whole()...)
			if !l.push(c) {
				return
			}
			continue
		}
		if l.stall.first == 0 {
			l.stall.first = now
		}
		c.kind, c.tokens, c.sent = r.kind, l.tokens, 0
		if r.tokens > 0 {
			c.tokens = min(c.tokens, r.tokens)
		}
		c.entry, c.due = l.book.open(r.id, c.arrival, now, c.tokens), now+int64(l.ttft)
		l.begin.add(c)
	}
}
