package replay

import (
	"bytes"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/trace"
)

func TestBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		rows := make([]trace.Record, 600)
		for i := range rows {
			rows[i] = trace.Record{Offset: time.Duration(i) * 100 * time.Millisecond, InputTokens: 4, OutputTokens: 3}
			if i%100 == 50 {
				rows[i].InputTokens = 3001
			}
		}
		b := newBench(t, source(rows...), minutes, &fake{ttft: time.Millisecond}, func(w *Workload) {
			w.Budget = limits.Budget{RequestsPerMinute: 100, PromptTokensPerHour: 3000}
			w.Log = slog.New(slog.NewTextHandler(log, nil))
		})
		b.run(t, until(t, 3*time.Minute-50*time.Millisecond), t.Context())
		first := time.Now().Unix()/60 - 2
		sent := b.sentOnce(t)
		small := slices.DeleteFunc(span(0, 101), func(i int) bool { return i == 50 })
		want(t, "rows of the first minute", sent[first], small)
		// The budget counts in slots of a second. A slot leaves the window 61 s after it began, so the rows of the
		// second minute follow a second later.
		want(t, "rows of the second minute", sent[first+1], slices.DeleteFunc(span(10, 111), func(i int) bool { return i == 50 }))
		want(t, "sent", len(b.kept.all), 300)
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Budget: 1500})
		if n := strings.Count(log.String(), "exceeds the whole budget"); n != 1 || !strings.Contains(log.String(), "id=w/"+fmt.Sprint(first)+"/50 input_tokens=3001") {
			t.Errorf("want one word about rows that are too large, got %d in\n%s", n, log)
		}
	})
}

// In the end the budget counts the tokens of the server's usage (4 and 3), not the planned tokens.
func TestBudgetByUsage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := make([]trace.Record, 100)
		for i := range rows {
			rows[i] = trace.Record{Offset: time.Duration(i) * 100 * time.Millisecond, InputTokens: 40, OutputTokens: 3}
		}
		b := newBench(t, source(rows...), minutes, &fake{ttft: 950 * time.Millisecond}, func(w *Workload) {
			w.Budget = limits.Budget{PromptTokensPerHour: 400}
		})
		b.run(t, until(t, 30*time.Second), t.Context())
		// Each request is charged 40 tokens when it is sent, and 36 tokens are returned when it ends 950 ms later. A
		// request is sent while 4·ended + 40·inFlight, including itself, is at most 400.
		spent, want1 := 0, []int{}
		ends := []int{}
		for i := range 100 {
			for len(ends) > 0 && ends[0] <= i*100 {
				spent -= 36
				ends = ends[1:]
			}
			if spent+40 <= 400 {
				spent += 40
				ends = append(ends, i*100+950)
				want1 = append(want1, i)
			}
		}
		want(t, "rows", b.sentOnce(t)[time.Now().Unix()/60], want1)
		if len(want1) < 60 {
			t.Errorf("only %d by the formula: nothing was given back", len(want1))
		}
	})
}

// handOver replaces a runner by another one at 20 s of a minute. It returns both when the minute is over.
func handOver(t *testing.T, first, second func(*Workload)) (old, next *bench) {
	t.Helper()
	at := time.Now().Add(20 * time.Second)
	old = newBench(t, every(600, 100*time.Millisecond), minutes, &fake{ttft: time.Millisecond}, first)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		old.run(t, t.Context(), t.Context())
	}()
	<-time.After(19*time.Second + 10*time.Millisecond)
	next = newBench(t, every(600, 100*time.Millisecond), minutes, &fake{ttft: time.Millisecond}, func(w *Workload) {
		second(w)
		w.Begin, w.After, w.Target = at, old.Runner, old.target
	})
	old.Retire(instant(old, at))
	next.run(t, until(t, 59*time.Second+950*time.Millisecond), t.Context())
	<-ended
	return old, next
}

