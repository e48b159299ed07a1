package scrape

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	commoncfg "github.com/prometheus/common/config"

	"replayd/internal/limits"
)

// Behind a virtual IP each connection may reach another engine. This is detected and logged.
func TestVirtualAddress(t *testing.T) {
	type key struct{}
	var connections atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := r.Context().Value(key{}).(int64) % 2
		fmt.Fprintf(w, "vllm:num_requests_waiting{engine=\"0\"} %d\nprocess_start_time_seconds %d\n", 100*n, 1_700_000_000+n)
	}))
	s.Config.ConnContext = func(ctx context.Context, _ net.Conn) context.Context {
		return context.WithValue(ctx, key{}, connections.Add(1))
	}
	s.Start()
	defer s.Close()
	f := newFixture()
	target := f.target(t, nil, TargetOptions{Page: s.URL, Interval: time.Hour})
	target.Show()
	for range 3 {
		target.endpoints[0].scrape(t.Context())
	}
	if got := f.shown(t, "replayd_engine_address_shared"); len(got) != 1 || !strings.HasSuffix(got[0], " 1") {
		t.Errorf("want the address found out, got %q", got)
	}
	if !strings.Contains(f.log.String(), "metrics.replicas") {
		t.Errorf("want to be told what helps, got\n%s", f.log.String())
	}
}

// A line that cannot be read costs its family: a sum without one of its parts is no load. The rest of the page is exported, and the line is counted and told once.
func TestABadLineIsNoLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		e.say(`vllm:num_requests_waiting{engine="0"} 7`)
		target := f.target(t, e, TargetOptions{})
		while(t, target, func() {
			for range limits.SettledPages {
				pass(5 * time.Second)
			}
			if l, err := target.Load(); err != nil || l.Waiting != 7 {
				t.Errorf("before: got %+v, %v", l, err)
			}
			e.say(`vllm:num_requests_running{engine="0"} 1`, `vllm:num_requests_waiting{engine="0"} 0`, `vllm:num_requests_waiting{engine="1"} forty`)
			for i := range 4 {
				pass(5 * time.Second)
				if l, err := target.Load(); err != nil || !math.IsNaN(l.Waiting) || l.Pages >= limits.SettledPages {
					t.Errorf("after %d: want an unknown load that is not unsupported, got %+v, %v", i+1, l, err)
				}
			}
			f.want(t, []string{"requests_running", "requests_waiting", "up", "bad_samples_total"}, `bad_samples_total{address="engine:8000",target="vllm"} 4`,
				`requests_running{address="engine:8000",rank="0",target="vllm"} 1`, `up{address="engine:8000",target="vllm"} 1`)
			if n := strings.Count(f.log.String(), "cannot be used"); n != 1 || !strings.Contains(f.log.String(), `line 3: strconv.ParseFloat: parsing \"forty\"`) {
				t.Errorf("want the line told once, got %d times in\n%s", n, f.log.String())
			}
			e.say(`vllm:num_requests_waiting{engine="0"} 0`, `vllm:num_requests_waiting{engine="1"} 40`)
			pass(5 * time.Second)
			if l, err := target.Load(); err != nil || l.Waiting != 40 {
				t.Errorf("again: got %+v, %v", l, err)
			}
		})
	})
}

// A value that cannot be is counted and told once, and is no load. Nor is what a page says that lacks a rank of the page before.
func TestWhatIsNoLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		two := []string{`vllm:num_requests_waiting{engine="0"} 3`, `vllm:num_requests_waiting{engine="1"} 4`, `vllm:kv_cache_usage_perc{engine="0"} 0.5`}
		steps := []struct {
			page        []string
			waiting, kv float64
		}{
			{two, 7, 0.5},
			{[]string{two[0], two[2]}, math.NaN(), 0.5},
			{[]string{two[0], two[2]}, 3, 0.5}, // the rank is gone
			{two, 7, 0.5},
			{[]string{two[0], two[1], `vllm:kv_cache_usage_perc{engine="0"} 41.7`}, 7, math.NaN()},
			{[]string{two[0], `vllm:num_requests_waiting{engine="1"} -1`, two[2]}, math.NaN(), 0.5},
			{[]string{two[0], two[2]}, math.NaN(), 0.5}, // rank 1 was on the page before, with an impossible value
			{two, 7, 0.5},
			{[]string{two[2]}, math.NaN(), 0.5},
			{[]string{two[1], two[2]}, math.NaN(), 0.5}, // rank 0 was there when the queue was read last
			{[]string{two[1], two[2]}, 4, 0.5},
		}
		e.say(steps[0].page...)
		target := f.target(t, e, TargetOptions{})
		while(t, target, func() {
			for i, s := range steps {
				e.say(s.page...)
				pass(5 * time.Second)
				l, err := target.Load()
				same := func(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }
				if err != nil || !same(l.Waiting, s.waiting) || !same(l.KVCacheUsage, s.kv) {
					t.Errorf("page %d: want %v waiting and %v of the cache, got %+v, %v", i, s.waiting, s.kv, l, err)
				}
			}
			e.say(`vllm:kv_cache_usage_perc{engine="0"} 41.7`) // nothing else
			pass(5 * time.Second)
			f.want(t, []string{"bad_samples_total"}, `bad_samples_total{address="engine:8000",target="vllm"} 3`)
			const told = `want a kv_cache_usage_ratio from 0 to 1, got "vllm:kv_cache_usage_perc{engine=\\\"0\\\"} 41.7"`
			if strings.Count(f.log.String(), "cannot be used") != 1 || !strings.Contains(f.log.String(), "41.7") {
				t.Errorf("want %s told once, got\n%s", told, f.log.String())
			}
		})
	})
}

