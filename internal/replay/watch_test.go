package replay

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// An engine reports the load that a test sets. Until the first call of say or set, its metrics are missing.
type engine struct {
	mu   sync.Mutex
	load limits.Load
	err  error
}

func newEngine() *engine { return &engine{err: errScrape} }

func (e *engine) now() (limits.Load, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.load, e.err
}

func (e *engine) say(waiting float64, err error) {
	e.set(limits.Load{Waiting: waiting, KVCacheUsage: math.NaN()}, err)
}

func (e *engine) set(l limits.Load, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.load, e.err = l, err
}

// after calls f at an offset from the start of the current minute.
func after(at time.Duration, f func()) {
	time.AfterFunc(time.Until(time.Now().Truncate(time.Minute).Add(at)), f)
}

// until returns a context that ends at an offset from the start of the current minute.
func until(t *testing.T, at time.Duration) context.Context {
	ctx, end := context.WithCancel(t.Context())
	after(at, end)
	return ctx
}

// heard returns a callback that appends the runner's guard messages with their times to told, and checks their levels.
func heard(told *[]string) func(slog.Level, string) {
	begin := time.Now().Truncate(time.Minute)
	return func(level slog.Level, text string) {
		if want := map[bool]slog.Level{true: slog.LevelInfo, false: slog.LevelWarn}[strings.HasPrefix(text, "guard closed")]; level != want {
			text = fmt.Sprintf("as %v: %s", level, text)
		}
		*told = append(*told, fmt.Sprint(time.Since(begin), " ", text))
	}
}

// The guard opens at the first row that is due when a limit is reached. It closes exactly ResumeAfter after the last
// row that saw the limit reached. Requests in flight go on.
func TestGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, told, log := newEngine(), []string{}, &bytes.Buffer{}
		e.say(0, nil)
		b := newBench(t, every(600, 100*time.Millisecond), minutes, &fake{ttft: 250 * time.Millisecond}, func(w *Workload) {
			w.Guard, w.Load, w.Noted = limits.Guard{Waiting: 8, ResumeAfter: 5 * time.Second}, e.now, heard(&told)
			w.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelInfo}))
		})
		after(10*time.Second+80*time.Millisecond, func() { e.say(9, nil) })
		after(10*time.Second+110*time.Millisecond, func() {
			s := b.State()
			want(t, "phase", s.Phase, Guarded)
			want(t, "reason", s.Reason, "waiting 9 ≥ 8")
			want(t, "in flight", b.counter(t, "replayd_requests_in_flight", ""), 2.0)
			want(t, "guard_open", b.counter(t, "replayd_guard_open", "waiting"), 1.0)
			want(t, "guard_open of all", b.counter(t, "replayd_guard_open", ""), 1.0)
			keep, ahead, _, _ := b.connections()
			want(t, "connections for what will be dropped", keep[0]+ahead[0], 0)
		})
		after(20*time.Second+150*time.Millisecond, func() { e.say(7, nil) }) // last seen by the row of 20.1 s
		after(25*time.Second+99*time.Millisecond, func() {
			want(t, "reason", b.State().Reason, "waiting 9 ≥ 8 until 5s ago")
			want(t, "guard_open", b.counter(t, "replayd_guard_open", ""), 1.0)
		})
		after(25*time.Second+101*time.Millisecond, func() {
			want(t, "phase", b.State(), State{Phase: Running, Loop: b.State().Loop, Position: 25101 * time.Millisecond, Next: 34899 * time.Millisecond, Period: time.Minute, Due: b.State().Due})
			want(t, "guard_open", b.counter(t, "replayd_guard_open", ""), 0.0)
		})
		b.run(t, until(t, 30*time.Second+50*time.Millisecond), t.Context())
		rows := b.sentOnce(t)[time.Now().Unix()/60]
		want(t, "rows", rows, slices.Concat(span(0, 101), span(251, 301)))
		want(t, "outcomes", b.kept.outcomes(), map[measure.Outcome]int{measure.OK: 151})
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Guarded: 150})
		want(t, "told", told, []string{"10.1s guard opened, requests are held back: waiting 9 ≥ 8 (w)", "25.1s guard closed after 15s, requests are sent again (w)"})
		for _, line := range []string{`level=WARN msg="guard opened, requests are held back: waiting 9 ≥ 8" workload=w`, `level=INFO msg="guard closed after 15s, requests are sent again" workload=w`} {
			if !strings.Contains(log.String(), line) {
				t.Errorf("want the log line %s, got\n%s", line, log)
			}
		}
	})
}

