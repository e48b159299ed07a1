package replay

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
	"replayd/internal/scalar"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

var once = schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Once}}

// In virtual time a request is sent exactly on time, and its latencies are the server's.
func TestExactTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{ttft: 50 * time.Millisecond, itl: 10 * time.Millisecond}
		b := newBench(t, every(20, 7*time.Millisecond), once, f, nil)
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 20})
		slices.SortFunc(b.kept.all, func(x, y measure.Request) int { return x.Row - y.Row })
		start := b.kept.all[0].Timeline.Planned
		for i, r := range b.kept.all {
			if late := r.Lateness(); late != 0 {
				t.Errorf("row %d: late by %v, want 0", i, late)
			}
			if at := f.arrivals[r.ID].Sub(start); at != time.Duration(i)*7*time.Millisecond {
				t.Errorf("row %d: arrived at %v, want %v", i, at, time.Duration(i)*7*time.Millisecond)
			}
			want(t, "chunks", r.Timeline.Chunks, []time.Duration{50 * time.Millisecond, 60 * time.Millisecond, 70 * time.Millisecond})
			want(t, "id", r.ID, fmt.Sprint("w/0/", i))
		}
		want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), 20.0)
		want(t, "loops completed", b.counter(t, "replayd_loops_completed_total", ""), 1.0)
	})
}

// With enough lanes an open loop sends on time, and a stall shows in TTFT. With too few lanes requests are sent late,
// and only the latency from due includes the wait.
func TestCoordinatedOmission(t *testing.T) {
	for _, c := range []struct {
		lanes         int
		ttft, fromDue time.Duration // of the fourth row
	}{
		{lanes: 4, ttft: time.Second, fromDue: time.Second},
		{lanes: 1, ttft: time.Second, fromDue: 4*time.Second - 300*time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{ttft: time.Second}
			b := newBench(t, every(4, 100*time.Millisecond), once, f, func(w *Workload) { w.Lanes = c.lanes })
			b.run(t, t.Context(), t.Context())
			i := slices.IndexFunc(b.kept.all, func(r measure.Request) bool { return r.Row == 3 })
			last := b.kept.all[i]
			ttft, _ := last.TTFT()
			due, _ := last.TTFTFromDue()
			want(t, fmt.Sprint("TTFT with ", c.lanes), ttft, c.ttft)
			want(t, fmt.Sprint("TTFT from due with ", c.lanes), due, c.fromDue)
			want(t, "lane wait", last.LaneWait(), c.fromDue-c.ttft)
			want(t, "most in flight", f.most, c.lanes)
		})
	}
}

func TestOverloadPolicies(t *testing.T) {
	for _, c := range []struct {
		policy  Overload
		maxWait time.Duration
		ok      int
	}{
		{Drop, 0, 1},                       // one lane: all other rows are dropped when due
		{Wait, 1500 * time.Millisecond, 2}, // the second waits 0.9 s, the third would wait 1.8 s
		{Wait, 0, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, every(4, 100*time.Millisecond), once, &fake{ttft: time.Second}, func(w *Workload) {
				w.Lanes, w.Overload, w.MaxWait = 1, c.policy, c.maxWait
			})
			b.run(t, t.Context(), t.Context())
			want(t, fmt.Sprint(c.policy, c.maxWait, " ok"), b.kept.outcomes()[measure.OK], c.ok)
			want(t, fmt.Sprint(c.policy, c.maxWait, " dropped"), b.kept.dropped[measure.Overload], 4-c.ok)
			want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), 4.0)
		})
	}
}

func TestSessionsWaitForTheTurnBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := source(
			trace.Record{Offset: 0, Session: "s"},
			trace.Record{Offset: 100 * time.Millisecond, Session: "s"},
			trace.Record{Offset: 100 * time.Millisecond},
			trace.Record{Offset: 200 * time.Millisecond, Session: "s", Delay: 250 * time.Millisecond},
		)
		f := &fake{ttft: time.Second}
		b := newBench(t, src, once, f, nil)
		b.run(t, t.Context(), t.Context())
		start := b.kept.all[0].Timeline.Planned
		for id, at := range map[string]time.Duration{
			"w/0/0": 0, "w/0/1": time.Second, "w/0/2": 100 * time.Millisecond, "w/0/3": 2*time.Second + 250*time.Millisecond,
		} {
			want(t, id, f.arrivals[id].Sub(start), at)
		}
		for _, r := range b.kept.all {
			want(t, r.ID+" lateness", r.Lateness(), time.Duration(0))
			if r.Row == 3 {
				want(t, "session wait", r.SessionWait(), 2050*time.Millisecond)
			}
		}
	})
}

func TestFailedTurnEndsTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := source(trace.Record{Session: "s"}, trace.Record{Session: "s"}, trace.Record{Offset: time.Second, Session: "s"}, trace.Record{Offset: time.Second})
		b := newBench(t, src, once, &fake{status: func(id string) int {
			if id == "w/0/0" {
				return 500
			}
			return 0
		}}, nil)
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.HTTP5xx: 1, measure.OK: 1})
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.SessionFailed: 2})
	})
}

// A stop drops waiting requests, lets requests in flight end and sends nothing new.
func TestDrain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, every(100, 100*time.Millisecond), once, &fake{ttft: 5 * time.Second}, func(w *Workload) { w.Lanes = 8 })
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(lead+2050*time.Millisecond, stop)
		begin := time.Now()
		b.run(t, ctx, t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 8})
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Shutdown: 13})
		want(t, "ended with the last answer", time.Since(begin), lead+5700*time.Millisecond)
		want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), 21.0)
	})
}

func TestDrainTimeAndHardStop(t *testing.T) {
	for name, hardAfter := range map[string]time.Duration{"drain is over": time.Hour, "second signal": 3 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			b := newBench(t, every(2, 100*time.Millisecond), once, &fake{ttft: 50 * time.Second}, func(w *Workload) { w.Drain = 10 * time.Second })
			ctx, stop := context.WithCancel(t.Context())
			hard, abort := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, stop)
			defer time.AfterFunc(hardAfter, abort).Stop()
			begin := time.Now()
			b.run(t, ctx, hard)
			want(t, name, b.kept.outcomes(), map[measure.Outcome]int{measure.Aborted: 2})
			for _, r := range b.kept.all { // the fake notices much later
				want(t, name, r.Timeline.End.Sub(begin), min(11*time.Second, hardAfter))
			}
		})
	}
}

// While the target does not answer, each request gets an outcome and the replay goes on. Once the target is up,
// requests are ok.
func TestTargetComesLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{}
		f.refuse.Store(true)
		b := newBench(t, every(40, time.Second), once, f, nil)
		time.AfterFunc(lead+20500*time.Millisecond, func() { f.refuse.Store(false) })
		begin := time.Now()
		b.run(t, t.Context(), t.Context())
		first := slices.MinFunc(b.kept.all, func(x, y measure.Request) int { return x.Row - y.Row })
		want(t, "epoch after two failed probes", first.Timeline.Planned.Sub(begin), time.Second+lead)
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.ConnectFailed: 20, measure.OK: 20})
	})
}

// A daemon that starts in mid-loop begins at the current row. Later loops begin at multiples of Every.
func TestWallPhaseJoinsAndLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{ttft: time.Millisecond}
		b := newBench(t, every(6, 10*time.Second),
			schedule.Options{Repeat: schedule.Repeat{
				Mode: schedule.Loops, Align: schedule.WallClock,
				Every: time.Minute,
			}}, f, nil)
		<-time.After(25 * time.Second) // the bubble's clock starts at midnight
		begin := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Minute, stop)
		b.run(t, ctx, t.Context())
		loop := begin.Unix() / 60
		var ids []string
		for _, id := range f.order {
			if id != "" {
				ids = append(ids, id)
			}
		}
		wantIDs := []string{}
		for i := 3; i < 15; i++ { // rows 3 to 5 of the current loop, then rows until the stop after 2 minutes
			wantIDs = append(wantIDs, fmt.Sprintf("w/%d/%d", loop+int64(i/6), i%6))
		}
		want(t, "requests", ids, wantIDs)
		for _, r := range b.kept.all {
			want(t, r.ID, r.Timeline.Planned.Sub(begin.Truncate(time.Minute)), time.Duration(r.Loop-loop)*time.Minute+time.Duration(r.Row)*10*time.Second)
		}
	})
}