// A successor keeps the spending of its predecessor, even if the budget changes: a reload cannot spend it twice.
func TestSuccessorGoesOnWithTheBudget(t *testing.T) {
	for name, c := range map[string]struct {
		before, after int64
		sent          [2]int
	}{
		"the same":    {150, 150, [2]int{150, 0}},
		"more":        {150, 190, [2]int{150, 40}},
		"less":        {150, 50, [2]int{150, 0}},
		"not used up": {250, 250, [2]int{200, 50}},
		"none before": {0, 150, [2]int{200, 150}},
		"none after":  {150, 0, [2]int{150, 400}},
	} {
		synctest.Test(t, func(t *testing.T) {
			with := func(n int64) func(*Workload) { return func(w *Workload) { w.Budget.RequestsPerMinute = n } }
			old, next := handOver(t, with(c.before), with(c.after))
			want(t, name, [2]int{len(old.kept.all), len(next.kept.all)}, c.sent)
			want(t, name+": nobody keeps the one before", next.w.After, (*Runner)(nil))
		})
	}
}

// A successor keeps the guard state of its predecessor, unless the target or the limits differ.
func TestSuccessorGoesOnWithTheGuard(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Workload)
		first  int // first row that the successor sends
	}{
		"the same":     {func(*Workload) {}, 250},
		"other limits": {func(w *Workload) { w.Guard.Waiting = 7 }, 200},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, told := newEngine(), []string{}
			e.say(0, nil)
			guarded := func(w *Workload) {
				w.Guard, w.Load, w.Noted = limits.Guard{Waiting: 8, ResumeAfter: 10 * time.Second}, e.now, heard(&told)
			}
			after(12*time.Second+50*time.Millisecond, func() { e.say(8, nil) })
			after(15*time.Second+50*time.Millisecond, func() { e.say(0, nil) })
			_, next := handOver(t, guarded, func(w *Workload) { guarded(w); c.change(w) })
			rows := slices.Concat(slices.Collect(maps.Values(next.sentOnce(t)))...)
			want(t, name+": first row", rows[0], c.first)
			want(t, name+": guard_open", next.counter(t, "replayd_guard_open", ""), 0.0)
		})
	}
}

// A successor with the same target shares the error counts of its predecessor, including requests that end after the
// handover.
func TestSuccessorGoesOnWithTheErrors(t *testing.T) {
	for name, same := range map[string]bool{"the same target": true, "another": false} {
		synctest.Test(t, func(t *testing.T) {
			a := newBench(t, every(1, time.Second), minutes, &fake{}, func(w *Workload) { w.Guard.ErrorRatio = 0.5 })
			b := newBench(t, every(1, time.Second), minutes, &fake{}, func(w *Workload) {
				w.Guard.ErrorRatio, w.After = 0.4, a.Runner
				if same {
					w.Target = a.target
				}
			})
			for range 5 {
				a.guard.breaker.Health.Ended(time.Now(), true)
			}
			_, finished := b.guard.breaker.Health.Ratio(time.Now())
			want(t, name, finished == 5, same)
		})
	}
}

// Rows that waited for minutes behind a hung engine are not sent all at once when it is back.
func TestBudgetOfABacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		back := begin.Add(170 * time.Second)
		f := &fake{ttft: time.Millisecond, status: func(string) int {
			if wait := time.Until(back); wait > 0 {
				<-time.After(wait)
			}
			return 0
		}}
		b := newBench(t, every(6000, 100*time.Millisecond), once, f, func(w *Workload) {
			w.Budget, w.Lanes, w.MaxWait, w.Epoch = limits.Budget{RequestsPerMinute: 30}, 1, 0, begin
		})
		b.run(t, until(t, 4*time.Minute-50*time.Millisecond), t.Context())
		var writes []time.Duration
		for _, r := range b.kept.all {
			writes = append(writes, r.Timeline.Write.Sub(begin))
		}
		slices.Sort(writes)
		for i, from := range writes[:len(writes)-30] {
			if to := writes[i+30]; to-from < time.Minute {
				t.Errorf("31 requests from %v to %v", from, to)
			}
		}
		want(t, "before it is back", writes[:3], []time.Duration{0, time.Minute, 2 * time.Minute}) // the first two time out
		want(t, "sent", len(writes), 3+29+1+29)                                                    // 29 at once, then 1 + 29
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Budget: 2400 - len(writes)})
	})
}

