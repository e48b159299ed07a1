//go:build faults

package faults_test

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"replayd/test/outside"
)

// A level is what the daemon holds when it has next to nothing to do.
type level struct{ goroutines, files, heap float64 }

// rest takes all workloads away but one that sends a request every 30 s, waits until nothing of the others is in flight, and
// looks at what the daemon holds then: the least of some scrapes, each after a garbage collection, which the page of pprof is
// asked for.
func (s *soak) rest(t *testing.T) *level {
	t.Helper()
	s.bring(t, func(c *course) { c.on = c.name == "rest" })
	outside.See(t, s.URL(), "no workload but rest", totalLimit+30*time.Second, func(p outside.Page) bool { return slices.Equal(p.Workloads(), []string{"rest"}) })
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	least := level{1e18, 1e18, 1e18}
	for n := range 12 {
		<-tick.C
		for range 2 { // what the first one finds to finalize is free after the second
			status, _, err := outside.Call(t.Context(), http.DefaultClient, http.MethodGet, s.URL()+"/debug/pprof/heap?gc=1")
			if err == nil && status != http.StatusOK {
				err = fmt.Errorf("/debug/pprof/heap: want 200, got %d", status)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		p, err := outside.Scrape(t.Context(), s.URL())
		if err != nil {
			t.Fatal(err)
		}
		if n < 4 { // kept connections are let go after 4 s
			continue
		}
		now := p.Level()
		least = level{min(least.goroutines, now.Goroutines), min(least.files, now.Files), min(least.heap, p.Sum("go_memstats_heap_alloc_bytes"))}
	}
	return &least
}

// compare holds the level at the end to that after the first minute.
//
// Goroutines and files are counted. Two more of each are the lane and the connection of a request that rest, or a scrape of the
// engine, has just sent; one for each reload, restart or lost connection would be more than that after seconds. The heap may have grown by what is bounded and not yet full after a minute: the
// buckets of the native histograms, at most 160 in each of 11 of each of 8 workloads at about 100 bytes, and the live page's
// past. A timeline or a body that stays with each request would be 10 times that after some minutes.
func (l *level) compare(t *testing.T, end *level) {
	t.Helper()
	const few, mib = 2, 1 << 20
	t.Logf("%-24s %14s %14s", "at rest", "first minute", "end")
	t.Logf("%-24s %14.0f %14.0f", "goroutines", l.goroutines, end.goroutines)
	t.Logf("%-24s %14.0f %14.0f", "open files", l.files, end.files)
	t.Logf("%-24s %14.2f %14.2f", "live heap, MiB", l.heap/mib, end.heap/mib)
	if end.goroutines > l.goroutines+few || end.files > l.files+few {
		t.Errorf("want at most %d goroutines or files more at the end", few)
	}
	if most := l.heap + 2*mib; end.heap > most {
		t.Errorf("want at most %.2f MiB of live heap, got %.2f", most/mib, end.heap/mib)
	}
}
