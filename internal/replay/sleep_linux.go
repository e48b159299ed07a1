package replay

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// kernelTimers sleeps in ppoll on an eventfd, so that the kernel's high-resolution timer ends the sleep and a
// write to the eventfd does too.
type kernelTimers struct {
	event int
	fine  bool // the thread's timer slack is set
}

// slice is how long the pacer's thread asks to run at once: the least that Linux grants (__setparam_fair in the kernel's
// kernel/sched/syscalls.c), and a little more than spin.
const slice = 100 * time.Microsecond

// NewSleeper gives the most exact Sleeper of this system. Its Until locks the goroutine to its thread, whose
// timer slack is set to the minimum; the goroutine must end with it, never unlock.
func NewSleeper() (Sleeper, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("pacer: eventfd: %w", err)
	}
	return &kernelTimers{event: fd}, nil
}

// Until implements Sleeper.
func (k *kernelTimers) Until(at time.Time) {
	if !k.fine {
		runtime.LockOSThread()
		// The default slack of 50 µs lets the kernel bundle wake-ups; a refusal only costs exactness.
		_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
		// A thread that asks for less at once is let onto a busy core sooner when it wakes (Linux 6.12; older ones take no
		// notice). It needs no privilege, and has no larger share of the core for it.
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
			// ppoll may be late by a thousandth of its timeout (select_estimate_accuracy in the kernel's fs/select.c):
			// so a long sleep ends a little early and a short one follows.
			ts := unix.NsecToTimespec(int64(left - max(spin, left/256)))
			timeout = &ts
		}
		n, err := unix.Ppoll(fds, timeout, nil)
		if n > 0 {
			var b [8]byte
			_, _ = unix.Read(k.event, b[:]) // only resets the counter
			return
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			// Cannot happen on an open descriptor. The pacer finds nothing due and comes again, but burns no core.
			<-time.After(time.Millisecond)
			return
		}
	}
	for time.Now().Before(at) { // the wait is the purpose
	}
}

// Wake implements Sleeper.
func (k *kernelTimers) Wake() {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], 1)
	_, _ = unix.Write(k.event, b[:]) // full means that a wake is pending already
}

// Close implements Sleeper.
func (k *kernelTimers) Close() error { return unix.Close(k.event) }
