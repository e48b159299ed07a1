package live

import (
	"testing"
	"time"

	"replayd/internal/measure"
)

func TestJudge(t *testing.T) {
	counts := func(ok, failed, good int64) measure.Ledger {
		return measure.Ledger{
			Outcomes: map[measure.Outcome]int64{measure.OK: ok, measure.HTTP5xx: failed}, Good: good, Eligible: ok + failed,
			Dropped: map[measure.DropReason]int64{},
		}
	}
	dropped := func(c measure.Ledger, why measure.DropReason, n int64) measure.Ledger {
		if why == measure.Filtered {
			c.Filtered = n
		} else {
			c.Dropped[why] = n
		}
		if why == measure.Overload || why == measure.SessionFailed {
			c.Eligible += n
		}
		return c
	}
	up := func(s State) State {
		s.TargetUp, s.TargetText = true, "answers as m"
		return s
	}
	running := up(State{Phase: Running})
	slo := measure.SLO{{Quantity: measure.TTFT, Limit: 1000}}
	f := func(s State, c measure.Ledger, late time.Duration, slo measure.SLO, want level, text string) {
		t.Helper()
		o := WorkloadOptions{Lanes: 8, SLO: slo, Objective: 0.99}
		got := judge(&o, &s, countsAt{Ledger: c}, value(late.Seconds()))
		if got.Level != want || got.Text != text {
			t.Errorf("got %v: %s; want %v: %s", got.Level, got.Text, want, text)
		}
	}
	none := measure.SLO{}
	f(running, counts(100, 0, 100), ms, none, well, "all well")
	f(running, measure.Ledger{}, 0, slo, well, "all well")
	f(up(State{Phase: Running, Reason: "soon"}), measure.Ledger{}, 0, slo, well, "all well: soon")

	f(State{Phase: Failed, Reason: "a.jsonl:3: bad"}, counts(1, 0, 1), 0, none, bad, "failed: a.jsonl:3: bad")
	f(State{Phase: Running, TargetText: "does not answer: refused"}, counts(1, 0, 1), 0, none, bad, "the target does not answer: refused")
	f(State{Phase: Waiting}, measure.Ledger{}, 0, none, idle, "waiting") // the target was not asked yet
	f(State{Phase: Over, TargetText: "does not answer"}, measure.Ledger{}, 0, none, idle, "over")
	f(up(State{Phase: Draining}), measure.Ledger{}, 0, none, idle, "draining")
	f(up(State{Phase: Paused}), dropped(counts(0, 0, 0), measure.Paused, 50), 0, none, strained, "paused: what falls due is dropped")

	sheds := countsAt{Ledger: dropped(counts(90, 0, 90), measure.Overload, 50)}
	if got := judge(&WorkloadOptions{Lanes: 8, Sheds: true}, &running, sheds, 0); got.Level != strained {
		t.Errorf("a workload that sheds: got %v: %s", got.Level, got.Text)
	}
	closed := up(State{Phase: Paused})
	if got := judge(&WorkloadOptions{Lanes: 8, Closed: true}, &closed, countsAt{Ledger: counts(0, 0, 0)}, 0); got.Text != "paused: nothing falls due" {
		t.Errorf("a closed loop in a pause: got %q", got.Text)
	}
	f(up(State{Phase: Warming, Reason: "10 requests that count nowhere"}), measure.Ledger{}, 0, none, well, "warming up: 10 requests that count nowhere")

	guarded := up(State{Phase: Guarded, Reason: "waiting 9 ≥ 8"})
	f(guarded, dropped(counts(100, 0, 100), measure.Guarded, 500), 0, none, strained, "held back by the guard: waiting 9 ≥ 8")
	f(guarded, counts(94, 6, 94), 0, none, bad, "held back by the guard: waiting 9 ≥ 8")
	f(State{Phase: Guarded, Reason: "waiting 9 ≥ 8", TargetText: "does not answer: refused"}, measure.Ledger{}, 0, none, bad, "the target does not answer: refused; the guard holds requests back")

	f(running, dropped(counts(100, 0, 100), measure.Budget, 500), 0, none, strained, "held back by its budget: 83 % of requests in the last minute")
	f(running, dropped(counts(0, 0, 0), measure.Budget, 1), 0, none, strained, "held back by its budget: 100 % of requests in the last minute")
	f(running, dropped(dropped(counts(20, 0, 20), measure.Budget, 80), measure.Filtered, 900), 0, none, strained, "held back by its budget: 80 % of requests in the last minute")
	f(running, dropped(counts(96, 4, 96), measure.Budget, 500), 0, none, strained, "4.0 % of requests failed in the last minute: http_5xx")
	f(running, dropped(counts(100, 0, 50), measure.Budget, 500), 0, slo, bad, "50 % of the eligible requests in the last minute met the SLO")

	f(running, counts(96, 4, 96), 0, none, strained, "4.0 % of requests failed in the last minute: http_5xx")
	f(running, counts(95, 5, 95), 0, none, strained, "5.0 % of requests failed in the last minute: http_5xx")
	f(running, counts(94, 6, 94), 0, none, bad, "6.0 % of requests failed in the last minute: http_5xx")
	cancelled := counts(45, 5, 45)
	cancelled.Outcomes[measure.Cancelled] = 50
	f(running, cancelled, 0, none, bad, "10 % of requests failed in the last minute: http_5xx") // of the requests that were not cancelled
	cancelled.Outcomes[measure.HTTP5xx], cancelled.Eligible = 0, 45
	f(running, cancelled, 0, slo, well, "all well")
	f(running, counts(1, 1, 1), 0, none, strained, "50 % of requests failed in the last minute: http_5xx") // one failure alone
	f(running, dropped(counts(90, 0, 90), measure.Overload, 10), 0, none, bad, "10 % of requests were dropped in the last minute: overload")
	f(running, dropped(counts(4990, 4, 4990), measure.Missed, 6), 0, none, strained, "0.2 % of requests failed or were dropped in the last minute: mostly missed")
	f(running, dropped(dropped(counts(100, 0, 100), measure.Filtered, 50), measure.Shutdown, 9), 0, none, well, "all well")

	f(running, dropped(counts(90, 10, 90), measure.Guarded, 100), 0, none, bad, "55 % of requests failed or were dropped in the last minute: mostly guard")
	f(running, dropped(counts(100, 0, 100), measure.Guarded, 100), 0, none, well, "all well") // the guard has closed again

	f(running, dropped(counts(99, 0, 99), measure.Overload, 1), 0, none, well, "all well")
	f(running, dropped(counts(98, 0, 98), measure.Overload, 2), 0, none, strained,
		"2.0 % of requests were dropped in the last minute: overload")

	f(running, counts(1000, 0, 990), 0, slo, well, "all well")
	f(running, counts(1000, 0, 989), 0, slo, strained, "99 % of the eligible requests in the last minute met the SLO")
	f(running, counts(1000, 0, 856), 0, slo, strained, "86 % of the eligible requests in the last minute met the SLO")
	f(running, counts(1000, 0, 855), 0, slo, bad, "86 % of the eligible requests in the last minute met the SLO")
	for good, want := range map[int64]level{9: bad, 11: strained} { // 14.4 times the budget is more than all
		tenth := WorkloadOptions{Lanes: 8, SLO: slo, Objective: 0.9}
		if got := judge(&tenth, &running, countsAt{Ledger: counts(100, 0, good)}, 0); got.Level != want {
			t.Errorf("%d of 100 good, with an objective of 0.9: got %v, want %v", good, got.Level, want)
		}
	}
	f(running, counts(96, 4, 50), 0, slo, bad, "50 % of the eligible requests in the last minute met the SLO") // a few failures do not hide the SLO
	f(running, counts(80, 20, 40), 0, slo, bad, "20 % of requests failed in the last minute: http_5xx; 40 % of the eligible ones met the SLO")
	f(running, counts(10, 0, 0), 0, slo, bad, "none of the eligible requests in the last minute met the SLO")
	f(running, dropped(counts(0, 0, 0), measure.Guarded, 100), 0, slo, well, "all well") // no request was eligible
	f(running, counts(1000, 0, 0), 0, none, well, "all well")

	f(running, counts(1, 0, 1), 51*ms, none, strained, "requests go out late: p99 51 ms")
	f(running, counts(1, 0, 1), 50*ms, none, well, "all well")
	full := running
	full.Ledger.InFlight, full.Ledger.Waiting = 8, 3
	f(full, counts(1, 0, 1), 0, none, strained, "all 8 lanes are busy, 3 waiting")
	moved := running
	moved.Skew = -1500 * ms
	f(moved, counts(1, 0, 1), 0, none, strained, "the wall clock moved by -1.5s since the loop began")
}