// With a NaN for one rank, or more ranks than maxRanks, the sum of the other ranks is not the load.
func TestGapsAreNoLoad(t *testing.T) {
	many := make([]string, 0, maxRanks+1)
	for i := range maxRanks + 1 {
		many = append(many, fmt.Sprintf(`vllm:num_requests_waiting{engine="%d"} 1`, i))
	}
	for name, lines := range map[string][]string{
		"no number":  {`vllm:num_requests_waiting{engine="0"} NaN`, `vllm:num_requests_waiting{engine="1"} 2`},
		"many ranks": many,
	} {
		if l := vocabulary(t).Read(page(t, lines...), "").load(); !math.IsNaN(l.Waiting) {
			t.Errorf("%s: want no load, got %v", name, l.Waiting)
		}
	}
}

// Load.Pages tells whether a figure that is on no page may still appear.
func TestPagesOfALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		llama := []string{`llamacpp:requests_processing 1`, `llamacpp:requests_deferred 2`}
		e.say(llama...)
		target := f.target(t, e, TargetOptions{})
		while(t, target, func() {
			for _, step := range []struct {
				lines  []string
				engine string
				pages  int
			}{
				{llama, "llamacpp", 2}, {llama, "llamacpp", 3}, {llama, "llamacpp", 3}, // the first page was read at the start
				{[]string{`vllm:num_requests_waiting{engine="0"} 7`}, "vllm", 1},
			} {
				e.say(step.lines...)
				pass(5 * time.Second)
				l, err := target.Load()
				if err != nil || l.Engine != step.engine || l.Pages != step.pages || !math.IsNaN(l.KVCacheUsage) {
					t.Errorf("want %d pages of %s without a KV cache, got %+v, %v", step.pages, step.engine, l, err)
				}
			}
		})
	})
}

// Figures from before a suspension are not used. Timers and Go's monotonic clock stop during it, so their age is
// measured on the wall clock.
func TestOldLoad(t *testing.T) {
	e := &engine{}
	s := state{}.after("engine", address{"t", "r"}, time.Now(), &Page{}, &Reading{Engine: "vllm"}, nil)
	e.state = s
	if _, known, err := e.load(5 * time.Second); !known || err != nil {
		t.Fatal(known, err)
	}
	if strings.Contains(s.whole.String(), "m=") {
		t.Errorf("want an instant without a monotonic reading, got %v", s.whole)
	}
	s.whole = s.whole.Add(-21 * time.Second)
	e.state = s
	if _, known, err := e.load(5 * time.Second); known || err == nil {
		t.Error("want a load of 21 s ago, at an interval of 5 s, not believed")
	}
}

// After a reload to a shorter interval, the known figures are too old. This does not count as a scrape, so callers may
// use the earlier load.
func TestOldLoadOfANewTarget(t *testing.T) {
	f, e := newFixture(), &server{}
	e.say(`vllm:num_requests_waiting{engine="0"} 7`)
	before := f.target(t, e, TargetOptions{Interval: time.Minute})
	before.Show()
	before.endpoints[0].scrape(t.Context())
	known := before.endpoints[0].engine
	s := known.now()
	s.whole = s.whole.Add(-50 * time.Second)
	known.state = s
	now := f.target(t, e, TargetOptions{Interval: time.Second})
	now.Show()
	if _, err := now.Load(); !errors.Is(err, ErrNotScraped) {
		t.Errorf("want it not to have looked, got %v", err)
	}
	if l, err := before.Load(); err != nil || l.Waiting != 7 {
		t.Errorf("want the one before to know, got %+v, %v", l, err)
	}
}

