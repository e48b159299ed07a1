//go:build linux

package main

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A receiver reads sockets with recvmsg, which also gives the
// kernel timestamp of the last segment. It allocates nothing.
type receiver struct {
	header  unix.Msghdr
	vector  unix.Iovec
	control [8]uint64 // one control message of header and timespec, aligned
}

// receive reads without waiting; stamp is in ns since the Unix epoch, or 0 if the kernel gave none.
func (r *receiver) receive(fd int, p []byte) (n int, stamp int64, errno syscall.Errno) {
	r.vector.Base = &p[0]
	r.vector.SetLen(len(p))
	r.header.Iov = &r.vector
	r.header.SetIovlen(1)
	r.header.Control = (*byte)(unsafe.Pointer(&r.control))
	for {
		r.header.SetControllen(int(unsafe.Sizeof(r.control)))
		got, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&r.header)), unix.MSG_DONTWAIT)
		switch errno {
		case unix.EINTR:
			continue
		case 0:
			return int(got), r.stamp(), 0
		}
		return 0, 0, errno
	}
}

func (r *receiver) stamp() int64 {
	var ts unix.Timespec
	if int(r.header.Controllen) < unix.CmsgLen(int(unsafe.Sizeof(ts))) {
		return 0
	}
	h := (*unix.Cmsghdr)(unsafe.Pointer(&r.control))
	if h.Level != unix.SOL_SOCKET || h.Type != unix.SCM_TIMESTAMPNS {
		return 0
	}
	ts = *(*unix.Timespec)(unsafe.Add(unsafe.Pointer(&r.control), unix.CmsgLen(0)))
	return ts.Nano()
}

// send writes without waiting; n is the number of bytes that the kernel took.
func send(fd int, p []byte) (n int, errno syscall.Errno) {
	for {
		got, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)),
			unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
		switch errno {
		case unix.EINTR:
			continue
		case 0:
			return int(got), 0
		case unix.EAGAIN:
			return 0, 0
		}
		return 0, errno
	}
}
