package replay

import (
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/limits"
)

// A look at the engine that is older than the last applied look changes nothing. Otherwise a start would apply an old
// "missing metrics" and keep the guard open for the whole ResumeAfter.
func TestGuardGoesByTheLatestLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.say(0, errors.New("not scraped yet"))
		b := newBench(t, every(1, time.Second), once, &fake{}, func(w *Workload) {
			w.Guard, w.Load = limits.Guard{Waiting: 8, ResumeAfter: time.Minute}, e.now
		})
		slow := b.guard.read()
		e.say(0, nil)
		fast := b.guard.read()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.step(dispatch.Event{Kind: dispatch.Poll, Seen: fast}, nil)
		b.step(dispatch.Event{Kind: dispatch.Poll, Seen: slow}, nil)
		want(t, "held back", b.guard.breaker.State(), limits.Closed)
	})
}

// No lock is held while Load is called, because Load may take the runner's own lock, or a lock that a scrape waits for.
func TestLoadMayAskTheRunner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		var asked atomic.Int64
		b = newBench(t, every(20, 100*time.Millisecond), minutes, &fake{ttft: 70 * time.Millisecond}, func(w *Workload) {
			w.Guard = limits.Guard{Waiting: 8}
			w.Load = func() (limits.Load, error) {
				b.State()
				asked.Add(1)
				return limits.Load{}, nil
			}
		})
		b.run(t, until(t, 30*time.Second), t.Context())
		want(t, "sent", len(b.kept.all), 20)
		if n := asked.Load(); n < 40 {
			t.Errorf("asked %d times in 30 s of 20 rows, want 2 times a row at least", n)
		}
	})
}
