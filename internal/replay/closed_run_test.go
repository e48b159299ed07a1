package replay

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// Sessions keep all lanes busy, even if the next free session lies beyond the rows that are normally read ahead. Each
// turn follows the turn before at once, and its message is already built.
func TestClosedLoopOfConversations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes, talks, turns = 6, 18, 12
		var all []trace.Record
		for talk := range talks {
			for turn := range turns {
				all = append(all, trace.Record{Session: fmt.Sprint("s", talk), Turn: turn, InputTokens: 50})
			}
		}
		b := newBench(t, source(all...), closedOnce, &fake{ttft: time.Second}, func(w *Workload) { w.Lanes = lanes })
		begin := time.Now()
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: talks * turns})
		want(t, "most in flight", b.fake.most, lanes)
		want(t, "ended after", time.Since(begin), lead+talks/lanes*turns*time.Second)
		at := b.sinceFirst()
		for _, r := range b.kept.all {
			talk := r.Row / turns
			want(t, r.ID+" arrived", at[r.ID], time.Duration(talk/lanes*turns+r.Row%turns)*time.Second)
			want(t, r.ID+" late", r.Lateness(), time.Duration(0))
			want(t, r.ID+" turn", r.Turn, r.Row%turns)
		}
		want(t, "bytes held at the end", b.d.Reserved(), 0)
	})
}

// With History all lanes stay busy too, although no turn can be built ahead.
func TestClosedLoopOfCarriedConversations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []trace.Record
		for talk := range 8 {
			for range 5 {
				all = append(all, trace.Record{Session: fmt.Sprint("s", talk)})
			}
		}
		b := newBench(t, source(all...), closedOnce, &fake{ttft: time.Second}, func(w *Workload) { w.Lanes, w.History = 4, true })
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 40})
		at := b.sinceFirst()
		for _, r := range b.kept.all {
			want(t, r.ID+" arrived", at[r.ID], time.Duration(r.Row/5/4*5+r.Row%5)*time.Second)
		}
	})
}

// With Hold, at most as many sessions are active as there are lanes, and a lane sends nothing during a delay of its
// session.
func TestClosedLoopHoldsLanes(t *testing.T) {
	for hold, last := range map[bool]time.Duration{true: 24 * time.Second, false: 12 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			var all []trace.Record
			for talk := range 4 {
				all = append(all, trace.Record{Session: fmt.Sprint("s", talk)}, trace.Record{Session: fmt.Sprint("s", talk), Delay: 10 * time.Second})
			}
			b := newBench(t, source(all...), closedOnce, &fake{ttft: time.Second}, func(w *Workload) { w.Lanes, w.Hold = 2, hold })
			begin := time.Now()
			b.run(t, t.Context(), t.Context())
			want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 8})
			want(t, "ended after", time.Since(begin), lead+last+map[bool]time.Duration{false: time.Second}[hold])
			third := b.sinceFirst()["w/0/4"]
			want(t, "third conversation", third, map[bool]time.Duration{true: 12 * time.Second, false: time.Second}[hold])
		})
	}
}

// A closed loop waits while it is paused or a guard is open, and then resumes on all lanes. No request is expected or
// dropped meanwhile.
func TestClosedLoopWaits(t *testing.T) {
	for name, c := range map[string]struct {
		hold  func(b *bench, on bool)
		phase Phase
	}{
		"paused":  {func(b *bench, on bool) { b.Pause(on) }, Paused},
		"guarded": {func(*bench, bool) {}, Guarded}, // the load below opens the guard
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				b := newBench(t, rows(5), closedLoop, &fake{ttft: 900 * time.Millisecond}, func(w *Workload) {
					w.Lanes, w.Duration = 3, 20*time.Second
					if c.phase == Guarded {
						w.Guard = limits.Guard{Waiting: 1}
						w.Load = func() (limits.Load, error) {
							if s := time.Since(begin) - lead; s >= 5500*time.Millisecond && s < 10500*time.Millisecond {
								return limits.Load{Waiting: 1}, nil
							}
							return limits.Load{}, nil
						}
					}
				})
				time.AfterFunc(lead+5500*time.Millisecond, func() { c.hold(b, true) })
				time.AfterFunc(lead+8*time.Second, func() {
					want(t, "phase", b.State().Phase, c.phase)
					want(t, "in flight", b.counter(t, "replayd_requests_in_flight", ""), 0.0)
					want(t, "waiting", b.counter(t, "replayd_requests_waiting", ""), 0.0)
				})
				time.AfterFunc(lead+10500*time.Millisecond, func() { c.hold(b, false) })
				b.run(t, t.Context(), t.Context())
				want(t, "dropped", len(b.kept.dropped), 0)
				want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), float64(len(b.kept.all)))
				held := 0
				for _, at := range b.sinceFirst() {
					if at > 5500*time.Millisecond && at < 10500*time.Millisecond {
						held++
					}
				}
				want(t, "sent meanwhile", held, 0)
				if n := len(b.kept.all); n < 3*15 || n > 3*18 { // 0.9 s each in 15 s, and up to 1 s until the guard looks
					t.Errorf("want some 3 × 16 requests, got %d", n)
				}
				want(t, "late", slices.ContainsFunc(b.kept.all, func(r measure.Request) bool { return r.Lateness() != 0 }), false)
			})
		})
	}
}

