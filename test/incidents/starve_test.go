//go:build real

package incidents_test

import (
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A starvation keeps a process from running for much of each period, like a CPU
// limit that is too low. The periods of a cgroup are shorter. These periods are not
// a multiple of the requests' interval, so each request is due at another place.
type starvation struct{ stop func() }

const (
	starvePeriod  = 170 * time.Millisecond
	starveStopped = 70 * time.Millisecond // of the period: long enough that a whole answer is read at once
)

// startStarvation starts a starvation, which lasts until it is stopped.
func startStarvation(t *testing.T, p *os.Process) *starvation {
	t.Helper()
	end, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = p.Signal(syscall.SIGCONT) }() // also if the process has ended
		period := time.NewTicker(starvePeriod)
		defer period.Stop()
		for {
			if p.Signal(syscall.SIGSTOP) != nil {
				return // the process has ended, which other checks report
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
