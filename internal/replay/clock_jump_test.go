package replay

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/dispatch"
	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// A wallClock follows the bubble's clock, plus all steps.
type wallClock struct{ ahead atomic.Int64 }

func (c *wallClock) now() time.Time       { return time.Now().Round(0).Add(time.Duration(c.ahead.Load())) }
func (c *wallClock) step(d time.Duration) { c.ahead.Add(int64(d)) }

// minutes is a plan that loops every minute on the wall clock.
var minutes = schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Loops, Align: schedule.WallClock, Every: time.Minute}}

// sentOnce fails the test unless every request was sent on time and exactly once, and the ledger balances. It returns
// the sorted row numbers of each loop.
func (b *bench) sentOnce(t *testing.T) map[int64][]int {
	t.Helper()
	rows, seen := map[int64][]int{}, map[string]int{}
	for _, id := range b.fake.order {
		seen[id]++
	}
	for _, r := range b.kept.all {
		if r.Lateness() != 0 {
			t.Errorf("%s: late by %v", r.ID, r.Lateness())
		}
		if seen[r.ID] != 1 {
			t.Errorf("%s: sent %d times", r.ID, seen[r.ID])
		}
		rows[r.Loop] = append(rows[r.Loop], r.Row)
	}
	for _, rows := range rows {
		slices.Sort(rows)
	}
	balance := b.counter(t, "replayd_requests_total", "") + b.counter(t, "replayd_requests_dropped_total", "")
	want(t, "expected", b.counter(t, "replayd_requests_expected_total", ""), balance)
	return rows
}

// span lists the numbers from, …, to-1.
func span(from, to int) (rows []int) {
	for i := from; i < to; i++ {
		rows = append(rows, i)
	}
	return rows
}

// When the wall clock is set, or the system sleeps while the monotonic clock stands still, the replay rejoins at the
// row of the wall clock. Rows that fell due meanwhile are missed. No row is sent late or twice.
func TestWallClockSteps(t *testing.T) {
	const start, stop = 10 * time.Second, 50 * time.Second // offsets in the bubble's first minute
	for name, c := range map[string]struct {
		steps  map[time.Duration]time.Duration // when the clock is set, and by how much
		sent   map[int64][]int                 // rows by loop, counted from the first loop
		missed int
		skew   float64 // at the end, in seconds
	}{
		"none":       {sent: map[int64][]int{0: span(100, 500)}},
		"ahead":      {steps: map[time.Duration]time.Duration{20*time.Second + 50*time.Millisecond: 15 * time.Second}, sent: map[int64][]int{0: slices.Concat(span(100, 201), span(351, 600)), 1: span(0, 50)}, missed: 150},
		"twice":      {steps: map[time.Duration]time.Duration{20*time.Second + 50*time.Millisecond: 2 * time.Second, 30*time.Second + 50*time.Millisecond: 2 * time.Second}, sent: map[int64][]int{0: slices.Concat(span(100, 201), span(221, 321), span(341, 540))}, missed: 40},
		"into next":  {steps: map[time.Duration]time.Duration{20*time.Second + 50*time.Millisecond: 50 * time.Second}, sent: map[int64][]int{0: span(100, 201), 1: span(101, 400)}, missed: 399 + 101},
		"a weekend":  {steps: map[time.Duration]time.Duration{20*time.Second + 50*time.Millisecond: 48 * time.Hour}, sent: map[int64][]int{0: span(100, 201), 48 * 60: span(201, 500)}, missed: 399 + 201},
		"back":       {steps: map[time.Duration]time.Duration{30*time.Second + 50*time.Millisecond: -5 * time.Second}, sent: map[int64][]int{0: span(100, 450)}},
		"far back":   {steps: map[time.Duration]time.Duration{30*time.Second + 50*time.Millisecond: -time.Hour}, sent: map[int64][]int{0: span(100, 301), -60: span(301, 500)}},
		"a little":   {steps: map[time.Duration]time.Duration{30*time.Second + 50*time.Millisecond: 900 * time.Millisecond}, sent: map[int64][]int{0: span(100, 500)}, skew: 0.9},
		"and border": {steps: map[time.Duration]time.Duration{15*time.Second + 50*time.Millisecond: 900 * time.Millisecond, 20*time.Second + 50*time.Millisecond: 29 * time.Second}, sent: map[int64][]int{0: slices.Concat(span(100, 201), span(500, 600)), 1: span(0, 199)}, missed: 299},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := &wallClock{}
			told, far := 0, 0
			b := newBench(t, every(600, 100*time.Millisecond), minutes, &fake{ttft: time.Millisecond}, func(o *Workload) {
				o.Wall, o.Noted = w.now, func(slog.Level, string) { told++ }
			})
			first := time.Now().Unix() / 60
			<-time.After(start - 50*time.Microsecond)
			for when, step := range c.steps {
				if step.Abs() > time.Second {
					far++
				}
				time.AfterFunc(when-start+50*time.Microsecond, func() { w.step(step) })
			}
			ctx, end := context.WithCancel(t.Context())
			skew := make(chan float64, 1)
			time.AfterFunc(stop-start-20*time.Millisecond, func() { skew <- b.counter(t, "replayd_wall_clock_skew_seconds", "") })
			time.AfterFunc(stop-start-10*time.Millisecond, end)
			b.run(t, ctx, t.Context())
			sent := map[int64][]int{}
			for loop, rows := range b.sentOnce(t) {
				sent[loop-first] = rows
			}
			for _, loop := range slices.Sorted(maps.Keys(c.sent)) {
				want(t, fmt.Sprint(name, ": rows of loop ", loop), sent[loop], c.sent[loop])
			}
			want(t, name+": loops", len(sent), len(c.sent))
			want(t, name+": missed", b.counter(t, "replayd_requests_dropped_total", "missed"), float64(c.missed))
			want(t, name+": skew", <-skew, c.skew)
			want(t, name+": told", told, far)
		})
	}
}

