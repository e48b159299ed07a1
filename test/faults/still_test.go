//go:build faults

package faults_test

import (
	"context"
	"sync"
	"testing"
	"time"
)

// stills are the times in which this process did not run. The daemon and the proxy did not run then either. On a shared
// machine these can be seconds, and quick requests then run into timeouts.
type stills struct {
	mu  sync.Mutex
	all []span
}

type span struct{ from, to time.Time }

// watchStills watches until the end of the test.
func watchStills(t *testing.T) *stills {
	s := new(stills)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		running.Wait()
	})
	running.Go(func() {
		const every, most = 50 * time.Millisecond, 500 * time.Millisecond
		tick := time.NewTicker(every)
		defer tick.Stop()
		last := time.Now()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
			now := time.Now()
			if now.Sub(last) > most {
				s.mu.Lock()
				s.all = append(s.all, span{last, now})
				s.mu.Unlock()
			}
			last = now
		}
	})
	return s
}

// during reports whether there was a still between two instants.
func (s *stills) during(from, to time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, still := range s.all {
		if still.from.Before(to) && still.to.After(from) {
			return true
		}
	}
	return false
}

func (s *stills) longest() (most time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, still := range s.all {
		most = max(most, still.to.Sub(still.from))
	}
	return most
}
