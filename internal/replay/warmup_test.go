package replay

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

// The warm-up sends the first rows before the plan begins, with the same texts as in the plan. It counts in no series.
func TestWarmup(t *testing.T) {
	for name, c := range map[string]struct {
		plan   schedule.Options
		salt   synth.Salt
		warmup int
		lanes  int
		last   time.Duration // between the first request of the warm-up and its end
	}{
		"open":      {once, synth.SaltLoop, 3, 1, 3 * time.Second},
		"two lanes": {once, synth.SaltNone, 3, 2, 2 * time.Second},
		"align start": {schedule.Options{Repeat: schedule.Repeat{
			Mode: schedule.Loops, Align: schedule.Start,
			Every: time.Minute,
		}}, synth.SaltLoop, 3, 1, 3 * time.Second},
		"comes round":    {once, synth.SaltLoop, 7, 1, 7 * time.Second},
		"closed":         {closedOnce, synth.SaltLoop, 6, 0, 2 * time.Second}, // on the 4 lanes of the plan
		"closed, no end": {closedLoop, synth.SaltLoop, 6, 0, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				warmed := &kept{}
				src := every(5, time.Second)
				b := newBench(t, src, c.plan, &fake{ttft: time.Second}, func(w *Workload) {
					w.Warmup.Requests, w.WarmupLanes, w.Warmed, w.Rows, w.Lanes, w.Salt = c.warmup, c.lanes, []Observer{warmed}, 5, 4, c.salt
				})
				begin := time.Now()
				time.AfterFunc(1500*time.Millisecond, func() {
					want(t, "phase", b.State().Phase, Warming)
					want(t, "expected meanwhile", b.counter(t, "replayd_requests_expected_total", ""), 0.0)
				})
				b.run(t, t.Context(), t.Context())
				want(t, "to warm up", warmed.outcomes(), map[measure.Outcome]int{measure.OK: c.warmup})
				want(t, "in figures", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 5})
				want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), 5.0)
				want(t, "finished", b.counter(t, "replayd_requests_total", ""), 5.0)
				want(t, "latencies", b.counter(t, "replayd_ttft_seconds", ""), 5.0)
				ids := map[string]bool{}
				for _, r := range warmed.all {
					ids[r.ID] = true
					want(t, "phase", r.Phase, measure.Warmup)
				}
				for i := range c.warmup {
					id := fmt.Sprint("w/warmup/", i%5)
					if i >= 5 {
						id += ".1"
					} else {
						want(t, id+" as in the run", string(b.fake.bodies[id]), string(b.fake.bodies[fmt.Sprint("w/0/", i)]))
					}
					want(t, id, ids[id], true)
				}
				for _, r := range b.kept.all {
					want(t, r.ID+" phase", r.Phase, measure.Profiling)
				}
				first := b.kept.all[0].Timeline.Due
				want(t, "the plan begins", first.Sub(begin), c.last+lead)
			})
		})
	}
}

// A stop ends the warm-up, and no request of the plan is sent.
func TestWarmupStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		warmed := &kept{}
		b := newBench(t, every(5, time.Second), once, &fake{ttft: time.Second},
			func(w *Workload) { w.Warmup.Requests, w.Warmed = 100, []Observer{warmed} })
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(2500*time.Millisecond, stop)
		begin := time.Now()
		b.run(t, ctx, t.Context())
		want(t, "to warm up", warmed.outcomes(), map[measure.Outcome]int{measure.OK: 3})
		want(t, "in figures", len(b.kept.all), 0)
		want(t, "ended after", time.Since(begin), 3*time.Second)
	})
}

