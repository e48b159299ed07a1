package scrape

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
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

// A server is a fake engine that returns the configured pages.
type server struct {
	mu     sync.Mutex
	pages  map[string]string // by path
	status int               // 0: 200
	asked  []string
	hang   bool   // block until the request is cancelled
	fails  error  // of the dial; nil: it succeeds
	age    string // its Age header, of a cache
}

func (e *server) say(lines ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pages = map[string]string{"/metrics": strings.Join(lines, "\n") + "\n"}
}

// set changes the engine.
func (e *server) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

// RoundTrip responds without a network, as virtual time requires.
func (e *server) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	e.asked = append(e.asked, r.URL.Path)
	page, there := e.pages[r.URL.Path]
	status, hang, fails, age := e.status, e.hang, e.fails, e.age
	e.mu.Unlock()
	if fails != nil {
		return nil, fails
	}
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
		Header: http.Header{"Content-Type": {"text/plain; version=0.0.4"}, "Age": {age}},
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

func newFixture() *fixture { return newFixtureOf(Engines) }

func newFixtureOf(role *Role) *fixture {
	f := &fixture{registry: prometheus.NewRegistry()}
	f.collector = NewCollector(f.registry, role)
	return f
}

// target returns a target. If e is not nil, e answers its requests.
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

// shown returns the lines of replayd's page for the named series.
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

// while runs a target in a synctest bubble during steps.
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