// After a change of rows, lower counters are no restart.
func TestOtherRowsAreNoRestart(t *testing.T) {
	f, e := newFixture(), &server{}
	e.say(`vllm:prompt_tokens_total{engine="0"} 100`, `mine_total 3`)
	for _, rows := range [][]Row{nil, {{Family: "mine", Quantity: "prompt_tokens"}}} {
		target := f.target(t, e, TargetOptions{Map: rows})
		target.Show()
		target.endpoints[0].scrape(t.Context())
	}
	f.want(t, []string{"restarts_total"}, `restarts_total{address="engine:8000",target="vllm"} 0`)
}

// Load is called before each row is sent.
func TestLoadAllocatesNothing(t *testing.T) {
	for status, want := range map[int]bool{http.StatusOK: true, http.StatusInternalServerError: false} {
		f, e := newFixture(), &server{status: status}
		e.say(`vllm:num_requests_waiting{engine="0"} 7`)
		target := f.target(t, e, TargetOptions{})
		target.Show()
		for range 3 {
			target.endpoints[0].scrape(t.Context())
		}
		if n := testing.AllocsPerRun(100, func() {
			if _, err := target.Load(); (err == nil) != want {
				t.Fatalf("status %d: got %v", status, err)
			}
		}); n > 0 {
			t.Errorf("status %d: want no allocation, got %v", status, n)
		}
	}
}

// A malformed page counts as found: no other URL is requested.
func TestHalfAPageIsFound(t *testing.T) {
	f, e := newFixture(), &server{pages: map[string]string{
		"/prometheus/metrics": "trtllm_num_requests_running 3\ntrtllm_num_requests_waiting x\n", "/metrics": "[]",
	}}
	target := f.target(t, e, TargetOptions{})
	target.Show()
	target.endpoints[0].scrape(t.Context())
	f.want(t, []string{"requests_running"}, `requests_running{address="engine:8000",rank="",target="vllm"} 3`)
	if len(e.asked) != 1 {
		t.Errorf("want TensorRT-LLM's /metrics left alone, asked %q", e.asked)
	}
}

// Duplicate series count once: the guard and the page use the first sample, and the log reports duplicates once. Ranks
// are separate series and add up.
func TestSeriesTwice(t *testing.T) {
	f, e := newFixture(), &server{}
	e.say(`vllm:num_requests_waiting{engine="0",model_name="m"} 7
vllm:num_requests_waiting{model_name="m",engine="0"} 9
vllm:num_requests_waiting{engine="1",model_name="m"} 2
vllm:num_requests_waiting{engine="0",model_name="m"} 7`)
	target := f.target(t, e, TargetOptions{})
	target.Show()
	for range 3 {
		target.endpoints[0].scrape(t.Context())
	}
	f.want(t, []string{"requests_waiting"}, `requests_waiting{address="engine:8000",rank="0",target="vllm"} 7`, `requests_waiting{address="engine:8000",rank="1",target="vllm"} 2`)
	if l, err := target.Load(); err != nil || l.Waiting != 9 {
		t.Errorf("want 9 waiting, got %+v, %v", l, err)
	}
	if n := strings.Count(f.log.String(), "duplicate series"); n != 1 || !strings.Contains(f.log.String(), "samples=2") {
		t.Errorf("want one line about 2 samples, got %d:\n%s", n, f.log.String())
	}
}

// A password in a URL is not logged.
func TestLogHasNoPassword(t *testing.T) {
	f, e := newFixture(), &server{}
	e.say(`vllm:num_requests_waiting{engine="0"} 7`)
	target := f.target(t, e, TargetOptions{Page: "http://user:hunter2@engine:8000/metrics"})
	target.Show()
	target.endpoints[0].scrape(t.Context())
	e.status = http.StatusForbidden
	target.endpoints[0].scrape(t.Context())
	if log := f.log.String(); strings.Contains(log, "hunter2") || !strings.Contains(log, "403") || len(f.shown(t, "replayd_engine_up")) != 1 {
		t.Errorf("want the log without the password, got\n%s", log)
	}
}

// NewTarget checks the files that connections need, with and without replicas.
func TestTargetIsChecked(t *testing.T) {
	for _, replicas := range []string{"", "engines.example"} {
		o := TargetOptions{Target: "vllm", URL: "https://engine:8000", Replicas: replicas, Interval: time.Second, HTTP: commoncfg.DefaultHTTPClientConfig}
		o.HTTP.TLSConfig.CAFile = "/no/such/ca.pem"
		if _, err := newFixture().collector.NewTarget(o); err == nil || !strings.Contains(err.Error(), "ca.pem") {
			t.Errorf("replicas %q: want the missing file named, got %v", replicas, err)
		}
	}
}
