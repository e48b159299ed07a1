package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// kernelTimers sleeps in ppoll on an eventfd. The kernel's high-resolution timer, or a write to the eventfd, ends the
// sleep.
type kernelTimers struct {
	event int
	fine  bool // the thread's timer slack is set
}

// slice is the time slice that the pacer's thread requests: the minimum that Linux grants (__setparam_fair in the kernel's
// kernel/sched/syscalls.c), which is a little more than spin.
const slice = 100 * time.Microsecond

// NewSleeper returns the most accurate Sleeper of this system. Until calls runtime.LockOSThread and sets the thread's
// timer slack to the minimum. The goroutine must never unlock the thread: it ends locked, so that the thread ends too.
func NewSleeper() (Sleeper, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("pacer: eventfd: %w", err)
	}
	return &kernelTimers{event: fd}, nil
}

func (k *kernelTimers) Until(at time.Time) {
	if !k.fine {
		runtime.LockOSThread()
		// With the default slack of 50 µs the kernel may coalesce wake-ups. An error only costs accuracy.
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		// The scheduler runs a waking thread with a short time slice sooner on a busy core (Linux 6.12; older kernels
		// ignore it). It needs no privilege, and does not give the thread a larger share of the core.
		if a, err := unix.SchedGetAttr(0, 0); err == nil && a.Policy == unix.SCHED_NORMAL {
			a.Runtime = uint64(slice)
			_ = unix.SchedSetAttr(0, a, 0)
		}
		k.fine = true
	}
	fds := []unix.PollFd{{Fd: int32(k.event), Events: unix.POLLIN}}
	for {
		var timeout *unix.Timespec
		if !at.IsZero() {
			left := time.Until(at)
			if left <= spin {
				break
			}
			// ppoll may be late by 0.1 % of its timeout (select_estimate_accuracy in the kernel's fs/select.c). So a long
			// sleep ends a little early, and a short one follows.
			ts := unix.NsecToTimespec(int64(left - max(spin, left/256)))
			timeout = &ts
		}
		n, err := unix.Ppoll(fds, timeout, nil)
		if n > 0 {
			var b [8]byte
			_, _ = unix.Read(k.event, b[:]) // resets the counter
			return
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			// Cannot happen on an open descriptor. If it does, the pacer finds nothing due and sleeps again: it does not
			// spin.
			<-time.After(time.Millisecond)
			return
		}
	}
	for time.Now().Before(at) { // busy-wait
	}
}

func (k *kernelTimers) Wake() {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	_, _ = unix.Write(k.event, b[:]) // EAGAIN means that a wake is pending already
}

func (k *kernelTimers) Close() error { return unix.Close(k.event) }