// Two shards with the same epoch are disjoint, cover all rows and keep sessions whole.
func TestShards(t *testing.T) {
	rows := make([]trace.Record, 60)
	for i := range rows {
		rows[i].Offset = time.Duration(i) * 10 * time.Millisecond
		if i%3 == 0 {
			rows[i].Session = fmt.Sprint("s", i%9)
		}
	}
	seen, owner := map[int]int{}, map[string]int{}
	for shard := range 2 {
		synctest.Test(t, func(t *testing.T) {
			o := once
			o.Shard = schedule.Shard{Index: scalar.Auto(shard), Of: 2}
			b := newBench(t, source(rows...), o, &fake{}, func(w *Workload) { w.Epoch = time.Now().Add(time.Minute) })
			b.run(t, t.Context(), t.Context())
			for _, r := range b.kept.all {
				seen[r.Row]++
				if r.Session != "" {
					if s, ok := owner[r.Session]; ok && s != shard {
						t.Errorf("session %s is on both shards", r.Session)
					}
					owner[r.Session] = shard
				}
			}
		})
	}
	want(t, "rows", len(seen), 60)
	for row, n := range seen {
		want(t, fmt.Sprint("row ", row), n, 1)
	}
}

func TestLengthLimits(t *testing.T) {
	for policy, c := range map[OverLimit]struct{ ok, filtered, longest int }{Filter: {2, 1, 5}, Clip: {3, 0, 5}, Send: {3, 0, 9}} {
		synctest.Test(t, func(t *testing.T) {
			src := source(trace.Record{InputTokens: 5}, trace.Record{InputTokens: 9}, trace.Record{InputTokens: 1})
			b := newBench(t, src, once, &fake{}, func(w *Workload) { w.MaxInput, w.OverLimit = 5, policy })
			b.run(t, t.Context(), t.Context())
			longest := 0
			for _, r := range b.kept.all {
				longest = max(longest, r.InputTokens)
			}
			want(t, string(policy), len(b.kept.all), c.ok)
			want(t, string(policy)+" longest", longest, c.longest)
			want(t, string(policy)+" filtered", b.counter(t, "replayd_requests_dropped_total", "filtered"), float64(c.filtered))
		})
	}
}

func TestRowsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, every(10, time.Second), once, &fake{}, func(w *Workload) { w.Rows = 4 })
		b.run(t, t.Context(), t.Context())
		want(t, "requests", len(b.kept.all), 4)
	})
}

// A trace larger than the byte budget is sent on time: messages are built as earlier ones are sent.
func TestAheadBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := make([]trace.Record, 30)
		for i := range rows {
			rows[i] = trace.Record{Offset: time.Duration(i) * 100 * time.Millisecond, InputTokens: 2000}
		}
		b := newBench(t, source(rows...), once, &fake{ttft: time.Second, itl: time.Second},
			func(w *Workload) { w.Ahead = 50_000; w.Lanes = 40 })
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 30})
		for _, r := range b.kept.all {
			want(t, r.ID, r.Lateness(), time.Duration(0))
		}
		want(t, "bytes held at the end", b.d.Reserved(), 0)
	})
}

// A turn is sent when its delay is over, even if the lane of the turn before has gone on with another row.
func TestDelayWhileTheLaneGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		src := source(
			trace.Record{Session: "s"}, trace.Record{Session: "s", Delay: 1500 * time.Millisecond},
			trace.Record{Offset: 100 * time.Millisecond}, trace.Record{Offset: 100 * time.Millisecond}, // the second waits for a lane
			trace.Record{Offset: time.Minute},
		)
		b := newBench(t, src, once, &fake{ttft: time.Second}, func(w *Workload) { w.Lanes = 2 })
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 5})
		want(t, "missed", len(b.kept.dropped), 0)
		for _, r := range b.kept.all {
			if r.Row == 1 {
				want(t, "lateness", r.Lateness(), time.Duration(0))
			}
		}
	})
}
