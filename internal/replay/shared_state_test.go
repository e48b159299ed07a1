package replay

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/measure"
)

// Two reloads follow each other before the requests of the first runner have ended. The runners together never exceed
// the lanes of the latest runner, unless an earlier runner has more in flight. In the end every lane is used again.
func TestRunnersShareLanes(t *testing.T) {
	for name, first := range map[string]bool{"of a closed loop": true, "of an open one": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now().Add(lead)
				o := closedLoop
				if !first {
					o = once
				}
				a := newBench(t, rows(50), o, &fake{ttft: 3 * time.Second}, func(w *Workload) { w.Lanes, w.MaxWait = 6, time.Hour })
				b := newBench(t, rows(50), closedLoop, &fake{ttft: time.Second}, func(w *Workload) {
					w.Lanes, w.Begin, w.After = 8, start.Add(time.Second), a.Runner
				})
				c := newBench(t, rows(50), closedLoop, &fake{ttft: time.Second}, func(w *Workload) {
					w.Lanes, w.Begin, w.After, w.Rows = 7, start.Add(1500*time.Millisecond), b.Runner, 21
				})
				a.Retire(instant(a, start.Add(time.Second)))
				b.Retire(instant(b, start.Add(1500*time.Millisecond)))
				flying := func() (n int) {
					for _, x := range []*bench{a, b, c} {
						n += int(x.counter(t, "replayd_requests_in_flight", ""))
					}
					return n
				}
				var mu sync.Mutex
				counts := map[time.Duration]int{}
				for _, after := range []time.Duration{900, 1400, 1900, 2900, 3900} {
					time.AfterFunc(lead+after*time.Millisecond, func() {
						n := flying()
						mu.Lock()
						defer mu.Unlock()
						counts[after] = n
					})
				}
				ended := make(chan struct{})
				for _, x := range []*bench{a, b} {
					go func() {
						x.run(t, t.Context(), t.Context())
						ended <- struct{}{}
					}()
				}
				c.run(t, t.Context(), t.Context())
				<-ended
				<-ended
				mu.Lock()
				defer mu.Unlock()
				theirs := 6
				if !first {
					theirs = counts[900]
				}
				want(t, "in flight", counts, map[time.Duration]int{900: theirs, 1400: 8, 1900: 8, 2900: 7, 3900: 7})
				want(t, "of the last", c.kept.outcomes(), map[measure.Outcome]int{measure.OK: 21})
				want(t, "runners kept in memory", len(c.runners), 0)
			})
		})
	}
}
