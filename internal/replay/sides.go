package replay

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// Sides are what the two runners of a comparison share. The runners have equal plans and send each row to their two targets at the same instant. Each
// has its own lanes, connections and sessions, so one never delays the other.
type Sides struct {
	mu    sync.Mutex
	came  [2]bool
	epoch time.Time     // zero: not known yet
	known chan struct{} // closed when epoch is known
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

// A side is a runner's place in a comparison.
type side uint8

const (
	alone side = iota // the runner is in no comparison
	baseline
	candidate
)

// side returns the workload's place.
func (w *Workload) side() side {
	switch {
	case w.Sides == nil:
		return alone
	case w.Candidate:
		return candidate
	}
	return baseline
}

// meetWait is how long a side waits for the other before it begins alone. A target has 5 s to answer the first probe.
const meetWait = 15 * time.Second

// meet returns the common epoch of two plans that begin by themselves: the later one of both sides' wishes. A side that comes when the other has begun
// alone joins the plan of that one.
func (s *Sides) meet(ctx context.Context, of side, wish time.Time) (time.Time, error) {
	s.mu.Lock()
	if s.isKnown() {
		defer s.mu.Unlock()
		return s.epoch, nil
	}
	if wish.After(s.epoch) {
		s.epoch = wish
	}
	s.came[of-baseline] = true
	if s.came == [2]bool{true, true} {
		close(s.known)
	}
	s.mu.Unlock()
	timer := time.NewTimer(meetWait)
	defer timer.Stop()
	select {
	case <-s.known:
	case <-timer.C:
		s.mu.Lock()
		if !s.isKnown() {
			s.epoch = s.epoch.Add(meetWait)
			close(s.known)
		}
		s.mu.Unlock()
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.epoch, nil
}

func (s *Sides) isKnown() bool {
	select {
	case <-s.known:
		return true
	default:
		return false
	}
}

// sameInstant is the distance within which the alarms of two sides are those of one row. Each side reads the clocks for itself.
const sameInstant = 4 * time.Microsecond

var orderSeed = maphash.MakeSeed()

// leads says whether alarm a goes before alarm b. At one instant the two sides of a comparison take turns: a hash of the instant decides which one
// is written first. A side that always came first would have an advantage.
func (a *alarm) leads(b *alarm) bool {
	if a.side == alone || b.side == alone || a.side == b.side {
		return a.at.Before(b.at)
	}
	ticks, others := a.at.Sub(a.pacer.made)/sameInstant, b.at.Sub(b.pacer.made)/sameInstant
	if ticks != others {
		return ticks < others
	}
	candidateFirst := maphash.Comparable(orderSeed, int64(ticks))&1 == 1
	return (a.side == candidate) == candidateFirst
}