// A plan that starts with the process ignores steps of the wall clock.
func TestPhaseStartIgnoresTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wallClock{}
		b := newBench(t, every(100, 100*time.Millisecond), once, &fake{}, func(o *Workload) { o.Wall = w.now })
		time.AfterFunc(3*time.Second, func() { w.step(-time.Hour) })
		time.AfterFunc(6*time.Second, func() { w.step(2 * time.Hour) })
		b.run(t, t.Context(), t.Context())
		want(t, "rows", b.sentOnce(t)[0], span(0, 100))
		want(t, "skew", b.counter(t, "replayd_wall_clock_skew_seconds", ""), 3600.0)
	})
}

// A configured epoch is a wall-clock time that shards share, so the replay follows a step of the wall clock.
func TestGivenEpochFollowsTheWallClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wallClock{}
		b := newBench(t, every(100, 100*time.Millisecond), once, &fake{}, func(o *Workload) {
			o.Wall, o.Epoch = w.now, w.now().Add(1010*time.Millisecond)
		})
		time.AfterFunc(3*time.Second+50*time.Millisecond, func() { w.step(4 * time.Second) })
		b.run(t, t.Context(), t.Context())
		want(t, "rows", b.sentOnce(t)[0], slices.Concat(span(0, 21), span(61, 100)))
		want(t, "missed", b.kept.dropped, map[measure.DropReason]int{measure.Missed: 40})
	})
}

// sleepy is the sleeper of a process that is stopped until to: the first sleep that ends after from lasts until then.
type sleepy struct {
	*Timers
	from, to time.Time
}

func (s *sleepy) Until(at time.Time) {
	s.Timers.Until(at)
	if now := time.Now(); now.After(s.from) && now.Before(s.to) {
		<-time.After(s.to.Sub(now))
	}
}

// A process that was stopped for 20 s sends no backlog. Rows that fell due are missed, whether they were read from the
// trace before or after the stop. The next row is sent on time.
func TestStoppedProcess(t *testing.T) {
	for _, o := range []schedule.Options{
		minutes,
		{Repeat: schedule.Repeat{Mode: schedule.Loops, Align: schedule.Start, Every: time.Minute}},
		once,
	} {
		synctest.Test(t, func(t *testing.T) {
			var s *sleepy
			var told []string
			b := newBench(t, every(600, 100*time.Millisecond), o, &fake{ttft: time.Millisecond}, func(o *Workload) {
				o.Noted = func(_ slog.Level, text string) { told = append(told, text) }
				s = &sleepy{Timers: NewTimers(), from: time.Now().Add(20 * time.Second), to: time.Now().Add(40*time.Second + 50*time.Millisecond)}
				o.Pacer.sleeper = s
			})
			ctx, end := context.WithCancel(t.Context())
			time.AfterFunc(59*time.Second, end)
			b.run(t, ctx, t.Context())
			for _, r := range b.kept.all {
				if p := r.Timeline.Planned; p.After(s.from.Add(100*time.Millisecond)) && !p.After(s.to) {
					t.Errorf("%s: sent, planned at %v", r.ID, p)
				}
			}
			rows := 0
			for _, sent := range b.sentOnce(t) {
				rows += len(sent)
			}
			missed := int(b.counter(t, "replayd_requests_dropped_total", "missed"))
			want(t, "all rows", rows+missed, int(b.counter(t, "replayd_requests_expected_total", "")))
			if len(told) != 1 || !strings.HasPrefix(told[0], "this process was not running for a while: rows due until now are missed (w, by ") {
				t.Errorf("want one word about it, got %q", told)
			}
			if missed < 199 || missed > 201 {
				t.Errorf("want some 200 missed, got %d", missed)
			}
		})
	}
}

