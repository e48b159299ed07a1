package daemon

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/schedule"
)

// The wall clock is set before, between and after two reloads. With loops aligned to the wall clock, no row is sent
// twice and only rows that the clock skips are left out. With loops aligned to the start, the workload is handed over a
// second later.
func TestHandoverWhenTheClockIsSet(t *testing.T) {
	path := write(t, "trace.jsonl", rows(90)) // due in the first 0.9 s of each loop
	const first, second = 10 * time.Second, 10*time.Second + 400*time.Millisecond
	steps := []time.Duration{
		-300 * time.Millisecond, 5 * time.Second, 300 * time.Millisecond, -1500 * time.Millisecond,
		-5 * time.Second, -time.Hour,
	}
	if testing.Short() {
		steps = steps[:2]
	}
	for _, align := range []string{"wall_clock", "start"} {
		for _, step := range steps {
			for _, when := range []time.Duration{first - 2*time.Second, first - 5*time.Millisecond, first + 200*time.Millisecond, second + 100*time.Millisecond} {
				name := fmt.Sprintf("%s, set by %v at %v", align, step, when)
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						var f finished
						var ahead atomic.Int64
						options := wired(t, &f)
						c := conf([]config.Target{target("t", "http://sim:1")}, looped("w", "t", path))
						c.Workloads[0].Repeat.Every, c.Workloads[0].Repeat.Align = 20*time.Second, schedule.Align(align)
						c.Workloads[0].Trace.Path = path
						c.Workloads[0].Speed = 0.05                                          // a row each 200 ms
						begin := time.Now().Truncate(20 * time.Second).Add(40 * time.Second) // begin of a loop
						<-time.After(time.Until(begin.Add(-time.Second)))
						b := keep(t, c, options, func(o *Options) {
							o.Wall = func() time.Time { return time.Now().Round(0).Add(time.Duration(ahead.Load())) }
						})
						time.AfterFunc(time.Until(begin)+when, func() { ahead.Store(int64(step)) })
						for i, at := range []time.Duration{first, second} {
							<-time.After(at - time.Since(begin))
							if err := <-b.reload(func(c *config.Config) { c.Workloads[0].Lanes = 100 + i }); err != nil {
								t.Fatal(err)
							}
						}
						<-time.After(35*time.Second - time.Since(begin))
						b.stop()
						<-b.over
						if align == "wall_clock" {
							f.once(t, name, step, begin)
						} else {
							f.steady(t, name, begin)
						}
					})
				})
			}
		}
	}
}

// once checks that no row was sent twice, and that only rows that the step of the clock skips were left out.
func (f *finished) once(t *testing.T, name string, step time.Duration, begin time.Time) {
	t.Helper()
	byLoop := map[int64][]int{}
	for _, r := range f.all {
		if r.Outcome != measure.OK {
			t.Errorf("%s: %s: %s: %s", name, r.ID, r.Outcome, r.Error)
		}
		byLoop[r.Loop] = append(byLoop[r.Loop], r.Row)
	}
	for loop, got := range byLoop {
		slices.Sort(got)
		if n := len(slices.Compact(slices.Clone(got))); n != len(got) {
			t.Errorf("%s: loop %d: a row was sent twice: %v", name, loop, got)
		}
	}
	here := begin.Unix() / 20
	if step.Abs() < 20*time.Second && step < time.Second { // otherwise the clock skips rows
		if got := byLoop[here]; len(got) != 90 {
			t.Errorf("%s: want 90 rows of the first loop, got %v", name, got)
		}
	}
}

// steady checks that requests are at most 1.2 s apart around the handovers, and at least 200 ms apart after them.
func (f *finished) steady(t *testing.T, name string, begin time.Time) {
	t.Helper()
	slices.SortFunc(f.all, func(a, b measure.Request) int { return a.Timeline.Write.Compare(b.Timeline.Write) })
	var last time.Time
	for i, r := range f.all {
		at := r.Timeline.Write
		if gap := at.Sub(last); i > 0 && (gap < 199*time.Millisecond && at.Sub(begin) > 12*time.Second || gap > 1200*time.Millisecond && at.Sub(begin) < 18*time.Second) {
			t.Errorf("%s: %v after the request before, %v after the begin: %s", name, gap, at.Sub(begin), r.ID)
		}
		last = at
	}
}
