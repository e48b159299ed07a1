package replay

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// The client cancels a share of the requests after a fixed time. The choice depends only on the seed, so every process
// makes the same one. A request that ended before that time keeps its outcome.
func TestCancel(t *testing.T) {
	run := func(seed uint64) map[int]bool {
		cancelled := map[int]bool{}
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, every(40, time.Second), once, &fake{ttft: time.Second, itl: 300 * time.Millisecond}, func(w *Workload) {
				w.Cancel = Cancel{Ratio: 0.25, After: 1200 * time.Millisecond, Seed: seed}
			})
			b.run(t, t.Context(), t.Context())
			for _, r := range b.kept.all {
				switch r.Outcome {
				case measure.Cancelled:
					cancelled[r.Row] = true
					want(t, r.ID+" cancelled after", r.Timeline.Cancel.Sub(r.Timeline.Write), 1200*time.Millisecond)
					want(t, r.ID+" chunks", len(r.Timeline.Chunks), 1)
				case measure.OK:
				default:
					t.Errorf("%s: %s %s", r.ID, r.Outcome, r.Error)
				}
			}
			want(t, "requests", len(b.kept.all), 40)
			want(t, "cancelled", b.counter(t, "replayd_requests_total", "cancelled"), float64(len(cancelled)))
		})
		return cancelled
	}
	first := run(1)
	if len(first) < 4 || len(first) > 17 { // mean 10, standard deviation 2.7
		t.Errorf("want about 10 of 40 cancelled, got %d", len(first))
	}
	want(t, "again", run(1), first)
	if other := run(2); len(other) == len(first) {
		same := 0
		for row := range other {
			if first[row] {
				same++
			}
		}
		if same == len(first) {
			t.Error("want others with another seed")
		}
	}
}

// A request that ends before its cancellation is not cancelled.
func TestCancelTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, every(4, time.Second), once, &fake{ttft: time.Second}, func(w *Workload) {
			w.Cancel = Cancel{Ratio: 1, After: 1001 * time.Millisecond}
		})
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 4})
	})
}

// The ratio holds over loops, passes and rows with any seed, and the choice depends on each of them.
func TestCancelRatio(t *testing.T) {
	due := func(loop, pass int64, row int) *schedule.Due {
		return &schedule.Due{Record: trace.Record{Number: row, Pass: pass}, Loop: schedule.Loop{Number: loop}}
	}
	for _, ratio := range []float64{0, 0.01, 0.2, 0.5, 1} {
		for seed := range uint64(3) {
			n, c := 0, Cancel{Ratio: ratio, Seed: seed}
			for loop := range int64(20) {
				for pass := range int64(10) {
					for row := range 100 {
						if c.cancels(due(loop, pass, row)) {
							n++
						}
					}
				}
			}
			if five := 5 * math.Sqrt(20_000*ratio*(1-ratio)); math.Abs(float64(n)-20_000*ratio) > five {
				t.Errorf("ratio %v, seed %d: want %v ± %.0f of 20,000, got %d", ratio, seed, 20_000*ratio, five, n)
			}
		}
	}
	c, loops, passes := Cancel{Ratio: 0.5}, 0, 0
	for row := range 1000 {
		if c.cancels(due(0, 0, row)) != c.cancels(due(1, 0, row)) {
			loops++
		}
		if c.cancels(due(0, 0, row)) != c.cancels(due(0, 1, row)) {
			passes++
		}
	}
	if loops < 400 || loops > 600 || passes < 400 || passes > 600 {
		t.Errorf("want half of the rows drawn otherwise in another loop or pass, got %d and %d of 1,000", loops, passes)
	}
}

// A session goes on after a cancelled turn, and the guard does not count the cancellation as an error.
func TestCancelledTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := make([]trace.Record, 8)
		for i := range turns {
			turns[i].Session = "s"
		}
		b := newBench(t, source(turns...), closedOnce, &fake{ttft: 10 * time.Second}, func(w *Workload) {
			w.Cancel = Cancel{Ratio: 1, After: time.Second}
			w.Guard = limits.Guard{ErrorRatio: 0.1}
		})
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.Cancelled: 8})
		want(t, "dropped", len(b.kept.dropped), 0)
		first := b.kept.all[0].Timeline.Due
		for i, r := range b.kept.all {
			want(t, r.ID, r.Timeline.Due.Sub(first), time.Duration(i)*time.Second)
		}
	})
}

// Warm-up requests are not cancelled.
func TestCancelNoWarmup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		warmed := &kept{}
		b := newBench(t, every(3, time.Second), once, &fake{ttft: 2 * time.Second}, func(w *Workload) {
			w.Cancel = Cancel{Ratio: 1, After: time.Second}
			w.Warmup.Requests, w.Warmed = 3, []Observer{warmed}
		})
		b.run(t, t.Context(), t.Context())
		want(t, "to warm up", warmed.outcomes(), map[measure.Outcome]int{measure.OK: 3})
		want(t, "in the run", b.kept.outcomes(), map[measure.Outcome]int{measure.Cancelled: 3})
	})
}
