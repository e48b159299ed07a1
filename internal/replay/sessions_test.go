package replay

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// pairs are sessions of two requests with a wait of 2 s between them. The trace has them all at its begin.
func pairs(n int) schedule.Source {
	var rows []trace.Record
	for i := range n {
		session := fmt.Sprint("s", i)
		rows = append(rows,
			trace.Record{Number: 2 * i, InputTokens: 10, OutputTokens: 2, Session: session},
			trace.Record{Number: 2*i + 1, InputTokens: 10, OutputTokens: 2, Session: session, Delay: 2 * time.Second})
	}
	return schedule.FromRecords(rows, false)
}

// dues has the due instant of each request, by id, since the first.
func (b *bench) dues() map[string]time.Duration {
	slices.SortFunc(b.kept.all, func(x, y measure.Request) int { return x.Timeline.Due.Compare(y.Timeline.Due) })
	at := map[string]time.Duration{}
	for _, r := range b.kept.all {
		at[r.ID] = r.Timeline.Due.Sub(b.kept.all[0].Timeline.Due)
	}
	return at
}

// A session begins at the instant at which another one has ended. With answers of 1 s a session takes 4 s.
func TestSessionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := schedule.Options{
			Pattern: schedule.Pattern{Arrival: schedule.Sessions, AtOnce: 2},
			Repeat:  schedule.Repeat{Mode: schedule.Once},
		}
		b := newBench(t, pairs(5), o, &fake{ttft: time.Second}, func(w *Workload) { w.Lanes = 8 })
		b.run(t, t.Context(), t.Context())
		want(t, "due", b.dues(), map[string]time.Duration{
			"w/0/0": 0, "w/0/1": 3000 * ms, "w/0/2": 0, "w/0/3": 3000 * ms,
			"w/0/4": 4000 * ms, "w/0/5": 7000 * ms, "w/0/6": 4000 * ms, "w/0/7": 7000 * ms,
			"w/0/8": 8000 * ms, "w/0/9": 11_000 * ms,
		})
		for _, r := range b.kept.all {
			want(t, r.ID+" late", r.Lateness(), time.Duration(0))
		}
	})
}

// With too few lanes the requests of sessions in progress are late, and the wait for a lane is measured.
func TestSessionsWithFewLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := schedule.Options{
			Pattern: schedule.Pattern{Arrival: schedule.Sessions, AtOnce: 3},
			Repeat:  schedule.Repeat{Mode: schedule.Once},
		}
		b := newBench(t, pairs(3), o, &fake{ttft: 3 * time.Second}, func(w *Workload) { w.Lanes = 2 })
		b.run(t, t.Context(), t.Context())
		// The third session begins when a lane is free for it, at 3 s. The lanes are then full until 6 s; the second turns of the first two were
		// due at 5 s.
		want(t, "due", b.dues(), map[string]time.Duration{
			"w/0/0": 0, "w/0/2": 0, "w/0/4": 3000 * ms, "w/0/1": 5000 * ms, "w/0/3": 5000 * ms, "w/0/5": 8000 * ms,
		})
		waits := map[string]time.Duration{}
		for _, r := range b.kept.all {
			if waited := r.LaneWait(); waited > 0 {
				waits[r.ID] = waited
			}
		}
		want(t, "waits for a lane", waits, map[string]time.Duration{"w/0/3": 1000 * ms})
	})
}

// After a failed session its place stays free for a second.
func TestSessionsThatFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := schedule.Options{
			Pattern: schedule.Pattern{Arrival: schedule.Sessions, AtOnce: 1},
			Repeat:  schedule.Repeat{Mode: schedule.Once},
		}
		f := &fake{ttft: time.Second, status: func(string) int { return 500 }}
		b := newBench(t, pairs(3), o, f, nil)
		b.run(t, t.Context(), t.Context())
		at := b.dues()
		second, third := at["w/0/2"]-at["w/0/0"], at["w/0/4"]-at["w/0/2"]
		if second < time.Second || second != third {
			t.Errorf("sessions begin after %v and %v", second, third)
		}
		want(t, "dropped", b.counter(t, "replayd_requests_dropped_total", string(measure.SessionFailed)), 3.0)
	})
}

// A pause puts off the rows that would come due, and is no lateness.
func TestSessionsAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := schedule.Options{
			Pattern: schedule.Pattern{Arrival: schedule.Sessions, AtOnce: 1},
			Repeat:  schedule.Repeat{Mode: schedule.Once},
		}
		b := newBench(t, pairs(1), o, &fake{ttft: time.Second}, nil)
		time.AfterFunc(lead+2*time.Second, func() { b.Pause(true) })
		time.AfterFunc(lead+10*time.Second, func() { b.Pause(false) })
		b.run(t, t.Context(), t.Context())
		want(t, "due", b.dues(), map[string]time.Duration{"w/0/0": 0, "w/0/1": 10_000 * ms})
		for _, r := range b.kept.all {
			want(t, r.ID+" late", r.Lateness(), time.Duration(0))
		}
	})
}

// Sessions that start at a rate go on beyond their loop, and the next loop's sessions start at its instants.
func TestStartsOfSessionsOverLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := schedule.Options{
			Pattern: schedule.Pattern{Arrival: schedule.Constant, RateOf: schedule.Starts, Rate: 1},
			Repeat:  schedule.Repeat{Mode: schedule.Loops, Align: schedule.Start},
		}
		b := newBench(t, pairs(2), o, &fake{ttft: 3 * time.Second}, func(w *Workload) { w.Duration = 4 * time.Second })
		b.run(t, t.Context(), t.Context())
		at := b.dues()
		for id, due := range map[string]time.Duration{"w/0/0": 0, "w/0/2": 1000 * ms, "w/1/0": 2000 * ms} {
			want(t, id, at[id], due)
		}
	})
}