// Each lane tries an unreachable server once a second, even if connections are refused at once.
func TestClosedLoopWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{ttft: time.Second}
		b := newBench(t, rows(5), closedLoop, f, func(w *Workload) { w.Lanes, w.Duration = 3, 20*time.Second })
		time.AfterFunc(lead+4500*time.Millisecond, func() { f.refuse.Store(true); f.cutAll() })
		time.AfterFunc(lead+10*time.Second, func() { f.refuse.Store(false) })
		b.run(t, t.Context(), t.Context())
		outcomes := b.kept.outcomes()
		if n := outcomes[measure.ConnectFailed]; n < 3*5 || n > 3*6 {
			t.Errorf("want a try a second on 3 lanes in 5.5 s, got %d: %v", n, outcomes)
		}
		if n := outcomes[measure.OK]; n < 3*13 {
			t.Errorf("want all lanes busy before and after, got %d ok", n)
		}
	})
}

// A closed loop has no planned times, so a stopped process misses no rows.
func TestClosedLoopOfAStoppedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, rows(5), closedLoop, &fake{ttft: time.Second}, func(w *Workload) {
			w.Lanes, w.Duration = 1, 60*time.Second
			w.Pacer.sleeper = &sleepy{Timers: NewTimers(), from: time.Now().Add(20 * time.Second), to: time.Now().Add(40 * time.Second)}
		})
		b.run(t, t.Context(), t.Context())
		want(t, "dropped", len(b.kept.dropped), 0)
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: len(b.kept.all)})
	})
}

// A closed loop ignores steps of the wall clock, even if it has an epoch.
func TestClosedLoopIgnoresTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := &wallClock{}
		b := newBench(t, rows(20), closedOnce, &fake{ttft: time.Second}, func(w *Workload) {
			w.Lanes, w.Wall, w.Epoch = 1, clock.now, clock.now().Add(time.Second)
			w.Noted = func(_ slog.Level, text string) { t.Error(text) }
		})
		time.AfterFunc(5500*time.Millisecond, func() { clock.step(time.Hour) })
		begin := time.Now()
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 20})
		want(t, "ended after", time.Since(begin), 21*time.Second)
	})
}

// State and the gauges of a closed loop give the loop and no position.
func TestClosedLoopState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, rows(4), closedLoop, &fake{ttft: time.Second}, func(w *Workload) { w.Lanes = 2 })
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(lead/2, func() { want(t, "phase before", b.State().Phase, Waiting) })
		time.AfterFunc(lead+4500*time.Millisecond, func() {
			s := b.State()
			want(t, "state", fmt.Sprint(s.Phase, s.Loop, s.Position, s.Next, s.Period, s.Skew), "running2 0s 0s 0s 0s")
			want(t, "loop", b.counter(t, "replayd_loop", ""), 2.0)
			want(t, "loops completed", b.counter(t, "replayd_loops_completed_total", ""), 2.0)
			position, skew, _ := b.gauges()
			want(t, "gauges", fmt.Sprint(position, skew), "0s 0s")
			stop()
		})
		b.run(t, ctx, t.Context())
		want(t, "phase after", b.State().Phase, Over)
	})
}

// A reload replaces a closed loop: from the handover on the old runner sends no request. The new runner begins with the
// first row, on the lanes that the old runner has freed.
func TestClosedLoopHandover(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{ttft: time.Second}
		old := newBench(t, rows(50), closedLoop, f, func(w *Workload) { w.Lanes = 2 })
		at := time.Now().Add(lead + 5500*time.Millisecond)
		next := newBench(t, rows(50), closedLoop, &fake{ttft: time.Second}, func(w *Workload) {
			w.Lanes, w.Begin, w.After, w.Rows, w.Warmup.Requests = 2, at, old.Runner, 10, 5
		})
		old.Retire(instant(old, at))
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			old.run(t, t.Context(), t.Context())
		}()
		next.run(t, t.Context(), t.Context())
		<-ended
		want(t, "of the old one", old.kept.outcomes(), map[measure.Outcome]int{measure.OK: 12})
		want(t, "of the new one", next.kept.outcomes(), map[measure.Outcome]int{measure.OK: 10})
		want(t, "dropped by the old one", len(old.kept.dropped), 0)
		want(t, "goes at", next.fake.arrivals["w/0/0"].Sub(at), 500*time.Millisecond) // when the old runner frees a lane
	})
}

// An empty shard of a closed loop ends at once.
func TestClosedLoopOfNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := closedLoop
		o.Shard = schedule.Shard{Index: 1, Of: 2}
		b := newBench(t, rows(1), o, &fake{}, nil)
		b.run(t, t.Context(), t.Context())
		want(t, "requests", len(b.kept.all), 0)
	})
}

// A large byte budget does not load the whole trace into memory. The reader skips rows behind an earlier turn only
// until the rows at hand weigh too much.
func TestRowsAtHandAreBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs rows of more than the bound, half a gigabyte")
	}
	synctest.Test(t, func(t *testing.T) {
		long := strings.Repeat("word ", 1<<20)
		all := make([]trace.Record, 100)
		for i := range all {
			all[i] = trace.Record{Session: "s", Text: long} // all rows share the text, so that the test needs little memory
		}
		most := 0
		f := &fake{ttft: time.Second, forgets: true}
		b := newBench(t, source0(all...), closedOnce, f, func(w *Workload) { w.Ahead = 1 << 20 })
		f.asked = func(string) {
			b.mu.Lock()
			defer b.mu.Unlock()
			most = max(most, b.d.Weight())
		}
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 100})
		if most < dispatch.PoolBytes/2 || most > dispatch.PoolBytes+(6<<20) {
			t.Errorf("want about %d bytes at hand, got %d", dispatch.PoolBytes, most)
		}
		want(t, "at the end", b.d.Weight(), 0)
	})
}