// While no row is due, the guard is judged every second. It still closes exactly on time.
func TestGuardWhenNothingIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, told := newEngine(), []string{}
		e.say(0, nil)
		rows := source(trace.Record{}, trace.Record{Offset: 50 * time.Second})
		b := newBench(t, rows, minutes, &fake{}, func(w *Workload) {
			w.Guard, w.Load, w.Noted = limits.Guard{Waiting: 8, ResumeAfter: 2300 * time.Millisecond}, e.now, heard(&told)
		})
		after(10*time.Second+500*time.Millisecond, func() { e.say(8, nil) })
		after(12*time.Second+500*time.Millisecond, func() { e.say(0, nil) })
		b.run(t, until(t, 55*time.Second), t.Context())
		want(t, "told", told, []string{"11s guard opened, requests are held back: waiting 8 ≥ 8 (w)", "14.3s guard closed after 3.3s, requests are sent again (w)"})
		want(t, "sent", len(b.kept.all), 2)
	})
}

// A request that waits for a lane is dropped when the guard opens, whichever goroutine sees the limit first.
func TestGuardDropsWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.say(0, nil)
		b := newBench(t, every(5, 100*time.Millisecond), minutes, &fake{ttft: 750 * time.Millisecond}, func(w *Workload) {
			w.Guard, w.Load, w.Lanes = limits.Guard{Waiting: 8}, e.now, 1
		})
		after(740*time.Millisecond, func() { e.say(8, nil) }) // the lane comes back at 750 ms
		after(760*time.Millisecond, func() { e.say(0, nil) })
		b.run(t, until(t, 30*time.Second), t.Context())
		want(t, "sent", b.sentOnce(t)[time.Now().Unix()/60], []int{0})
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Guarded: 4})
		want(t, "guard_open at the end", b.counter(t, "replayd_guard_open", ""), 0.0)
	})
}

// A row is not sent if the guard opens before its message is built.
func TestGuardSeenByTheBuilder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b *bench
		b = newBench(t, source(trace.Record{Offset: 1500 * time.Millisecond}, trace.Record{Offset: 1500 * time.Millisecond}), minutes,
			&fake{ttft: time.Second}, func(w *Workload) {
				w.Ahead, w.Guard = 1, limits.Guard{Waiting: 1} // the second message is built after the first is sent
				w.Load = func() (limits.Load, error) {
					return limits.Load{Waiting: b.counter(t, "replayd_requests_in_flight", "")}, nil
				}
			})
		b.run(t, until(t, 30*time.Second), t.Context())
		want(t, "sent", b.sentOnce(t)[time.Now().Unix()/60], []int{0})
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Guarded: 1})
	})
}

// A runner that drains or has ended sends nothing, so it has no guard. It shows no limit as open and reports none.
func TestNoGuardAfterTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		stop time.Duration
		told []string
		open float64 // at 10.64 s
	}{
		"drains":              {10 * time.Second, nil, 0}, // requests that end from 10.55 s on would see the limit
		"drains with it open": {10600 * time.Millisecond, []string{"10.55s guard opened, requests are held back: waiting 8 ≥ 8 (w)"}, 0},
		"over":                {30 * time.Second, []string{"10.55s guard opened, requests are held back: waiting 8 ≥ 8 (w)"}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, told := newEngine(), []string(nil)
			e.say(0, nil)
			b := newBench(t, every(106, 100*time.Millisecond), once, &fake{ttft: 250 * time.Millisecond, itl: 250 * time.Millisecond}, func(w *Workload) {
				w.Guard, w.Load, w.Noted, w.Epoch = limits.Guard{Waiting: 8}, e.now, heard(&told), time.Now()
			})
			after(10*time.Second+520*time.Millisecond, func() { e.say(8, nil) })
			after(10*time.Second+640*time.Millisecond, func() {
				want(t, name+": guard_open", b.counter(t, "replayd_guard_open", ""), c.open)
			})
			b.run(t, until(t, c.stop), t.Context())
			want(t, name+": guard_open at the end", b.counter(t, "replayd_guard_open", ""), 0.0)
			want(t, name+": told", told, c.told)
		})
	}
}

