package replay

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

var (
	closedOnce = schedule.Options{
		Pattern: schedule.Pattern{Arrival: schedule.Concurrency},
		Repeat:  schedule.Repeat{Mode: schedule.Once},
	}
	closedLoop = schedule.Options{
		Pattern: schedule.Pattern{Arrival: schedule.Concurrency},
		Repeat:  schedule.Repeat{Mode: schedule.Loops, Align: schedule.Start},
	}
)

// sinceFirst returns the arrival time of each request after the first arrival, by id.
func (b *bench) sinceFirst() map[string]time.Duration {
	at := map[string]time.Duration{}
	first := b.fake.arrivals[b.firstID()]
	for id, t := range b.fake.arrivals {
		if id != "" {
			at[id] = t.Sub(first)
		}
	}
	return at
}

func (b *bench) firstID() string {
	i := slices.IndexFunc(b.fake.order, func(id string) bool { return id != "" })
	return b.fake.order[i]
}

func rows(n int) schedule.Source { return source(make([]trace.Record, n)...) }

// In a closed loop a lane sends its next request when the one before ends, and that is its due time. No request is late
// or waits, and all lanes are busy until no rows are left.
func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, rows(22), closedOnce, &fake{ttft: time.Second}, func(w *Workload) { w.Lanes = 4 })
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 22})
		want(t, "most in flight", b.fake.most, 4)
		at := b.sinceFirst()
		lanes := map[int]int{}
		for _, r := range b.kept.all {
			want(t, r.ID+" arrived", at[r.ID], time.Duration(r.Row/4)*time.Second)
			want(t, r.ID+" late", r.Lateness(), time.Duration(0))
			want(t, r.ID+" due", r.Timeline.Due, r.Timeline.Write)
			want(t, r.ID+" planned", r.Timeline.Planned, r.Timeline.Due)
			want(t, r.ID+" ready", r.Timeline.Ready, r.Timeline.Due)
			want(t, r.ID+" waited", r.Timeline.Waited, false)
			lanes[r.Lane]++
		}
		want(t, "requests by lane, at least", len(lanes), 4)
		for lane, n := range lanes {
			if n < 5 || n > 6 {
				t.Errorf("lane %d: want 5 or 6 requests, got %d", lane, n)
			}
		}
		want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), 22.0)
		want(t, "loops completed", b.counter(t, "replayd_loops_completed_total", ""), 1.0)
		want(t, "bytes held at the end", b.d.Reserved(), 0)
		want(t, "rows held at the end", b.d.Weight(), 0)
	})
}

// The rows repeat until Rows requests are sent. The salt decides whether each repetition has new texts.
func TestClosedLoopComesRound(t *testing.T) {
	for salt, texts := range map[synth.Salt]int{synth.SaltLoop: 10, synth.SaltSession: 10, synth.SaltNone: 3} {
		for name, o := range map[string]schedule.Options{"once": closedOnce, "loop": closedLoop} {
			t.Run(fmt.Sprint(name, " ", salt), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					src := rows(3)
					b := newBench(t, src, o, &fake{ttft: time.Second}, func(w *Workload) { w.Lanes, w.Rows, w.Salt = 2, 10, salt })
					b.run(t, t.Context(), t.Context())
					want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 10})
					at, prompts := b.sinceFirst(), map[string]bool{}
					for i := range 10 {
						id := fmt.Sprintf("w/%d/%d", i/3, i%3)
						want(t, id, at[id], time.Duration(i/2)*time.Second)
						prompts[string(b.fake.bodies[id])] = true
					}
					want(t, "different texts", len(prompts), texts)
				})
			})
		}
	}
}

// No request comes due after the duration. Requests in flight may still end.
func TestClosedLoopForATime(t *testing.T) {
	for duration, n := range map[time.Duration]int{4500 * time.Millisecond: 10, 4 * time.Second: 8} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, rows(3), closedLoop, &fake{ttft: time.Second}, func(w *Workload) { w.Lanes, w.Duration = 2, duration })
			begin := time.Now()
			b.run(t, t.Context(), t.Context())
			want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: n})
			want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), float64(n))
			want(t, "ended after", time.Since(begin), lead+time.Duration(n/2)*time.Second)
		})
	}
}

// A duration bounds an open plan too.
func TestOpenLoopForATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, every(10, time.Second), once, &fake{ttft: 5 * time.Second}, func(w *Workload) { w.Duration = 3 * time.Second })
		begin := time.Now()
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 3})
		want(t, "ended after", time.Since(begin), lead+7*time.Second)
	})
}

// A stop drops no rows of a closed loop: rows that have not come due were never expected.
func TestClosedLoopStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, rows(3), closedLoop, &fake{ttft: time.Second}, func(w *Workload) { w.Lanes = 2 })
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(lead+4500*time.Millisecond, stop)
		begin := time.Now()
		b.run(t, ctx, t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 10})
		want(t, "dropped", len(b.kept.dropped), 0)
		want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), 10.0)
		want(t, "ended after", time.Since(begin), lead+5*time.Second)
	})
}
