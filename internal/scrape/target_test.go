package scrape

import (
	"errors"
	"math"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// The figures of a lost engine stay for two missed scrapes and disappear with the third; up stays 0.
func TestEngineIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		e.say(`vllm:num_requests_waiting{engine="0"} 3`)
		figures := []string{"up", "requests_waiting", "age_seconds"}
		target := f.target(t, e, TargetOptions{})
		if _, err := target.Load(); err == nil || !errors.Is(err, ErrNotScraped) {
			t.Errorf("before the first scrape: got %v", err)
		}
		while(t, target, func() {
			pass(time.Second)
			f.want(t, slices.Clone(figures), `age_seconds{address="engine:8000",target="vllm"} 1`, `requests_waiting{address="engine:8000",rank="0",target="vllm"} 3`, `up{address="engine:8000",target="vllm"} 1`)
			e.mu.Lock()
			e.status = http.StatusServiceUnavailable
			e.mu.Unlock()
			pass(9 * time.Second) // after two more failed scrapes
			f.want(t, slices.Clone(figures), `age_seconds{address="engine:8000",target="vllm"} 10`, `requests_waiting{address="engine:8000",rank="0",target="vllm"} 3`, `up{address="engine:8000",target="vllm"} 0`)
			if l, err := target.Load(); err != nil || l.Waiting != 3 || !math.IsNaN(l.KVCacheUsage) {
				t.Errorf("two missed scrapes: want 3 waiting and no usage, got %+v, %v", l, err)
			}
			pass(5 * time.Second)
			f.want(t, slices.Clone(figures), `age_seconds{address="engine:8000",target="vllm"} 15`, `up{address="engine:8000",target="vllm"} 0`)
			if _, err := target.Load(); err == nil || !strings.Contains(err.Error(), "503") {
				t.Errorf("three missed scrapes: want to be blind and told why, got %v", err)
			}
			f.want(t, []string{"scrape_errors_total"},
				`scrape_errors_total{address="engine:8000",reason="connect",target="vllm"} 0`, `scrape_errors_total{address="engine:8000",reason="content_type",target="vllm"} 0`,
				`scrape_errors_total{address="engine:8000",reason="http",target="vllm"} 3`, `scrape_errors_total{address="engine:8000",reason="parse",target="vllm"} 0`,
				`scrape_errors_total{address="engine:8000",reason="stale",target="vllm"} 0`,
				`scrape_errors_total{address="engine:8000",reason="timeout",target="vllm"} 0`, `scrape_errors_total{address="engine:8000",reason="too_large",target="vllm"} 0`,
				`scrape_errors_total{address="engine:8000",reason="unknown",target="vllm"} 0`)
			e.mu.Lock()
			e.status = 0
			e.mu.Unlock()
			pass(5 * time.Second)
			f.want(t, []string{"up", "requests_waiting"}, `requests_waiting{address="engine:8000",rank="0",target="vllm"} 3`, `up{address="engine:8000",target="vllm"} 1`)
		})
		f.want(t, slices.Clone(figures))
		if n := strings.Count(f.log.String(), "cannot be scraped"); n != 1 {
			t.Errorf("want one line about the loss, got %d:\n%s", n, f.log.String())
		}
	})
}

