//go:build real

package incidents_test

import (
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A starvation keeps a process from running for much of each period, as a CPU limit does that is too low. The periods of a
// cgroup are shorter; these share no beat with the requests, so that each falls due at another place in them.
type starvation struct{ stop func() }

const (
	starvePeriod  = 170 * time.Millisecond
	starveStopped = 70 * time.Millisecond // of it: long enough to read a whole answer at once
)

// startStarvation begins one, which lasts until it is stopped.
func startStarvation(t *testing.T, p *os.Process) *starvation {
	t.Helper()
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = p.Signal(syscall.SIGCONT) }() // also of one that has ended
		period := time.NewTicker(starvePeriod)
		defer period.Stop()
		for {
			if p.Signal(syscall.SIGSTOP) != nil {
				return // it has ended, which others tell
			}
			stopped := time.NewTimer(starveStopped)
			select {
			case <-stopped.C:
			case <-end:
				stopped.Stop()
				return
			}
			_ = p.Signal(syscall.SIGCONT)
			select {
			case <-period.C:
			case <-end:
				return
			}
		}
	}()
	s := &starvation{sync.OnceFunc(func() {
		close(end)
		<-done
	})}
	t.Cleanup(s.stop)
	return s
}
