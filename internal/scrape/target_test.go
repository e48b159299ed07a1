package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	commoncfg "github.com/prometheus/common/config"
	"github.com/prometheus/common/expfmt"
)

// A server answers with what it is told to.
type server struct {
	mu     sync.Mutex
	pages  map[string]string // by path
	status int               // 0: 200
	asked  []string
	hang   bool // until the question is withdrawn
}

func (e *server) say(lines ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pages = map[string]string{"/metrics": strings.Join(lines, "\n") + "\n"}
}

// RoundTrip answers without a network, so that time can be virtual.
func (e *server) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	e.asked = append(e.asked, r.URL.Path)
	page, there := e.pages[r.URL.Path]
	status, hang := e.status, e.hang
	e.mu.Unlock()
	if hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if status == 0 {
		status = http.StatusOK
	}
	if !there {
		status = http.StatusNotFound
	}
	return &http.Response{
		StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Request: r, Body: io.NopCloser(strings.NewReader(page)),
		Header: http.Header{"Content-Type": {"text/plain; version=0.0.4"}},
	}, nil
}

func (e *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := e.RoundTrip(r)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer answer.Body.Close()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}

type fixture struct {
	registry  *prometheus.Registry
	collector *Collector
	log       strings.Builder
}

func newFixture() *fixture {
	f := &fixture{registry: prometheus.NewRegistry()}
	f.collector = NewCollector(f.registry)
	return f
}

// target makes one whose engine answers by itself where it is not nil.
func (f *fixture) target(t *testing.T, e *server, o TargetOptions) *Target {
	t.Helper()
	if o.Target == "" {
		o.Target = "vllm"
	}
	if o.URL == "" {
		o.URL = "http://engine:8000/v1"
	}
	if o.Interval == 0 {
		o.Interval = 5 * time.Second
	}
	o.HTTP = commoncfg.DefaultHTTPClientConfig
	o.Log = slog.New(slog.NewTextHandler(&f.log, nil))
	target, err := f.collector.NewTarget(o)
	if err != nil {
		t.Fatal(err)
	}
	if e != nil {
		target.endpoints[0].fetcher = &Fetcher{client: &http.Client{Transport: e}}
	}
	return target
}

// shown gives the lines of replayd's page about some series.
func (f *fixture) shown(t *testing.T, names ...string) []string {
	t.Helper()
	text, err := testutil.CollectAndFormat(f.collector, expfmt.TypeTextPlain, names...)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimPrefix(strings.TrimSpace(line), "replayd_engine_"))
		}
	}
	return lines
}

func (f *fixture) want(t *testing.T, names []string, want ...string) {
	t.Helper()
	for i, n := range names {
		names[i] = "replayd_engine_" + n
	}
	if d := cmp.Diff(want, f.shown(t, names...)); d != "" {
		t.Errorf("-want +got\n%s\nlog:\n%s", d, f.log.String())
	}
}

// while runs a target in a bubble of virtual time.
func while(t *testing.T, target *Target, steps func()) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- target.Run(ctx) }()
	synctest.Wait()
	steps()
	end()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("want Run to end with its context, got %v", err)
	}
}

func pass(d time.Duration) {
	<-time.After(d) // virtual
	synctest.Wait()
}