// Missing metrics open the guard from the start, or are ignored.
func TestBlindGuard(t *testing.T) {
	all := span(0, 300)
	for name, c := range map[string]struct {
		change func(*Workload, *engine)
		rows   []int
		told   []string
	}{
		"until the first figures": {func(*Workload, *engine) {}, span(21, 300), []string{
			"0s guard opened, requests are held back: missing_metrics: http://engine/metrics: connection refused (w)", "2.1s guard closed after 2.1s, requests are sent again (w)",
		}},
		"go":                 {func(w *Workload, _ *engine) { w.Guard.OnMissingMetrics = limits.BlindGo }, all, nil},
		"nothing is scraped": {func(w *Workload, _ *engine) { w.Load = nil }, nil, []string{"0s guard opened, requests are held back: missing_metrics: the engine's metrics are not scraped (w)"}},
		"no limit needs it":  {func(w *Workload, _ *engine) { w.Guard = limits.Guard{ErrorRatio: 0.1, ResumeAfter: time.Second} }, all, nil},
		"no guard":           {func(w *Workload, _ *engine) { w.Guard = limits.Guard{ResumeAfter: time.Second} }, all, nil},
		"no figure on the page": {func(w *Workload, _ *engine) { w.Guard = limits.Guard{KVCacheUsage: 0.9} }, nil, []string{
			"0s guard opened, requests are held back: missing_metrics: http://engine/metrics: connection refused (w)", // then for want of the figure
		}},
		"unsupported": {func(w *Workload, e *engine) {
			w.Guard = limits.Guard{KVCacheUsage: 0.9}
			after(4*time.Second+550*time.Millisecond, func() { e.set(limits.Load{Waiting: 1, KVCacheUsage: math.NaN(), Engine: "llama.cpp", Pages: 3}, nil) })
		}, nil, []string{
			"0s guard opened, requests are held back: missing_metrics: http://engine/metrics: connection refused (w)",
			"4.6s as ERROR: guard cannot judge a limit: llama.cpp has not shown kv_cache_usage on 3 pages; it shows waiting. Nothing is sent: remove the limit, or set on_missing_metrics: go (w)",
			"4.6s guard stays open: unsupported: llama.cpp has not shown kv_cache_usage on 3 pages; it shows waiting (w)",
		}},
		"unsupported, go": {func(w *Workload, e *engine) {
			w.Guard = limits.Guard{KVCacheUsage: 0.9, OnMissingMetrics: limits.BlindGo}
			after(4*time.Second+550*time.Millisecond, func() { e.set(limits.Load{Waiting: 1, KVCacheUsage: math.NaN(), Pages: 3}, nil) })
		}, all, []string{
			"4.6s as ERROR: guard ignores a limit (on_missing_metrics: go): the engine has not shown kv_cache_usage on 3 pages; it shows waiting (w)",
		}},
		"for a while": {func(_ *Workload, e *engine) {
			after(10*time.Second+50*time.Millisecond, func() { e.say(0, errScrape) })
			after(12*time.Second+50*time.Millisecond, func() { e.say(0, nil) })
		}, slices.Concat(span(21, 101), span(130, 300)), []string{
			"0s guard opened, requests are held back: missing_metrics: http://engine/metrics: connection refused (w)", "2.1s guard closed after 2.1s, requests are sent again (w)",
			"10.1s guard opened, requests are held back: missing_metrics: http://engine/metrics: connection refused (w)", "13s guard closed after 2.9s, requests are sent again (w)",
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			e, told := newEngine(), []string(nil)
			b := newBench(t, every(300, 100*time.Millisecond), minutes, &fake{}, func(w *Workload) {
				w.Guard, w.Load, w.Noted = limits.Guard{Waiting: 8, ResumeAfter: time.Second}, e.now, heard(&told)
				c.change(w, e)
			})
			after(2*time.Second+50*time.Millisecond, func() { e.say(0, nil) })
			b.run(t, until(t, 40*time.Second), t.Context())
			want(t, name+": rows", b.sentOnce(t)[time.Now().Unix()/60], c.rows)
			want(t, name+": told", told, c.told)
			want(t, name+": dropped", b.kept.dropped[measure.Guarded], 300-len(c.rows))
			want(t, name+": guard_open at the end", b.counter(t, "replayd_guard_open", ""), 0.0)
		})
	}
}

