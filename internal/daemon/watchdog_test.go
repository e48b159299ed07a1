package daemon

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A held lock is held by one holder after the other, each of whom may move. It is safe for concurrent use.
type heldLock struct {
	turn  atomic.Uint64
	start time.Time
	mu    sync.Mutex
	said  bytes.Buffer // the log
	shown []string     // since the start of the test
}

func (h *heldLock) show(stuck bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shown = append(h.shown, fmt.Sprintf("%v %v", time.Since(h.start), stuck))
}

func (h *heldLock) Write(line []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said.Write(line)
}

// seen returns what was shown and logged so far.
func (h *heldLock) seen() (shown []string, log string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.shown), h.said.String()
}

func watched1(t *testing.T) (d *watchdog, h *heldLock) {
	h = &heldLock{start: time.Now()}
	d = newWatchdog(slog.New(slog.NewTextHandler(h, nil)), (&Options{}).note)
	d.watch(h, &watched{kind: "workload", name: "w", turn: h.turn.Load, show: h.show})
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.run(ctx)
	}()
	t.Cleanup(func() {
		end()
		<-done
	})
	return d, h
}

// A lock that is held from 0.5 s on is a series and one log line at 6 s, and makes /-/healthy fail at 31 s. The next holder ends both.
func TestWatchdogOfAStandstill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, h := watched1(t)
		pass(500 * time.Millisecond)
		h.turn.Store(7)
		unwell := func(at time.Duration, want string) {
			t.Helper()
			pass(time.Until(h.start.Add(at)))
			if got := fmt.Sprint(d.healthy()); got != want {
				t.Errorf("at %v: want %s, got %s", at, want, got)
			}
		}
		unwell(5500*time.Millisecond, "<nil>")
		if shown, log := h.seen(); len(shown) > 0 || log != "" {
			t.Errorf("too soon: %v\n%s", shown, log)
		}
		unwell(6500*time.Millisecond, "<nil>")
		if shown, log := h.seen(); len(shown) != 1 || shown[0] != "6s true" || strings.Count(log, "\n") != 1 {
			t.Errorf("want the series and a log line after 5 s, got %v\n%s", shown, log)
		}
		unwell(30500*time.Millisecond, "<nil>")
		unwell(31500*time.Millisecond, `workload "w" has stood still for 30 s`)
		h.turn.Store(9)
		unwell(32500*time.Millisecond, "<nil>")
		shown, log := h.seen()
		if last := shown[len(shown)-1]; last != "32s false" {
			t.Errorf("want the series end at 32s, got %s", last)
		}
		for _, want := range []string{"workload stands still", "/-/healthy fails", "moves again", "stood_still=30s"} {
			if strings.Count(log, want) != 1 {
				t.Errorf("want %q once in\n%s", want, log)
			}
		}
	})
}

// Well systems that are slow never trip it: an hour of each. docs/decisions/0011 has them.
func TestWatchdogOfSlowSystems(t *testing.T) {
	for name, turn := range map[string]func(at time.Duration, rng *rand.Rand, h *heldLock){
		"a lock that is never free, with steps of up to 4 s": func() func(time.Duration, *rand.Rand, *heldLock) {
			var next time.Duration
			return func(at time.Duration, rng *rand.Rand, h *heldLock) {
				for ; next <= at; next += time.Duration(rng.Int64N(int64(4 * time.Second))) {
					h.turn.Add(2)
				}
			}
		}(),
		"a step of an hour with a row every 100 ms":            func(at time.Duration, _ *rand.Rand, h *heldLock) { h.turn.Store(uint64(at / (100 * time.Millisecond))) },
		"a lock that chance has taken at each look, by others": func(_ time.Duration, rng *rand.Rand, h *heldLock) { h.turn.Store(rng.Uint64() | 1) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newWatchdog(slog.New(slog.DiscardHandler), nil)
			rng := rand.New(rand.NewPCG(1, 2))
			h := &heldLock{}
			h.turn.Store(1)
			most := 0
			w := &watched{kind: "workload", name: "w", turn: h.turn.Load, show: func(bool) {}}
			d.watch(h, w)
			for second := range 3600 {
				turn(time.Duration(second)*time.Second, rng, h)
				d.check(true)
				most = max(most, w.still)
			}
			t.Logf("it seemed to stand still for %d s at most", most)
			if most >= stuckAfter {
				t.Errorf("want less than %d s", stuckAfter)
			}
		})
	}
}

// Seconds in which the watchdog itself did not run do not count: a process that is stopped for a minute, or gets a processor every two seconds only,
// with the lock held, is not stuck.
func TestWatchdogThatDidNotRun(t *testing.T) {
	d := newWatchdog(slog.New(slog.DiscardHandler), nil)
	w := &watched{kind: "workload", name: "w", turn: func() uint64 { return 1 }, show: func(bool) { t.Error("it is not stuck") }}
	d.watch(w, w)
	for range 60 {
		d.check(false)
	}
	d.check(true) // the first look after it goes on
	if w.still > 1 {
		t.Errorf("want at most the last second, got %d", w.still)
	}
}
