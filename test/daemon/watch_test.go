//go:build daemon

package daemon_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"replayd/test/outside"
)

// A watcher scrapes as Prometheus would and holds every page to what must be true of all of them: no counter of ours
// has fallen, also not against the time before its workload was gone, the sums balance, and the workloads that stay are
// there with all of their series.
type watcher struct {
	t       *testing.T
	url     string
	stay    []string           // workloads that must be on every page
	last    map[string]float64 // counters, those of workloads that are gone too
	gone    map[string]bool    // by workload
	present map[string]int     // series of each workload that stays, in the first page

	scrapes, fallen int
	returned        int // times that a workload came back
	wall            []time.Duration
	levels          []level
	running         sync.WaitGroup
	cancel          context.CancelFunc
}

// A level is what the process held at one scrape.
type level struct{ goroutines, files, heap, resident float64 }

// watch begins to scrape. Pages must come until stop.
func watch(t *testing.T, url string, every time.Duration, stay ...string) *watcher {
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{t: t, url: url, stay: stay, last: map[string]float64{}, gone: map[string]bool{}, present: map[string]int{}, cancel: cancel}
	w.running.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for ctx.Err() == nil {
			begin := time.Now()
			p, err := outside.Scrape(ctx, url)
			switch {
			case err == nil:
				w.wall = append(w.wall, time.Since(begin))
				w.check(p)
			case ctx.Err() == nil:
				t.Errorf("scrape %d: %v", w.scrapes, err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(w.stop)
	return w
}

// stop ends the scraping; what was seen may be read then.
func (w *watcher) stop() {
	w.cancel()
	w.running.Wait()
}

func (w *watcher) check(p page) {
	w.scrapes++
	for _, fault := range p.Balance() {
		w.t.Errorf("scrape %d: %s", w.scrapes, fault)
	}
	now := counters(p)
	for key, v := range now {
		if before, known := w.last[key]; known && v < before {
			w.fallen++
			if w.fallen <= 20 {
				w.t.Errorf("scrape %d: %s fell from %v to %v", w.scrapes, key, before, v)
			}
		}
	}
	maps.Copy(w.last, now)
	names := p.Workloads()
	for _, name := range names {
		if w.gone[name] {
			w.returned++
		}
		w.gone[name] = false
	}
	for name := range w.gone {
		w.gone[name] = !slices.Contains(names, name)
	}
	for _, name := range w.stay {
		series := 0
		for key := range now {
			if strings.HasPrefix(key, name+" ") {
				series++
			}
		}
		if first, known := w.present[name]; !known {
			w.present[name] = series
		} else if series != first {
			w.t.Errorf("scrape %d: %s: want its %d series, got %d", w.scrapes, name, first, series)
		}
	}
	w.levels = append(w.levels, level{
		goroutines: p.Sum("go_goroutines"), files: p.Sum("process_open_fds"),
		heap: p.Sum("go_memstats_heap_inuse_bytes"), resident: p.Sum("process_resident_memory_bytes"),
	})
}

// settled compares the medians of the first and the last third, without the first tenth, in which the process warms up.
func (w *watcher) settled(strict bool) {
	t := w.t
	t.Helper()
	all := w.levels[len(w.levels)/10:]
	third := len(all) / 3
	if third == 0 {
		t.Fatalf("want more than %d scrapes", len(w.levels))
	}
	t.Logf("%-28s %12s %12s %12s", "level, medians of thirds", "first", "last", "highest")
	compare := func(name string, unit float64, of func(level) float64, most func(first float64) float64) {
		first, last, highest := median(all[:third], of), median(all[len(all)-third:], of), 0.0
		for _, l := range w.levels {
			highest = max(highest, of(l))
		}
		t.Logf("%-28s %12.1f %12.1f %12.1f", name, first/unit, last/unit, highest/unit)
		if strict && last > most(first) {
			t.Errorf("%s: want at most %.1f after %.1f, got %.1f", name, most(first)/unit, first/unit, last/unit)
		}
	}
	const handful, mib = 8, 1 << 20
	few := func(first float64) float64 { return first + handful }
	compare("goroutines", 1, func(l level) float64 { return l.goroutines }, few)
	compare("open files", 1, func(l level) float64 { return l.files }, few)
	compare("heap in use, MiB", mib, func(l level) float64 { return l.heap }, func(first float64) float64 { return 1.3*first + 4*mib })
	compare("resident, MiB", mib, func(l level) float64 { return l.resident }, func(first float64) float64 { return 1.3*first + 16*mib })
}

func median(all []level, of func(level) float64) float64 {
	var values []float64
	for _, l := range all {
		values = append(values, of(l))
	}
	slices.Sort(values)
	return values[len(values)/2]
}