// A cache's copy of the page is no page: the guard becomes blind, and the log says so once. So is a page that does not count what has ended.
func TestEngineBehindACache(t *testing.T) {
	for name, c := range map[string]struct {
		ends  bool   // requests end at the engine
		age   string // of the cache's copies
		says  string
		blind bool
	}{
		"idle":               {},
		"a cache, fresh":     {ends: false, age: "4"},
		"a cache":            {age: "90", says: "a cache's copy that is 1m30s old", blind: true},
		"it counts no more":  {ends: true, says: "that have ended, got the same bytes", blind: true},
		"a copy, and counts": {ends: true, age: "7", says: "a cache's copy", blind: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, e := newFixture(), &server{}
				e.say(`vllm:num_requests_waiting{engine="0"} 3`, `vllm:generation_tokens_total{engine="0"} 500`)
				ended := int64(0)
				target := f.target(t, e, TargetOptions{Answered: func() int64 { return ended }})
				while(t, target, func() {
					pass(time.Second)
					e.set(func() { e.age = c.age })
					for range 12 {
						pass(5 * time.Second)
						if c.ends {
							ended++
						}
					}
					if l, err := target.Load(); (err != nil) != c.blind || err == nil && l.Waiting != 3 {
						t.Errorf("want it blind: %v; got %+v, %v", c.blind, l, err)
					}
				})
				if n := strings.Count(f.log.String(), "cannot be scraped"); n > 1 || (n == 1) != c.blind || !strings.Contains(f.log.String(), c.says) {
					t.Errorf("want one line at most, that says %q, got\n%s", c.says, f.log.String())
				}
			})
		})
	}
}

// A scrape that replayd cannot make for want of a descriptor says nothing about the engine: it stays up and has no error. Figures that were
// not read anew disappear all the same.
func TestOwnShortageIsNotTheEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		e.say(`vllm:num_requests_waiting{engine="0"} 3`)
		target := f.target(t, e, TargetOptions{})
		while(t, target, func() {
			pass(time.Second)
			e.mu.Lock()
			e.fails = &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
			e.mu.Unlock()
			pass(9 * time.Second)
			f.want(t, []string{"up", "requests_waiting"}, `requests_waiting{address="engine:8000",rank="0",target="vllm"} 3`, `up{address="engine:8000",target="vllm"} 1`)
			pass(15 * time.Second)
			f.want(t, []string{"up", "requests_waiting", "restarts_total"}, `restarts_total{address="engine:8000",target="vllm"} 0`, `up{address="engine:8000",target="vllm"} 1`)
			if l, err := target.Load(); err == nil || !l.Unread {
				t.Errorf("want no load after it was not read for so long, by replayd's own fault, got %+v, %v", l, err)
			}
			e.mu.Lock()
			e.fails = nil
			e.mu.Unlock()
			pass(5 * time.Second)
			f.want(t, []string{"up", "requests_waiting"}, `requests_waiting{address="engine:8000",rank="0",target="vllm"} 3`, `up{address="engine:8000",target="vllm"} 1`)
		})
		if n := strings.Count(f.log.String(), "replayd itself lacks a resource"); n != 1 || strings.Contains(f.log.String(), "cannot be scraped") {
			t.Errorf("want one line about the shortage, got %d:\n%s", n, f.log.String())
		}
	})
}

// Scrapes are whole intervals apart. A hanging scrape times out after three quarters of an interval.
func TestEngineHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		e.say(`vllm:num_requests_waiting{engine="0"} 3`)
		while(t, f.target(t, e, TargetOptions{Interval: 2 * time.Second}), func() {
			e.mu.Lock()
			e.hang = true
			e.mu.Unlock()
			pass(3 * time.Second) // during the second scrape
			f.want(t, []string{"up", "requests_waiting"}, `requests_waiting{address="engine:8000",rank="0",target="vllm"} 3`, `up{address="engine:8000",target="vllm"} 1`)
			pass(time.Second)
			f.want(t, []string{"up", "scrape_duration_seconds"}, `scrape_duration_seconds{address="engine:8000",target="vllm"} 1.5`, `up{address="engine:8000",target="vllm"} 0`)
			if got := f.shown(t, "replayd_engine_scrape_errors_total"); !slices.Contains(got, `scrape_errors_total{address="engine:8000",reason="timeout",target="vllm"} 1`) {
				t.Errorf("want one timeout, got %q", got)
			}
		})
	})
}