// If one reload removes a budget and another restores it, spending before and in between still counts.
func TestBudgetTakenOutAndPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runner := func(n int64, before *Runner) *Runner {
			b := newBench(t, every(1, time.Second), minutes, &fake{}, func(w *Workload) { w.Budget.RequestsPerMinute, w.After = n, before })
			b.client.Close()
			return b.Runner
		}
		pay := func(r *Runner) bool {
			_, full := r.spending.Charge(time.Now(), limits.Cost{Requests: 1, Prompt: 1, Output: 1}, r.w.Budget)
			return full == ""
		}
		first := runner(3, nil)
		second := runner(0, first)
		third := runner(3, second)
		want(t, "before", pay(first), true)
		want(t, "without", pay(second), true)
		want(t, "put back", [2]bool{pay(third), pay(third)}, [2]bool{true, false})
		<-time.After(61 * time.Second)
		want(t, "a minute later", pay(third), true)
		want(t, "never one", runner(0, runner(0, nil)).spending == nil, true)
	})
}

// A message that cannot be built does not reach the engine, so it costs no budget and opens no guard.
func TestWhatCannotBeBuiltCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := make([]trace.Record, 20)
		for i := range rows {
			rows[i].Offset = time.Duration(i) * 100 * time.Millisecond
			if i < 15 {
				rows[i].Extra = []byte("[")
			}
		}
		b := newBench(t, source(rows...), once, &fake{ttft: time.Millisecond}, func(w *Workload) {
			w.Guard, w.Budget = limits.Guard{ErrorRatio: 0.5, ResumeAfter: time.Second}, limits.Budget{RequestsPerMinute: 5}
		})
		b.run(t, t.Context(), t.Context())
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 5})
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Invalid: 15})
		want(t, "spent", b.spending.Spent(time.Now()).Requests, int64(5))
	})
}

// An exhausted budget logs one line at its begin and one at its end, however many rows are dropped and whichever
// goroutine drops them.
func TestBudgetIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := &bytes.Buffer{}
		rows := make([]trace.Record, 0, 600)
		for i := range 600 { // 120 a minute, with a gap
			if offset := time.Duration(i) * 500 * time.Millisecond; offset < 90*time.Second || offset >= 200*time.Second {
				rows = append(rows, trace.Record{Offset: offset})
			}
		}
		b := newBench(t, source(rows...), once, &fake{ttft: 700 * time.Millisecond}, func(w *Workload) { // lanes drop rows too
			w.Budget, w.Epoch, w.Lanes = limits.Budget{RequestsPerMinute: 90, OutputTokensPerDay: 1_000_000}, time.Now(), 2
			w.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					a.Value = slog.StringValue(a.Value.Time().Format("04:05.000"))
				}
				return a
			}}))
		})
		b.run(t, t.Context(), t.Context())
		var told []string
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "budget") {
				told = append(told, line)
			}
		}
		// 90 are sent by 45 s. The first of them leaves the window at 61 s.
		want(t, "told", strings.Join(told, ""), `time=00:45.000 level=WARN msg="the budget is exhausted: requests beyond it are dropped" workload=w budget=requests_per_minute limit=90
time=03:20.000 level=INFO msg="the budget suffices again: it dropped nothing for a minute" workload=w spent_for=15.5s dropped=32
time=04:05.000 level=WARN msg="the budget is exhausted: requests beyond it are dropped" workload=w budget=requests_per_minute limit=90
`)
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Budget: 64})
	})
}

// If lanes are free but the budget is exhausted, rows are dropped as budget and not as overload.
func TestSpentBudgetIsNoOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := make([]trace.Record, 12) // two at once, and ten a second later
		for i := range rows[2:] {
			rows[i+2].Offset = time.Second
		}
		b := newBench(t, source(rows...), once, &fake{ttft: time.Millisecond}, func(w *Workload) {
			w.Budget, w.Lanes, w.Overload = limits.Budget{RequestsPerMinute: 2}, 4, Drop
		})
		b.run(t, t.Context(), t.Context())
		want(t, "sent", len(b.kept.all), 2)
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Budget: 10})
	})
}