// instant returns an instant of a runner's wall clock.
func instant(b *bench, at time.Time) Instant {
	return Instant{Own: b.w.clock().At(at), Wall: at.Round(0)}
}

// A replaced runner hands over at a planned time: exactly one of the two runners sends each row.
func TestHandover(t *testing.T) {
	for i := range 20 {
		synctest.Test(t, func(t *testing.T) {
			f := &fake{ttft: 700 * time.Millisecond}
			slow := func(o *Workload) { o.Drain = time.Minute }
			old := newBench(t, every(600, 100*time.Millisecond), minutes, f, slow)
			begin := time.Now()
			at := begin.Add(20*time.Second + time.Duration(i)*37*time.Millisecond)
			next := newBench(t, every(600, 100*time.Millisecond), minutes, f, func(o *Workload) { o.Begin, o.Lanes = at, 99 })
			time.AfterFunc(at.Sub(begin)-time.Second, func() { old.Retire(instant(old, at)) })
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				old.run(t, t.Context(), t.Context())
			}()
			time.AfterFunc(at.Sub(begin)+10*time.Millisecond, func() { want(t, "phase of the old one", old.State().Phase, Draining) })
			time.AfterFunc(at.Sub(begin)+720*time.Millisecond, func() { want(t, "phase of the old one", old.State().Phase, Over) })
			<-time.After(at.Sub(begin) - time.Second)
			ctx, end := context.WithCancel(t.Context())
			time.AfterFunc(30*time.Second, end)
			next.run(t, ctx, t.Context())
			before, after := old.sentOnce(t), next.sentOnce(t)
			loop := begin.Unix() / 60
			rows := slices.Concat(before[loop], after[loop])
			if len(rows) < 400 || !slices.Equal(rows, span(0, len(rows))) {
				t.Errorf("handover at %v: want every row once, got %v", at.Sub(begin), rows)
			}
			<-ended
			want(t, "loops completed by the old one", old.counter(t, "replayd_loops_completed_total", ""), 0.0)
		})
	}
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, every(600, 100*time.Millisecond), minutes, &fake{ttft: time.Millisecond}, nil)
		time.AfterFunc(10*time.Second+50*time.Millisecond, func() { b.Pause(true) })
		time.AfterFunc(15*time.Second, func() {
			s := b.State()
			want(t, "phase", s.Phase, Paused)
			want(t, "position", s.Position, 15*time.Second)
			want(t, "next loop", s.Next, 45*time.Second)
			want(t, "paused", b.counter(t, "replayd_paused", ""), 1.0)
			keep, ahead, _, _ := b.connections()
			want(t, "connections for what will be dropped", keep[0]+ahead[0], 0)
		})
		time.AfterFunc(20*time.Second+50*time.Millisecond, func() { b.Pause(false) })
		ctx, end := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Second+50*time.Millisecond, end)
		b.run(t, ctx, t.Context())
		rows := b.sentOnce(t)[time.Now().Unix()/60]
		want(t, "rows", rows, slices.Concat(span(0, 101), span(201, 301)))
		want(t, "dropped", b.kept.dropped, map[measure.DropReason]int{measure.Paused: 100})
		want(t, "paused", b.counter(t, "replayd_paused", ""), 0.0)
		want(t, "phase", b.State().Phase, Over)
	})
}

// A plan whose last rows are dropped ends when they are dropped, both after a pause and after a stop of the process.
func TestEndThatIsDropped(t *testing.T) {
	paused := func(b *bench) { time.AfterFunc(5*time.Second, func() { b.Pause(true) }) }
	for name, c := range map[string]struct {
		begin func(*bench)
		sleep func(*Workload)
		most  time.Duration
	}{
		"paused": {paused, func(*Workload) {}, 12 * time.Second},
		"stopped": {func(*bench) {}, func(o *Workload) {
			o.Pacer.sleeper = &sleepy{
				Timers: NewTimers(), from: time.Now().Add(8 * time.Second),
				to: time.Now().Add(40*time.Second + 50*time.Millisecond),
			}
		}, 41 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			begin := time.Now()
			b := newBench(t, every(100, 100*time.Millisecond), once, &fake{ttft: time.Millisecond}, c.sleep)
			c.begin(b)
			ctx, end := context.WithTimeout(t.Context(), time.Hour)
			defer end()
			b.run(t, ctx, t.Context())
			if d := time.Since(begin); d > c.most {
				t.Errorf("%s: over after %v, want %v at most", name, d, c.most)
			}
			want(t, name+": loops", b.counter(t, "replayd_loops_completed_total", ""), 1.0)
			want(t, name+": expected", b.counter(t, "replayd_requests_expected_total", ""), 100.0)
			b.Pause(false)
			b.Pause(true) // no goroutine is left to wake
			b.Retire(instant(b, time.Now()))
		})
	}
}