// Counters are passed on with their resets, and restarts are counted.
func TestEngineRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		e.say(`vllm:prompt_tokens_total{engine="0"} 100`, `process_start_time_seconds 1.7e9`)
		while(t, f.target(t, e, TargetOptions{}), func() {
			e.say(`vllm:prompt_tokens_total{engine="0"} 150`, `process_start_time_seconds 1.700000007e9`)
			pass(5 * time.Second) // the counter is higher, but the process start differs
			f.want(t, []string{"restarts_total", "prompt_tokens_total"}, `prompt_tokens_total{address="engine:8000",rank="0",target="vllm"} 150`, `restarts_total{address="engine:8000",target="vllm"} 1`)
			e.say(`vllm:prompt_tokens_total{engine="0"} 4`, `process_start_time_seconds 1.700000012e9`)
			pass(5 * time.Second)
			f.want(t, []string{"restarts_total", "prompt_tokens_total", "address_shared"}, `address_shared{address="engine:8000",target="vllm"} 0`,
				`prompt_tokens_total{address="engine:8000",rank="0",target="vllm"} 4`, `restarts_total{address="engine:8000",target="vllm"} 2`)
		})
	})
}

// The engine's counters continue when a reload replaces the target, and each series is exported once meanwhile.
func TestTargetIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{status: http.StatusNotFound}
		e.say(`vllm:num_requests_waiting{engine="0"} 3`)
		var before, after []string
		while(t, f.target(t, e, TargetOptions{}), func() {
			slow := &server{hang: true}
			while(t, f.target(t, slow, TargetOptions{Interval: time.Second}), func() {
				before = f.shown(t, "replayd_engine_scrape_errors_total")
			})
		})
		while(t, f.target(t, e, TargetOptions{}), func() { after = f.shown(t, "replayd_engine_scrape_errors_total") })
		for want, got := range map[string][]string{"1": before, "2": after} {
			if line := `scrape_errors_total{address="engine:8000",reason="http",target="vllm"} ` + want; !slices.Contains(got, line) {
				t.Errorf("want %s, got %q", line, got)
			}
		}
	})
}

// Reading TensorRT-LLM's /metrics empties it, so it is not requested if the other path has a page.
func TestPageIsFound(t *testing.T) {
	const page = "trtllm_num_requests_running 1\n"
	for _, c := range []struct {
		url   string
		pages map[string]string
		asked []string
	}{
		{"http://engine:8000", map[string]string{"/prometheus/metrics": page, "/metrics": "[]"}, []string{"/prometheus/metrics", "/prometheus/metrics"}},
		{"http://engine:8000/v1", map[string]string{"/metrics": page}, []string{"/prometheus/metrics", "/metrics", "/metrics"}},
		{"http://engine:8000/team/v1", map[string]string{"/team/metrics": page, "/metrics": page}, []string{"/team/prometheus/metrics", "/team/metrics", "/team/metrics"}},
		{"http://engine:8000/team", map[string]string{"/metrics": page}, []string{"/team/prometheus/metrics", "/team/metrics", "/prometheus/metrics", "/metrics", "/metrics"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, e := newFixture(), &server{pages: c.pages}
			while(t, f.target(t, e, TargetOptions{URL: c.url}), func() { pass(5 * time.Second) })
			if d := cmp.Diff(c.asked, e.asked); d != "" {
				t.Errorf("%s: -want +got\n%s", c.url, d)
			}
		})
	}
}

// The page of an unknown engine gives no load; the error names the remedy.
func TestUnknownEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		e.say(`node_load1 0.3`)
		target := f.target(t, e, TargetOptions{Page: "http://engine:8000/metrics"})
		while(t, target, func() {
			if _, err := target.Load(); err == nil || !strings.Contains(err.Error(), "metrics.map") {
				t.Errorf("want to be told of metrics.map, got %v", err)
			}
			f.want(t, []string{"up", "scrape_samples"}, `scrape_samples{address="engine:8000",target="vllm"} 1`, `up{address="engine:8000",target="vllm"} 0`)
		})
	})
}
