package replay

import (
	"context"
	"sync"
	"time"

	"replayd/internal/dispatch"
)

// Sides are what the two runners of a comparison share. The runners have equal plans and send each row to their two
// targets at the same instant. Each has its own lanes, connections and sessions, so one never delays the other.
type Sides struct {
	mu    sync.Mutex
	came  [2]bool       // sides that have said their wish
	epoch time.Time     // the latest wish so far, or the common epoch
	met   bool          // it is the common one
	known chan struct{} // closed when it is
	rows  map[string]*twin
	ended [2][]bothEnded
	news  [2]chan struct{} // capacity 1: ended has something for the side
}

// NewSides returns the shared state of two runners that have not begun.
func NewSides() *Sides {
	return &Sides{
		known: make(chan struct{}), rows: map[string]*twin{},
		news: [2]chan struct{}{make(chan struct{}, 1), make(chan struct{}, 1)},
	}
}

// A twin is a row of a session on both sides, until it has ended on those that have it.
type twin struct {
	has  [2]bool // the side has read the row
	over [2]bool
	rows [2]*dispatch.Row
	at   [2]time.Time // end of the answer; zero: no row comes after it
}

// A bothEnded is a row for which its side has waited.
type bothEnded struct {
	row *dispatch.Row
	at  time.Time
}

// A side is a runner's place in a comparison.
type side uint8

const (
	alone side = iota // the runner is in no comparison
	baseline
	candidate
)

// meetWait is how long a side waits for the other before it begins alone. A target has 5 s to answer the first probe.
const meetWait = 15 * time.Second

// meet returns the common epoch of two plans that begin by themselves: the later one of both sides' wishes. A side that
// comes when the other has begun alone joins the plan of that one.
func (s *Sides) meet(ctx context.Context, of side, wish time.Time) (time.Time, error) {
	s.mu.Lock()
	if s.met {
		defer s.mu.Unlock()
		return s.epoch, nil
	}
	if wish.After(s.epoch) {
		s.epoch = wish
	}
	s.came[of-baseline] = true
	if s.came == [2]bool{true, true} {
		s.met = true
		close(s.known)
	}
	s.mu.Unlock()
	select {
	case <-s.known:
	case <-time.After(meetWait):
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.met { // the other side joins this plan when it comes
		s.met, s.epoch = true, s.epoch.Add(meetWait)
		close(s.known)
	}
	return s.epoch, nil
}
