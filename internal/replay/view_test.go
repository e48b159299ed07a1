package replay

import (
	"context"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/schedule"
	"replayd/internal/trace"
	"replayd/test/outside"
)

// While the locks of the workload and of its side in a comparison are held, every scrape and every State returns, with the position of that instant and exact balances.
func TestScrapeWhileTheLockIsHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, source(trace.Record{}, trace.Record{Offset: 20 * time.Second}), once, &fake{ttft: 15 * time.Second}, func(w *Workload) {
			w.Sides, w.Epoch = NewSides(), time.Now().Add(lead)
		})
		held := func(row int) { // 10 s after the row came due
			start := time.Now().Add(-time.Duration(row)*20*time.Second - 10*time.Second)
			turn := b.Turn()
			b.mu.Lock() // in a bubble no time passes while somebody waits for a mutex, so a scrape that waits never ends
			defer b.mu.Unlock()
			b.w.Sides.mu.Lock()
			defer b.w.Sides.mu.Unlock()
			want(t, "position", b.State().Position, min(20*time.Second, time.Since(start)))
			want(t, "phase", b.State().Phase, Running)
			want(t, "position of a scrape", b.counter(t, "replayd_position_seconds", ""), min(20*time.Second, time.Since(start)).Seconds())
			want(t, "in flight", b.counter(t, "replayd_requests_in_flight", ""), 1.0)
			want(t, "ended", b.counter(t, "replayd_requests_total", ""), float64(row))
			want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), float64(row+1))
			want(t, "paused", b.Paused(), false)
			want(t, "cut", b.Cut(), false)
			want(t, "held", turn == 0 && b.Turn() != 0, true)
			b.SetDrain(0)
		}
		for row := range 2 {
			time.AfterFunc(lead+time.Duration(row)*20*time.Second+10*time.Second, func() { held(row) })
		}
		b.run(t, t.Context(), t.Context())
		want(t, "turn of nobody", b.Turn(), uint64(0))
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 2})
	})
}

// A step that changes nothing that pages show allocates nothing for them.
func TestShowOfNoChange(t *testing.T) {
	r := New(Workload{
		Traffic: Traffic{Plan: plan(t), Guard: limits.Guard{Waiting: 1, ResumeAfter: time.Minute}, Sending: Sending{Lanes: 1}},
		Environment: Environment{Count: metrics.NewMeter(prometheus.NewRegistry()).Workload(metrics.Labels{},
			metrics.WorkloadOptions{})},
	})
	now := time.Now()
	r.guard.breaker.Step(now, limits.Load{Waiting: 2}, nil)
	r.show()
	want(t, "guard", r.shown.Load().guard.State(), limits.Open)
	before := r.shown.Load()
	if n := testing.AllocsPerRun(100, r.show); n != 0 {
		t.Errorf("want no allocation, got %v", n)
	}
	want(t, "the same view", r.shown.Load() == before, true)
	r.guard.breaker.Step(now.Add(time.Second), limits.Load{Waiting: 3}, nil)
	r.show()
	want(t, "words", r.shown.Load().guard.Words(now.Add(time.Second)), "waiting 3 ≥ 1")
	want(t, "words before", before.guard.Words(now), "waiting 2 ≥ 1")
}

func plan(t *testing.T) *schedule.Plan {
	t.Helper()
	p, err := schedule.New(source(trace.Record{}),
		schedule.Options{
			Pattern: schedule.Pattern{Speed: 1, Arrival: schedule.Exact},
			Repeat:  schedule.Repeat{Mode: schedule.Once},
		})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A pause drops all waiting rows in one step, which takes seconds for 1,000,000 of them. Once a second it is seen to move, so it is never taken for
// stuck, which is 5 s without a move.
//
// PAUSED_ROWS is the number of rows (default 100,000).
func TestPauseOfManyRowsMoves(t *testing.T) {
	n := 100_000
	if rows, err := strconv.Atoi(os.Getenv("PAUSED_ROWS")); err == nil {
		n = rows
	}
	var runner atomic.Pointer[Runner]
	ended, watched := make(chan struct{}), make(chan int)
	go func() { // outside the bubble, where a step takes time
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		last, still, most := uint64(0), 0, 0
		for {
			select {
			case <-tick.C:
				still++
				turn := uint64(0)
				if r := runner.Load(); r != nil {
					turn = r.Turn()
				}
				if turn == 0 || turn != last {
					last, still = turn, 0
				}
				most = max(most, still)
			case <-ended:
				watched <- most
				return
			}
		}
	}()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, every(n, 0), once, &fake{ttft: time.Hour, forgets: true}, func(w *Workload) { w.Lanes, w.MaxWait = 1, 0 })
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, func() {
			want(t, "waiting", b.counter(t, "replayd_requests_waiting", ""), float64(n-1))
			runner.Store(b.Runner)
			moves := b.mu.moves.Load()
			b.Pause(true)
			want(t, "each dropped row was a move", b.mu.moves.Load()-moves >= uint64(n-1), true)
			runner.Store(nil)
			b.SetDrain(0)
			stop()
		})
		b.run(t, ctx, t.Context())
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Paused: n - 1})
	})
	close(ended)
	if still := <-watched; still > int(outside.Patience/time.Second) {
		t.Errorf("it stood still for %d s", still)
	}
}
