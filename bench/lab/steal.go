package lab

import (
	"context"
	"sort"
	"sync"
	"time"
)

// sliceLength is the length of the slices for which steal is known.
const sliceLength = 100 * time.Millisecond

// A Steal is the steal time of this machine's cores, by slices of 100 ms.
type Steal struct {
	read func() time.Duration
	stop context.CancelFunc
	done sync.WaitGroup

	mu     sync.Mutex
	ends   []int64         // of the slices, ns since the Unix epoch
	stolen []time.Duration // in each
	began  int64
	last   time.Duration
	first  time.Duration
}

// WatchSteal starts to watch. read returns the steal time since
// boot, as outside.StealTime does. The caller must call Stop.
func WatchSteal(read func() time.Duration) *Steal {
	ctx, stop := context.WithCancel(context.Background())
	s := &Steal{read: read, stop: stop, began: time.Now().UnixNano()}
	s.first = read()
	s.last = s.first
	s.done.Go(func() {
		tick := time.NewTicker(sliceLength)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.take()
			case <-ctx.Done():
				return
			}
		}
	})
	return s
}

func (s *Steal) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := s.read()
	s.ends = append(s.ends, time.Now().UnixNano())
	s.stolen = append(s.stolen, total-s.last)
	s.last = total
}

// Stop ends the watch and waits for it.
func (s *Steal) Stop() {
	s.stop()
	s.done.Wait()
	s.take()
}

// Total returns the steal time so far, of all cores together.
func (s *Steal) Total() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last - s.first
}

// Share returns the steal time ÷ the time watched, of all cores together: 1 is one core.
func (s *Steal) Share() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ends) == 0 {
		return 0
	}
	return float64(s.last-s.first) / float64(s.ends[len(s.ends)-1]-s.began)
}

// Clean reports whether there was no steal in the slices that [from, to] touches and in the slices next to them: the
// kernel accounts steal at its ticks, a little after it happened. Times are ns since the Unix epoch.
func (s *Steal) Clean(from, to int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := sort.Search(len(s.ends), func(i int) bool { return s.ends[i] >= from })
	for i = max(0, i-1); i < len(s.ends); i++ {
		if s.stolen[i] > 0 {
			return false
		}
		if begin := s.began; i > 0 {
			begin = s.ends[i-1]
			if begin > to {
				return true
			}
		} else if begin > to {
			return true
		}
	}
	return true
}
