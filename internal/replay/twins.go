package replay

import (
	"context"
	"hash/maphash"
	"sync"
	"time"
)

// Twins make two runners of equal plans send each row to their two targets at the same instant: the sides of a comparison. Each side has its own
// lanes, connections and sessions, so one never delays the other.
type Twins struct {
	mu    sync.Mutex
	came  [2]bool
	epoch time.Time     // zero: not known yet
	known chan struct{} // closed when epoch is known
}

// NewTwins returns the bond of two runners.
func NewTwins() *Twins { return &Twins{known: make(chan struct{})} }

// A side is a runner's place among Twins.
type side uint8

const (
	alone side = iota
	firstTwin
	secondTwin
)

// side returns the workload's place.
func (w *Workload) side() side {
	switch {
	case w.Twins == nil:
		return alone
	case w.Second:
		return secondTwin
	}
	return firstTwin
}

// twinWait is how long a side waits for the other before it begins alone. A target has 5 s to answer the first probe.
const twinWait = 15 * time.Second

// meet returns the common epoch of two plans that begin by themselves: the later one of both sides' wishes. A side that comes when the other has begun
// alone joins the plan of that one.
func (t *Twins) meet(ctx context.Context, s side, wish time.Time) (time.Time, error) {
	t.mu.Lock()
	if t.isKnown() {
		defer t.mu.Unlock()
		return t.epoch, nil
	}
	if wish.After(t.epoch) {
		t.epoch = wish
	}
	t.came[s-firstTwin] = true
	if t.came == [2]bool{true, true} {
		close(t.known)
	}
	t.mu.Unlock()
	timer := time.NewTimer(twinWait)
	defer timer.Stop()
	select {
	case <-t.known:
	case <-timer.C:
		t.mu.Lock()
		if !t.isKnown() {
			t.epoch = t.epoch.Add(twinWait)
			close(t.known)
		}
		t.mu.Unlock()
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epoch, nil
}

func (t *Twins) isKnown() bool {
	select {
	case <-t.known:
		return true
	default:
		return false
	}
}

// twinTick is the distance within which two alarms of twins are those of one row. Each side reads the clocks for itself.
const twinTick = 4 * time.Microsecond

var twinSeed = maphash.MakeSeed()

// leads says whether alarm a goes before alarm b. Alarms of the two sides of a comparison at one instant take turns: which goes first follows
// from the instant, and is as good as random. Else the side that is always written first would have an advantage.
func (a *alarm) leads(b *alarm) bool {
	if a.side == alone || b.side == alone || a.side == b.side {
		return a.at.Before(b.at)
	}
	ticks, others := a.at.Sub(a.pacer.made)/twinTick, b.at.Sub(b.pacer.made)/twinTick
	if ticks != others {
		return ticks < others
	}
	secondFirst := maphash.Comparable(twinSeed, int64(ticks))&1 == 1
	return (a.side == secondTwin) == secondFirst
}