// A pause interrupts the warm-up, and its requests count against the budget.
func TestWarmupPausesAndPays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, every(5, time.Second), once, &fake{ttft: time.Second}, func(w *Workload) {
			w.Warmup.Requests, w.Budget = 3, limits.Budget{RequestsPerMinute: 7}
		})
		time.AfterFunc(1500*time.Millisecond, func() { b.Pause(true) })
		time.AfterFunc(3*time.Second, func() { want(t, "phase", b.State().Phase, Paused) })
		time.AfterFunc(10*time.Second, func() { b.Pause(false) })
		begin := time.Now()
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 4})
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Budget: 1})
		want(t, "the plan begins", b.kept.all[0].Timeline.Due.Sub(begin), 11*time.Second+lead)
	})
}

// A workload that starts paused begins its warm-up when it is resumed.
func TestWarmupBeginsPaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, every(2, time.Second), once, &fake{ttft: time.Second}, func(w *Workload) { w.Warmup.Requests = 3 })
		b.Pause(true)
		time.AfterFunc(10*time.Second, func() {
			b.fake.mu.Lock()
			defer b.fake.mu.Unlock()
			want(t, "sent", len(b.fake.bodies), 1) // the model list request
			b.Pause(false)
		})
		begin := time.Now()
		b.run(t, t.Context(), t.Context())
		want(t, "the plan begins", b.kept.all[0].Timeline.Due.Sub(begin), 13*time.Second+lead)
	})
}

// A workload that is retired during its warm-up sends no request of the plan.
func TestWarmupRetires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, every(5, time.Second), once, &fake{ttft: time.Second}, func(w *Workload) { w.Warmup.Requests = 100 })
		time.AfterFunc(1500*time.Millisecond, func() { b.Retire(instant(b, time.Now().Add(time.Second))); b.SetDrain(time.Minute) })
		begin := time.Now()
		b.run(t, t.Context(), t.Context())
		want(t, "in figures", len(b.kept.all), 0)
		want(t, "ended after", time.Since(begin), 3*time.Second)
	})
}

// A drain time that a reload sets just before the warm-up applies to the warm-up too.
func TestDrainIsSetBeforeTheWarmup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{ttft: 20 * time.Second}
		f.refuse.Store(true) // so that the warm-up waits for the target
		warmed := &kept{}
		b := newBench(t, rows(3), closedOnce, f, func(w *Workload) { w.Warmup.Requests, w.Lanes, w.Warmed = 3, 1, []Observer{warmed} })
		time.AfterFunc(500*time.Millisecond, func() { b.SetDrain(time.Second) })
		time.AfterFunc(2*time.Second, func() { f.refuse.Store(false) })
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(10*time.Second, stop)
		begin := time.Now()
		b.run(t, ctx, t.Context())
		last := warmed.all[len(warmed.all)-1]
		want(t, "outcome", last.Outcome, measure.Aborted)
		want(t, "cut after", last.Timeline.End.Sub(begin), 11*time.Second)
	})
}

// In a warm-up each turn follows the answer of the turn before, whatever offsets the trace has and however far away the
// start of the plan is.
func TestWarmupOfTimedConversations(t *testing.T) {
	for name, epoch := range map[string]time.Duration{"start": 0, "an epoch to come": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				src := source(trace.Record{Session: "s"}, trace.Record{Session: "s", Offset: time.Minute}, trace.Record{Session: "s", Offset: 2 * time.Minute})
				warmed := &kept{}
				b := newBench(t, src, once, &fake{ttft: time.Second}, func(w *Workload) {
					w.Warmup.Requests, w.Warmed = 3, []Observer{warmed}
					if epoch > 0 {
						w.Epoch = time.Now().Add(epoch).Round(0)
					}
				})
				b.run(t, t.Context(), t.Context())
				want(t, "to warm up", warmed.outcomes(), map[measure.Outcome]int{measure.OK: 3})
				first := b.fake.arrivals["w/warmup/0"]
				for i := range 3 {
					id := fmt.Sprint("w/warmup/", i)
					want(t, id, b.fake.arrivals[id].Sub(first), time.Duration(i)*time.Second)
				}
				want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 3})
			})
		})
	}
}