// Figures of an engine that is lost stay for two missed scrapes and leave at the third; that it is down stays.
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
			f.want(t, slices.Clone(figures), `age_seconds{replica="engine:8000",target="vllm"} 1`, `requests_waiting{rank="0",replica="engine:8000",target="vllm"} 3`, `up{replica="engine:8000",target="vllm"} 1`)
			e.mu.Lock()
			e.status = http.StatusServiceUnavailable
			e.mu.Unlock()
			pass(9 * time.Second) // until two more
			f.want(t, slices.Clone(figures), `age_seconds{replica="engine:8000",target="vllm"} 10`, `requests_waiting{rank="0",replica="engine:8000",target="vllm"} 3`, `up{replica="engine:8000",target="vllm"} 0`)
			if l, err := target.Load(); err != nil || l.Waiting != 3 || !math.IsNaN(l.KVCacheUsage) {
				t.Errorf("two missed scrapes: want 3 waiting and no usage, got %+v, %v", l, err)
			}
			pass(5 * time.Second)
			f.want(t, slices.Clone(figures), `age_seconds{replica="engine:8000",target="vllm"} 15`, `up{replica="engine:8000",target="vllm"} 0`)
			if _, err := target.Load(); err == nil || !strings.Contains(err.Error(), "503") {
				t.Errorf("three missed scrapes: want to be blind and told why, got %v", err)
			}
			f.want(t, []string{"scrape_errors_total"},
				`scrape_errors_total{reason="connect",replica="engine:8000",target="vllm"} 0`, `scrape_errors_total{reason="content_type",replica="engine:8000",target="vllm"} 0`,
				`scrape_errors_total{reason="http",replica="engine:8000",target="vllm"} 3`, `scrape_errors_total{reason="parse",replica="engine:8000",target="vllm"} 0`,
				`scrape_errors_total{reason="timeout",replica="engine:8000",target="vllm"} 0`, `scrape_errors_total{reason="too_large",replica="engine:8000",target="vllm"} 0`,
				`scrape_errors_total{reason="unknown",replica="engine:8000",target="vllm"} 0`)
			e.mu.Lock()
			e.status = 0
			e.mu.Unlock()
			pass(5 * time.Second)
			f.want(t, []string{"up", "requests_waiting"}, `requests_waiting{rank="0",replica="engine:8000",target="vllm"} 3`, `up{replica="engine:8000",target="vllm"} 1`)
		})
		f.want(t, slices.Clone(figures))
		if n := strings.Count(f.log.String(), "cannot be read"); n != 1 {
			t.Errorf("want one line about the loss, got %d:\n%s", n, f.log.String())
		}
	})
}

// Scrapes are whole intervals apart; one that hangs is cut when the next is due, and holds up nobody.
func TestEngineHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		e.say(`vllm:num_requests_waiting{engine="0"} 3`)
		while(t, f.target(t, e, TargetOptions{Interval: 2 * time.Second}), func() {
			e.mu.Lock()
			e.hang = true
			e.mu.Unlock()
			pass(3 * time.Second) // in the midst of the second
			f.want(t, []string{"up", "requests_waiting"}, `requests_waiting{rank="0",replica="engine:8000",target="vllm"} 3`, `up{replica="engine:8000",target="vllm"} 1`)
			pass(time.Second)
			f.want(t, []string{"up", "scrape_duration_seconds"}, `scrape_duration_seconds{replica="engine:8000",target="vllm"} 1.5`, `up{replica="engine:8000",target="vllm"} 0`)
			if got := f.shown(t, "replayd_engine_scrape_errors_total"); !slices.Contains(got, `scrape_errors_total{reason="timeout",replica="engine:8000",target="vllm"} 1`) {
				t.Errorf("want one timeout, got %q", got)
			}
		})
	})
}

// Counters pass through with their resets, and the restart is counted.
func TestEngineRestarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		e.say(`vllm:prompt_tokens_total{engine="0"} 100`, `process_start_time_seconds 1.7e9`)
		while(t, f.target(t, e, TargetOptions{}), func() {
			e.say(`vllm:prompt_tokens_total{engine="0"} 150`, `process_start_time_seconds 1.700000007e9`)
			pass(5 * time.Second) // it counted faster than before
			f.want(t, []string{"restarts_total", "prompt_tokens_total"}, `prompt_tokens_total{rank="0",replica="engine:8000",target="vllm"} 150`, `restarts_total{replica="engine:8000",target="vllm"} 1`)
			e.say(`vllm:prompt_tokens_total{engine="0"} 4`, `process_start_time_seconds 1.700000012e9`)
			pass(5 * time.Second)
			f.want(t, []string{"restarts_total", "prompt_tokens_total", "address_shared"}, `address_shared{replica="engine:8000",target="vllm"} 0`,
				`prompt_tokens_total{rank="0",replica="engine:8000",target="vllm"} 4`, `restarts_total{replica="engine:8000",target="vllm"} 2`)
		})
	})
}

// What replayd counts of an engine goes on when a reload replaces the target that scrapes it, and the page has each
// series once meanwhile.
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
			if line := `scrape_errors_total{reason="http",replica="engine:8000",target="vllm"} ` + want; !slices.Contains(got, line) {
				t.Errorf("want %s, got %q", line, got)
			}
		}
	})
}

// TensorRT-LLM's /metrics is emptied by reading: it is not asked where there is a page at the other path.
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