func TestJudgeAll(t *testing.T) {
	names := []string{"a", "b", "c"}
	f := func(levels []level, want level, text string) {
		t.Helper()
		each := make([]verdict, len(levels))
		for i, l := range levels {
			each[i] = verdict{Level: l, Text: "the reason"}
		}
		if got := judgeAll(names, each); got.Level != want || got.Text != text {
			t.Errorf("%v: got %v: %s; want %v: %s", levels, got.Level, got.Text, want, text)
		}
	}
	f(nil, idle, "No workload")
	f([]level{well}, well, "All well")
	f([]level{well, well, idle}, well, "All well: 2 running well, 1 idle")
	f([]level{idle, idle}, idle, "Nothing is being sent")
	f([]level{well, bad, well}, bad, "b: the reason")
	f([]level{strained, well}, strained, "a: the reason")
	f([]level{strained, bad, well}, bad, "1 in trouble, 1 strained, 1 running well")
}

// TestSince: the page shows how long a level has lasted.
func TestSince(t *testing.T) {
	run(t, func(t *testing.T, b *Board) {
		f := newFeed(b, WorkloadOptions{Name: "a"})
		start := time.Now()
		since := func(want level, at time.Duration) {
			t.Helper()
			v := told(b).Workloads[0].Figures.Verdict
			if v.Level != want || !time.Time(v.Since).Equal(start.Add(at)) {
				t.Errorf("%v since %v, want %v since %v", v.Level, time.Time(v.Since).Sub(start), want, at)
			}
		}
		pass(5 * second)
		since(well, second)
		f.change(func(s *State) { s.TargetUp, s.TargetText = false, "does not answer: refused" })
		pass(3 * second)
		since(bad, 6*second)
		f.change(func(s *State) { s.TargetText = "does not answer: timeout" })
		pass(3 * second)
		since(bad, 6*second)
		f.change(func(s *State) { s.TargetUp = true })
		pass(3 * second)
		since(well, 12*second)
	})
}
