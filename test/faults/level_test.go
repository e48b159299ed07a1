//go:build faults

package faults_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// A level is the resources of an almost idle daemon.
type level struct {
	goroutines, files, heap float64
	buckets                 int // of the native histograms of all workloads: their series are kept for a return
}

// rest brings all workloads onto the page and counts their buckets. Then it removes all but one, which sends a request
// every 30 s, waits until no other request is in flight, and returns the minimum of several readings. The last heap
// profile is kept under name with the test's artifacts.
func (s *soak) rest(t *testing.T, name string) *level {
	t.Helper()
	s.bring(t, func(c *course) { c.on = true })
	least := &level{1e18, 1e18, 1e18, outside.ScrapeNative(t, s.URL()).NativeBuckets()}
	s.bring(t, func(c *course) { c.on = c.name == "rest" })
	outside.See(t, s.URL(), "no workload but rest", totalLimit+30*time.Second, func(p outside.Page) bool { return slices.Equal(p.Workloads(), []string{"rest"}) })
	tick := time.NewTicker(1130 * time.Millisecond) // out of step with the scrapes of each second: a page that is written has up to a MiB in use
	defer tick.Stop()
	for n := range 12 {
		<-tick.C
		heap := s.heap(t, name)
		p, err := outside.Scrape(t.Context(), s.URL())
		if err != nil {
			t.Fatal(err)
		}
		if n < 4 { // kept connections are closed after 4 s
			continue
		}
		now := p.Level()
		least.goroutines, least.files, least.heap = min(least.goroutines, now.Goroutines), min(least.files, now.Files), min(least.heap, heap)
	}
	return least
}

// heap returns the bytes on the daemon's heap just after a garbage collection. The metrics page would include up to 1.5
// MiB that the profile and the page itself have left.
func (s *soak) heap(t *testing.T, name string) float64 {
	t.Helper()
	var profile []byte
	for range 2 { // memory that the first collection finalizes is free after the second
		var status int
		var err error
		status, profile, err = outside.Call(t.Context(), http.DefaultClient, http.MethodGet, s.URL()+"/debug/pprof/heap?gc=1&debug=1")
		if err != nil || status != http.StatusOK {
			t.Fatalf("/debug/pprof/heap: want 200, got %d, %v", status, err)
		}
	}
	if err := os.WriteFile(filepath.Join(t.ArtifactDir(), name+".heap.txt"), profile, 0o600); err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(profile), "\n# HeapAlloc = ")
	text, _, _ := strings.Cut(after, "\n")
	bytes, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// compare compares the level at the end with the level after the first minute.
//
// Goroutines and files are counted. Two more of each are allowed: the lane and the connection of a request of rest, or
// of a scrape of the engine. One more for each reload, restart or lost connection would exceed that within seconds. The
// heap grows with the native histograms' buckets, at most 160 each: in client_golang 1.25 a bucket is in two maps and
// takes 256 bytes, by a count of 88 histograms with 20 to 158 of them. Exemplars and the live page's history are
// bounded too, and not yet full after a minute. In half an hour a leak of six bytes per request, or of 1.5 KiB per
// reload, would exceed that.
func (l *level) compare(t *testing.T, end *level) {
	t.Helper()
	const few, mib, bucket, spare = 2, 1 << 20, 256, 256 << 10
	t.Logf("%-24s %14s %14s", "at rest", "first minute", "end")
	t.Logf("%-24s %14.0f %14.0f", "goroutines", l.goroutines, end.goroutines)
	t.Logf("%-24s %14.0f %14.0f", "open files", l.files, end.files)
	t.Logf("%-24s %14d %14d", "native buckets", l.buckets, end.buckets)
	t.Logf("%-24s %14.2f %14.2f", "live heap, MiB", l.heap/mib, end.heap/mib)
	if end.goroutines > l.goroutines+few || end.files > l.files+few {
		t.Errorf("want at most %d goroutines or files more at the end", few)
	}
	if most := l.heap + float64((end.buckets-l.buckets)*bucket) + spare; end.heap > most {
		t.Errorf("want at most %.2f MiB of live heap, got %.2f", most/mib, end.heap/mib)
	}
}