func TestReplicaOf(t *testing.T) {
	for host, want := range map[string]string{
		"engine:8000": "engine:8000", "10.0.0.7:8000": "10.0.0.7:8000", "[2001:db8::1]:8000": "[2001:db8::1]:8000", "engine": "engine",
		"127.0.0.1:8000": "pod-0:8000", "localhost:8000": "pod-0:8000", "[::1]:8000": "pod-0:8000", "localhost": "pod-0", "[::1]": "pod-0",
	} {
		if got := replicaOf(host, "pod-0"); got != want {
			t.Errorf("%s: want %s, got %s", host, want, got)
		}
	}
	if got := replicaOf("127.0.0.1:8000", ""); got != "127.0.0.1:8000" {
		t.Errorf("a machine without a name: got %s", got)
	}
}

// A page of an unknown engine is no engine's, and says what to do.
func TestUnknownEngine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, e := newFixture(), &server{}
		e.say(`node_load1 0.3`)
		target := f.target(t, e, TargetOptions{Page: "http://engine:8000/metrics"})
		while(t, target, func() {
			if _, err := target.Load(); err == nil || !strings.Contains(err.Error(), "metrics.map") {
				t.Errorf("want to be told of metrics.map, got %v", err)
			}
			f.want(t, []string{"up", "scrape_samples"}, `scrape_samples{replica="engine:8000",target="vllm"} 1`, `up{replica="engine:8000",target="vllm"} 0`)
		})
	})
}

// Each address of a name is an engine of its own, over the same name in Host; those that leave the name leave the page.
func TestReplicas(t *testing.T) {
	one, two := &server{}, &server{}
	one.say(`vllm:num_requests_waiting{engine="0"} 3`, `vllm:kv_cache_usage_perc{engine="0"} 0.5`)
	two.say(`vllm:num_requests_waiting{engine="0"} 4`, `vllm:num_requests_waiting{engine="1"} 5`, `vllm:kv_cache_usage_perc{engine="0"} 0.9`)
	first := httptest.NewServer(one)
	defer first.Close()
	port := first.Listener.Addr().(*net.TCPAddr).Port
	second := httptest.NewUnstartedServer(two)
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.2:%d", port))
	if err != nil {
		t.Skip("want a second loopback address: ", err)
	}
	_ = second.Listener.Close()
	second.Listener = l
	second.Start()
	defer second.Close()

	f := newFixture()
	names := []netip.Addr{netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::ffff:127.0.0.1")}
	var lookupErr error
	target := f.target(t, nil, TargetOptions{
		URL: fmt.Sprintf("http://engines.example:%d/v1", port), Replicas: "engines.example",
		Resolver: func(_ context.Context, name string) ([]netip.Addr, error) {
			if name != "engines.example" {
				t.Errorf("want the name to be resolved, got %q", name)
			}
			return names, lookupErr
		},
	})
	ends := map[string]context.CancelFunc{}
	released := make(chan struct{}, 1)
	start := func(ctx context.Context, e *endpoint) {
		e.scrape(ctx)
		context.AfterFunc(ctx, func() {
			f.collector.release(e.address())
			released <- struct{}{}
		})
	}
	follow := func() { target.follow(t.Context(), ends, start) }
	follow()
	figures := []string{"requests_waiting", "up"}
	a, b := fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("127.0.0.2:%d", port)
	both := []string{
		`requests_waiting{rank="0",replica="` + a + `",target="vllm"} 3`, `requests_waiting{rank="0",replica="` + b + `",target="vllm"} 4`,
		`requests_waiting{rank="1",replica="` + b + `",target="vllm"} 5`, `up{replica="` + a + `",target="vllm"} 1`, `up{replica="` + b + `",target="vllm"} 1`,
	}
	f.want(t, slices.Clone(figures), both...)
	if l, err := target.Load(); err != nil || l.Waiting != 12 || l.KVCacheUsage != 0.9 {
		t.Errorf("want 12 waiting and the fullest cache, got %+v, %v", l, err)
	}
	lookupErr = errors.New("no such host")
	follow()
	if !strings.Contains(f.log.String(), "no such host") {
		t.Error("want the failed lookup to be told")
	}
	f.want(t, slices.Clone(figures), both...)
	lookupErr, names = nil, names[1:]
	follow()
	<-released
	f.want(t, slices.Clone(figures), both[0], both[3])
	if len(ends) != 1 {
		t.Errorf("want one replica left, got %d", len(ends))
	}
	for _, e := range target.endpoints {
		e.fetcher.Close()
	}
}
