package outside

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"replayd/internal/stats"
)

// A Watcher scrapes as Prometheus would and checks what must hold for all pages: no counter of replayd has fallen, also
// not after a workload was gone for a while, the ledgers balance, and the workloads that stay have all their series.
type Watcher struct {
	t       *testing.T
	url     string
	stay    []string           // workloads that must be on every page
	Last    map[string]float64 // counters, including those of removed workloads
	gone    map[string]bool    // by workload
	present map[string]int     // series of each staying workload on the first page

	Scrapes, Fallen int
	Returned        int // times that a removed workload came back
	Wall            []time.Duration
	Levels          []Level
	running         sync.WaitGroup
	cancel          context.CancelFunc
}

// A Level is the resources of the process at one scrape.
type Level struct{ Goroutines, Files, Heap, Resident float64 }

// Watch starts to scrape. Pages must be served until Stop.
func Watch(t *testing.T, url string, every time.Duration, stay ...string) *Watcher {
	ctx, cancel := context.WithCancel(t.Context())
	w := &Watcher{t: t, url: url, stay: stay, Last: map[string]float64{}, gone: map[string]bool{}, present: map[string]int{}, cancel: cancel}
	w.running.Go(func() {
		tick := time.NewTicker(every)
		defer tick.Stop()
		for ctx.Err() == nil {
			begin := time.Now()
			p, err := Scrape(ctx, url)
			switch {
			case err == nil:
				w.Wall = append(w.Wall, time.Since(begin))
				w.check(p)
			case ctx.Err() == nil:
				t.Errorf("scrape %d: %v", w.Scrapes, err)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(w.Stop)
	return w
}

// Stop ends the scraping. The results may be read after it.
func (w *Watcher) Stop() {
	w.cancel()
	w.running.Wait()
}

func (w *Watcher) check(p Page) {
	w.Scrapes++
	for _, fault := range p.Balance() {
		w.t.Errorf("scrape %d: %s", w.Scrapes, fault)
	}
	now := p.Counters()
	for key, v := range now {
		if before, known := w.Last[key]; known && v < before {
			w.Fallen++
			if w.Fallen <= 20 {
				w.t.Errorf("scrape %d: %s fell from %v to %v", w.Scrapes, key, before, v)
			}
		}
	}
	maps.Copy(w.Last, now)
	names := p.Workloads()
	for _, name := range names {
		if w.gone[name] {
			w.Returned++
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
			w.t.Errorf("scrape %d: %s: want its %d series, got %d", w.Scrapes, name, first, series)
		}
	}
	w.Levels = append(w.Levels, p.Level())
}

// Level returns the level that the page shows.
func (p Page) Level() Level {
	return Level{
		Goroutines: p.Sum("go_goroutines"), Files: p.Sum("process_open_fds"),
		Heap: p.Sum("go_memstats_heap_inuse_bytes"), Resident: p.Sum("process_resident_memory_bytes"),
	}
}

// Settled compares the medians of the first and the last third, without the first tenth, in which the process warms up.
func (w *Watcher) Settled(strict bool) {
	t := w.t
	t.Helper()
	all := w.Levels[len(w.Levels)/10:]
	third := len(all) / 3
	if third == 0 {
		t.Fatalf("want more than %d scrapes", len(w.Levels))
	}
	t.Logf("%-28s %12s %12s %12s", "level, medians of thirds", "first", "last", "highest")
	compare := func(name string, unit float64, of func(Level) float64, most func(first float64) float64) {
		first, last, highest := median(all[:third], of), median(all[len(all)-third:], of), 0.0
		for _, l := range w.Levels {
			highest = max(highest, of(l))
		}
		t.Logf("%-28s %12.1f %12.1f %12.1f", name, first/unit, last/unit, highest/unit)
		if strict && last > most(first) {
			t.Errorf("%s: want at most %.1f after %.1f, got %.1f", name, most(first)/unit, first/unit, last/unit)
		}
	}
	const handful, mib = 8, 1 << 20
	few := func(first float64) float64 { return first + handful }
	compare("goroutines", 1, func(l Level) float64 { return l.Goroutines }, few)
	compare("open files", 1, func(l Level) float64 { return l.Files }, few)
	compare("heap in use, MiB", mib, func(l Level) float64 { return l.Heap }, func(first float64) float64 { return 1.3*first + 4*mib })
	compare("resident, MiB", mib, func(l Level) float64 { return l.Resident }, func(first float64) float64 { return 1.3*first + 16*mib })
}

func median(all []Level, of func(Level) float64) float64 {
	var values []float64
	for _, l := range all {
		values = append(values, of(l))
	}
	return stats.PercentileOf(50, values)
}