// Where this process did not read the engine's page, rows are held back all the same, but as missed. A reading that the engine spoils is
// the guard's.
func TestGuardWithoutReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		b := newBench(t, every(300, 100*time.Millisecond), minutes, &fake{}, func(w *Workload) {
			w.Guard, w.Load = limits.Guard{Waiting: 8, ResumeAfter: time.Second}, e.now
		})
		e.say(0, nil)
		after(10*time.Second+50*time.Millisecond, func() { e.set(limits.Load{Unread: true}, errScrape) })
		after(12*time.Second+50*time.Millisecond, func() { e.say(0, nil) })
		after(20*time.Second+50*time.Millisecond, func() { e.set(limits.Load{Unread: true}, errScrape) })
		after(22*time.Second+50*time.Millisecond, func() { e.say(0, errScrape) })
		after(24*time.Second+50*time.Millisecond, func() { e.say(0, nil) })
		b.run(t, until(t, 40*time.Second), t.Context())
		want(t, "rows", b.sentOnce(t)[time.Now().Unix()/60], slices.Concat(span(0, 101), span(130, 201), span(250, 300)))
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Missed: 29 + 20, measure.Guarded: 29})
	})
}

// The server fails for a while. Single trials, which count like other requests, find out when it is back.
func TestGuardByErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		down := func(string) int {
			if s := time.Since(begin); s >= 10*time.Second && s < 30*time.Second {
				return 503
			}
			return 0
		}
		f, told := &fake{ttft: 1250 * time.Millisecond, status: down}, []string{}
		b := newBench(t, every(1800, 100*time.Millisecond), schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Once}},
			f, func(w *Workload) {
				w.Guard, w.Noted = limits.Guard{ErrorRatio: 0.2, ResumeAfter: 10 * time.Second}, heard(&told)
				w.Epoch = begin
			})
		after(20*time.Second+50*time.Millisecond, func() {
			want(t, "reason", strings.HasPrefix(b.State().Reason, "error_ratio 0.2"), true)
			keep, ahead, _, _ := b.connections()
			want(t, "connections for trials", max(keep[0], ahead[0]) <= 1, true)
		})
		b.run(t, t.Context(), t.Context())
		rows := b.sentOnce(t)[0]
		// 100 requests are ok; the last of them ends at 11.15 s. Requests fail from 10 s on, and the 25th failure makes
		// a fifth of all.
		const opened = 12400 * time.Millisecond
		var trials []time.Duration // requests sent while the guard was open
		slices.SortFunc(b.kept.all, func(x, y measure.Request) int { return x.Timeline.Write.Compare(y.Timeline.Write) })
		past := opened
		for now := opened; now < 100*time.Second; now += 100 * time.Millisecond { // a row is due at each
			finished, failed := 0, 0
			for _, r := range b.kept.all {
				if end := r.Timeline.End.Sub(begin); end <= now && end.Truncate(time.Second) > now.Truncate(time.Second)-time.Minute {
					finished++
					if r.Outcome != measure.OK {
						failed++
					}
				}
			}
			if finished >= 5 && failed*5 >= finished {
				past = now
			}
		}
		closed := past + 10*time.Second
		for _, r := range b.kept.all {
			if at := r.Timeline.Write.Sub(begin); at > opened && at < closed {
				trials = append(trials, at)
			}
		}
		var ideal []time.Duration
		for at := 12500 * time.Millisecond; at < 30*time.Second; at += time.Second {
			ideal = append(ideal, at)
		}
		for at := 30500 * time.Millisecond; at < closed; at += 1300 * time.Millisecond { // first row after a trial ends
			ideal = append(ideal, at)
		}
		want(t, "trials", trials, ideal)
		want(t, "told", told, []string{
			fmt.Sprint(opened, " guard opened, requests are held back: error_ratio 0.2 ≥ 0.2 (w)"), fmt.Sprint(closed, " guard closed after ", closed-opened, ", requests are sent again (w)"),
		})
		want(t, "all rows", len(rows)+b.kept.dropped[measure.Guarded], 1800)
	})
}