// closing is a sleeper that records a Wake after Close, when its descriptor may belong to another file.
type closing struct {
	*Timers
	closed, woken atomic.Bool
}

func (c *closing) Close() error { c.closed.Store(true); return c.Timers.Close() }

func (c *closing) Wake() {
	if c.closed.Load() {
		c.woken.Store(true)
	}
	c.Timers.Wake()
}

func TestNoWakeAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &closing{Timers: NewTimers()}
		b := newBench(t, every(3, 100*time.Millisecond), once, &fake{}, func(o *Workload) { o.Pacer.sleeper = c })
		b.run(t, t.Context(), t.Context())
		b.Pause(true)
		b.Retire(instant(b, time.Now()))
		want(t, "closed", c.closed.Load(), true)
		want(t, "woken after that", c.woken.Load(), false)
	})
}

// A row over the limits is counted at its planned time by the runner that owns it. The old runner does not count rows
// that it has read ahead and that belong to its successor.
func TestFilteredRowsAreHandedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows := make([]trace.Record, 600)
		for i := range rows {
			rows[i] = trace.Record{Offset: time.Duration(i) * 100 * time.Millisecond, InputTokens: 9}
			if i%25 == 0 {
				rows[i].InputTokens = 4
			}
		}
		f := &fake{ttft: time.Millisecond}
		limit := func(o *Workload) { o.MaxInput = 5 }
		at := time.Now().Add(20*time.Second + 37*time.Millisecond)
		old := newBench(t, source(slices.Clone(rows)...), minutes, f, limit)
		next := newBench(t, source(slices.Clone(rows)...), minutes, f, func(o *Workload) { limit(o); o.Begin = at })
		time.AfterFunc(19*time.Second, func() { old.Retire(instant(old, at)) })
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			old.run(t, t.Context(), t.Context())
		}()
		<-time.After(19 * time.Second)
		ctx, end := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Second+50*time.Millisecond, end)
		next.run(t, ctx, t.Context())
		<-ended
		filtered := func(b *bench) float64 { return b.counter(t, "replayd_requests_dropped_total", "filtered") }
		want(t, "filtered before", filtered(old), 201.0-9)
		want(t, "filtered after", filtered(next), 491.0-201-(20-9))
		want(t, "expected", len(old.kept.all)+len(next.kept.all), 20)
	})
}

// Between two runs of a cron plan no row is sent, and State gives the time until the next run.
func TestCronWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		daily := schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Cron, Cron: "0 3 * * *"}}
		b := newBench(t, every(600, 100*time.Millisecond), daily, &fake{ttft: time.Millisecond}, nil)
		<-time.After(2 * time.Hour) // the bubble's clock starts at midnight
		for when, want1 := range map[time.Duration]State{
			time.Minute:                {Phase: Waiting, Next: 59 * time.Minute},
			time.Hour + 30*time.Second: {Phase: Running, Position: 30 * time.Second, Next: 24*time.Hour - 30*time.Second},
			2 * time.Hour:              {Phase: Waiting, Position: 59900 * time.Millisecond, Next: 23 * time.Hour},
		} {
			time.AfterFunc(when, func() {
				s := b.State()
				want1.Loop, want1.Period, want1.Due = s.Loop, 24*time.Hour, s.Due
				want(t, fmt.Sprint("after ", when), s, want1)
			})
		}
		ctx, end := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Hour, end)
		b.run(t, ctx, t.Context())
		want(t, "requests", len(b.kept.all), 600)
	})
}

// A loop that is entered again, because the clock was set back, keeps its state. A message that is being built
// meanwhile has the same text as one that is built afterwards.
func TestLoopIsEnteredAgainWhileAMessageIsBuilt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, rows(1), minutes, &fake{}, nil)
		begin := dispatch.Event{Kind: dispatch.LoopBegun, Plan: schedule.Loop{Start: epoch}}
		b.deliver(begin)
		loop := b.d.Loop(0)
		row := &dispatch.Row{Due: schedule.Due{Record: trace.Record{InputTokens: 4}, At: time.Now().Add(time.Hour), Loop: begin.Plan}}
		b.deliver(dispatch.Event{Kind: dispatch.RowRead, Loop: loop, Row: row})
		builder, m := sync.WaitGroup{}, dispatch.Message{}
		builder.Go(func() { m, _ = b.message(row, nil, nil) })
		b.deliver(begin)
		want(t, "loop", b.d.Loop(0) == loop, true)
		builder.Wait()
		again, _ := b.message(row, nil, nil)
		want(t, "message", string(again.Body), string(m.Body))
	})
}
