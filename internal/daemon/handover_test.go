package daemon

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/schedule"
	"replayd/internal/sim"

	"replayd/test/outside"
)

// wired connects a generation to a simulated engine in virtual time. The finished requests go to into.
func wired(t *testing.T, into *finished) func(o *Options) {
	t.Helper()
	o := sim.Defaults()
	o.TTFT, o.ITL = time.Millisecond, time.Millisecond
	e, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	wire, server := outside.NewPipes(), e.Server()
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(wire) })
	t.Cleanup(func() {
		_ = server.Close()
		serving.Wait()
		<-time.After(time.Second) // net/http waits a moment before it closes a connection whose request body it has not read
	})
	return func(o *Options) { o.Dial, o.Observers = wire.Dial, []replay.Observer{into} }
}

// finished collects the finished requests.
type finished struct {
	mu  sync.Mutex
	all []measure.Request
}

// Observe implements replay.Observer.
func (f *finished) Observe(r *measure.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept := *r
	kept.ID = strings.Clone(r.ID)
	f.all = append(f.all, kept)
}

// loops returns the rows of a workload by loop. All of them must be ok and on time.
func (f *finished) loops(t *testing.T, workload string) map[int64][]int {
	t.Helper()
	loops := map[int64][]int{}
	for _, r := range f.all {
		if !strings.HasPrefix(r.ID, workload+"/") {
			continue
		}
		if r.Outcome != measure.OK || r.Lateness() != 0 {
			t.Errorf("%s: %s: %s, late by %v", r.ID, r.Outcome, r.Error, r.Lateness())
		}
		loops[r.Loop] = append(loops[r.Loop], r.Row)
	}
	return loops
}

// Reloads that change some of the workloads lose and repeat no row. An unchanged workload keeps running, and the others
// are handed over. The drain time belongs to all workloads, and changing it changes no workload.
func TestReloadLosesNothing(t *testing.T) {
	path := write(t, "trace.jsonl", rows(90)) // due in the first 0.9 s of each second
	synctest.Test(t, func(t *testing.T) {
		var f finished
		options := wired(t, &f)
		c := conf([]config.Target{target("t", "http://sim:1")}, looped("same", "t", path), looped("lanes", "t", path), looped("objective", "t", path))
		c.Workloads[2].Shard = schedule.Shard{Index: 1, Of: 2}
		b := keep(t, c, options)
		for i := range 8 {
			<-time.After(time.Duration(100+130*i) * time.Millisecond) // the previous handover may still be pending
			if err := <-b.reload(func(c *config.Config) {
				c.Workloads[1].Lanes = 100 + i
				c.Workloads[2].SLO.Objective = 0.9 + float64(i)/100
				c.Drain += time.Second
			}); err != nil {
				t.Fatal(err)
			}
		}
		<-time.After(3 * time.Second)
		b.stop()
		<-b.over
		for name, step := range map[string]int{"same": 1, "lanes": 1, "objective": 2} {
			loops := f.loops(t, name)
			first, last := int64(1<<62), int64(0)
			for n := range loops {
				first, last = min(first, n), max(last, n)
			}
			if len(loops) < 7 {
				t.Errorf("%s: want some loops, got %d", name, len(loops))
			}
			for n := first; n <= last; n++ {
				var want []int
				for row := step - 1; row < 90; row += step {
					want = append(want, row)
				}
				slices.Sort(loops[n])
				got := loops[n]
				if n == first { // it joins in the middle
					want = want[len(want)-min(len(want), len(got)):]
				}
				if n == last { // it is stopped in the middle
					want = want[:min(len(want), len(got))]
				}
				if !slices.Equal(got, want) {
					t.Errorf("%s: loop %d of %d to %d: want each row once, got %v", name, n, first, last, got)
				}
			}
		}
	})
}

// A reload that changes the rows says how many of the loop are not sent: of a closed loop those of which no request has
// begun, of an open one those that are due later.
func TestReloadTellsWhatIsCut(t *testing.T) {
	first, second := write(t, "a.jsonl", rows(900)), write(t, "b.jsonl", rows(901))
	for name, change := range map[string]func(w *config.Workload){
		"closed": func(w *config.Workload) { w.Arrival, w.Lanes = "concurrency", 1 },
		"open":   func(w *config.Workload) { w.Speed = 0.1 },
	} {
		synctest.Test(t, func(t *testing.T) {
			var f finished
			var log bytes.Buffer
			c := conf([]config.Target{target("t", "http://sim:1")}, once("w", "t", first))
			change(&c.Workloads[0])
			b := keep(t, c, wired(t, &f), func(o *Options) { o.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			<-time.After(800 * time.Millisecond) // the plan begins at 700 ms
			if err := <-b.reload(func(c *config.Config) { c.Workloads[0].Trace.Path = second }); err != nil {
				t.Fatal(err)
			}
			<-time.After(20 * time.Second)
			b.stop()
			<-b.over
			sent := 0
			for _, r := range f.all {
				if !strings.Contains(r.ID, "~") {
					sent++
				}
			}
			if want := fmt.Sprintf("not_sent=%d", 900-sent); sent == 0 || !strings.Contains(log.String(), want) {
				t.Errorf("%s: %d sent of the old rows: want %s, got\n%s", name, sent, want, log.String())
			}
		})
	}
}