// An engine that takes a minute to fail gets single trials until they succeed. The guard does not close because too few
// requests have finished.
func TestGuardByErrorsOfADeadEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin, told := time.Now(), []string{}
		f := &fake{status: func(string) int {
			switch s := time.Since(begin); {
			case s < 30*time.Second:
				<-time.After(20*time.Second + 50*time.Millisecond)
			case s < 10*time.Minute:
				<-time.After(time.Minute - 50*time.Millisecond)
			default:
				return 0
			}
			return 503
		}}
		const (
			opened = 20450 * time.Millisecond // at the fifth failure
			back   = 10*time.Minute + 40600*time.Millisecond
			closed = back + 14*time.Second // one failure before 5 ok requests is less than a fifth, for 10 s
		)
		b := newBench(t, every(9000, 100*time.Millisecond), once, f, func(w *Workload) {
			w.Guard, w.Noted = limits.Guard{ErrorRatio: 0.2, ResumeAfter: 10 * time.Second}, heard(&told)
			w.Lanes, w.Overload, w.Epoch = 6, Drop, begin
		})
		b.run(t, t.Context(), t.Context())
		var trials []time.Duration
		for _, r := range b.kept.all {
			if at := r.Timeline.Write.Sub(begin); at > opened && at < closed {
				trials = append(trials, at)
			}
		}
		slices.Sort(trials)
		ideal := []time.Duration{20500 * time.Millisecond}
		for at := 40600 * time.Millisecond; at < back; at += time.Minute {
			ideal = append(ideal, at)
		}
		for at := back; at < closed; at += time.Second {
			ideal = append(ideal, at)
		}
		want(t, "trials", trials, ideal)
		want(t, "told", told, []string{
			fmt.Sprint(opened, " guard opened, requests are held back: error_ratio 1 ≥ 0.2 (w)"), fmt.Sprint(closed, " guard closed after ", closed-opened, ", requests are sent again (w)"),
		})
	})
}

// A pause and an open guard overlap. Each row is dropped for one reason, and the pause has priority.
func TestPauseAndGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine()
		e.say(0, nil)
		b := newBench(t, every(600, 100*time.Millisecond), minutes, &fake{ttft: time.Millisecond}, func(w *Workload) {
			w.Guard, w.Load = limits.Guard{Waiting: 8}, e.now
		})
		for s, f := range map[int]func(){
			10: func() { e.say(8, nil) }, 12: func() { b.Pause(true) }, 15: func() { b.Pause(false) }, 17: func() { e.say(0, nil) },
			20: func() { b.Pause(true) }, 21: func() { e.say(8, nil) }, 23: func() { e.say(0, nil) }, 25: func() { b.Pause(false) },
		} {
			after(time.Duration(s)*time.Second+50*time.Millisecond, f)
		}
		after(13*time.Second, func() { want(t, "phase", b.State().Phase, Paused) })
		b.run(t, until(t, 30*time.Second+50*time.Millisecond), t.Context())
		want(t, "rows", b.sentOnce(t)[time.Now().Unix()/60], slices.Concat(span(0, 101), span(171, 201), span(251, 301)))
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Guarded: 40, measure.Paused: 80})
	})
}
