//go:build linux

package lab

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// OwnCPU returns the CPU time of this process so far.
func OwnCPU() (time.Duration, error) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, os.NewSyscallError("getrusage", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}

// An Account measures the cost of this process from an instant on.
type Account struct {
	began time.Time
	cpu   time.Duration
}

// OpenAccount opens an Account.
func OpenAccount() (Account, error) {
	cpu, err := OwnCPU()
	return Account{began: time.Now(), cpu: cpu}, err
}

// Close returns the cost.
func (a Account) Close(requests, tokens int) (Spent, error) {
	cpu, err := OwnCPU()
	if err != nil {
		return Spent{}, err
	}
	wall := time.Since(a.began)
	_, peak, err := Memory(os.Getpid())
	return Spent{
		Tokens: tokens, Requests: requests, CPU: (cpu - a.cpu).Seconds(), Wall: wall.Seconds(), Peak: peak,
	}, err
}
