package gpu

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// holds requires these lines for all series whose names begin with one of names.
func (b *bench) holds(want string, names ...string) {
	b.Helper()
	var got []string
	for _, name := range names {
		if l := b.lines(namespace + name); l != "" {
			got = append(got, l)
		}
	}
	if got := strings.Join(got, "; "); got != want {
		b.Errorf("%q, want %q", got, want)
	}
}

// TestShow checks that a watch is exported once from Show until it ends: by Run, or by Close if it never ran.
func TestShow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		w := b.made(WatchOptions{Source: &script{answers: []answer{{devices: one(100)}}}})
		w.Show()
		w.Show()
		b.holds("up 0; scrape_errors_total 0", "up{", "scrape_errors_total{")
		end := b.run(w)
		pass(time.Second)
		b.holds("up 1; power_watts 100; age_seconds 1", "up{", "power_watts{", "age_seconds{")
		if err := end(); err != nil || b.page() != "" || len(b.collector.watches) > 0 {
			t.Errorf("ended with %v, and %d watches are shown", err, len(b.collector.watches))
		}

		s := &script{answers: []answer{{devices: one(100)}}, closing: errors.New("it stays open")}
		w = b.made(WatchOptions{Source: s})
		w.Show()
		if err := w.Close(); !errors.Is(err, s.closing) || s.closed != 1 || b.page() != "" {
			t.Errorf("closed %d times with %v, and the page has\n%s", s.closed, err, b.page())
		}
		idle := len(b.collector.idle)
		if err := b.made(WatchOptions{Source: &script{}, Target: "never shown"}).Close(); err != nil || len(b.collector.idle) != idle {
			t.Errorf("closed with %v, and it is remembered", err)
		}
	})
}

// TestReplacedWatch checks that a replacement exports the figures of its predecessor until its own first reading.
func TestReplacedWatch(t *testing.T) {
	series := []string{"up{", "power_watts{", "age_seconds{", "duplicate_devices{", "scrape_errors_total{"}
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		ends := []func() error{
			b.watch(WatchOptions{Source: &script{answers: []answer{{devices: one(300)}}}, Kind: SourceSMI, Address: "nvidia-smi"}),
			b.watch(WatchOptions{Source: &script{answers: []answer{{devices: one(100)}}}}),
		}
		replace := func(at int, o WatchOptions) {
			w := b.made(o)
			w.Show()
			_ = ends[at]()
			ends[at] = b.run(w)
		}
		pass(time.Second)
		b.holds("up 1; up 1; power_watts 100; age_seconds 1; age_seconds 1; duplicate_devices 0; duplicate_devices 1; scrape_errors_total 0; scrape_errors_total 0", series...)

		replace(1, WatchOptions{Source: &script{answers: []answer{{takes: time.Second, devices: one(200)}, {err: context.DeadlineExceeded}}}})
		pass(time.Second / 2)
		b.holds("up 1; up 1; power_watts 100; age_seconds 1.5; age_seconds 1.5; duplicate_devices 0; duplicate_devices 1; scrape_errors_total 0; scrape_errors_total 0", series...)
		pass(time.Second / 2)
		b.holds("up 1; up 1; power_watts 200; age_seconds 0; age_seconds 2; duplicate_devices 0; duplicate_devices 1; scrape_errors_total 0; scrape_errors_total 0", series...)

		replace(0, WatchOptions{Source: &script{answers: []answer{{takes: time.Second, devices: one(300)}}}, Kind: SourceSMI, Address: "nvidia-smi"})
		b.holds("up 1; up 1; power_watts 200; age_seconds 0; age_seconds 2; duplicate_devices 0; duplicate_devices 1; scrape_errors_total 0; scrape_errors_total 0", series...)

		// The failures continue too: two of the predecessor and a third of its own.
		pass(10 * time.Second)
		b.holds("up 0; up 1; power_watts 200; age_seconds 10; age_seconds 4; duplicate_devices 0; duplicate_devices 1; scrape_errors_total 2; scrape_errors_total 0", series...)
		replace(1, WatchOptions{Source: &script{answers: []answer{{takes: time.Second, err: context.DeadlineExceeded}, {devices: one(400)}}}})
		pass(time.Second / 2)
		b.holds("up 0; up 1; power_watts 200; age_seconds 10.5; age_seconds 4.5; duplicate_devices 0; duplicate_devices 1; scrape_errors_total 2; scrape_errors_total 0", series...)
		pass(time.Second / 2)
		b.holds("up 0; up 1; power_watts 300; age_seconds 11; age_seconds 0; duplicate_devices 0; duplicate_devices 0; scrape_errors_total 3; scrape_errors_total 0", series...)

		// A watch with another selection starts without figures.
		replace(1, WatchOptions{Source: &script{answers: []answer{{takes: time.Second, devices: one(500)}}}, Select: Select{UUID: []string{"GPU-"}}})
		pass(time.Second / 2)
		b.holds("up 0; up 1; power_watts 300; age_seconds 0.5; duplicate_devices 0; duplicate_devices 0; scrape_errors_total 3; scrape_errors_total 0", series...)

		if got := strings.Count(b.log.String(), "GPUs are ignored"); got != 1 {
			t.Errorf("told of the duplicate %d times, want once:\n%s", got, b.log.String())
		}
		for _, end := range ends {
			_ = end()
		}
	})
}

// TestCollectHoldsNoLock checks that a slow scrape does not block a watch.
func TestCollectHoldsNoLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		s := &script{answers: []answer{{err: context.DeadlineExceeded}}}
		end := b.watch(WatchOptions{Source: s})
		pass(0)
		metrics := make(chan prometheus.Metric) // unread: Collect blocks at the first metric
		go func() {
			b.collector.Collect(metrics)
			close(metrics)
		}()
		pass(10 * time.Second)
		if len(s.reads) != 3 {
			t.Errorf("%d readings in 10 s, want 3", len(s.reads))
		}
		_ = end()
		for range metrics {
		}
	})
}
