package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/sim"

	"replayd/test/outside"
)

// served counts the requests in the log of a simulated engine.
type served struct {
	mu      sync.Mutex
	all, ok int
}

func (s *served) Write(line []byte) (int, error) {
	var e sim.LogEntry
	if err := json.Unmarshal(line, &e); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all++
	if e.Outcome == sim.OK {
		s.ok++
	}
	return len(line), nil
}

func (s *served) counts() (all, ok int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all, s.ok
}

// engine starts a simulated engine.
func engine(t *testing.T, change func(*sim.Options)) (n *served, url string) {
	t.Helper()
	o := sim.Defaults()
	n = &served{}
	o.TTFT, o.ITL, o.Log = time.Millisecond, time.Millisecond, n
	change(&o)
	e, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(nil)
	s.Config = e.Server()
	s.Start()
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return n, s.URL
}

// nobody is an address on which no server listens: port 1 is reserved.
const nobody = "http://127.0.0.1:1"

// freeAddress returns an address on which no server listens.
func freeAddress(t *testing.T) string { return outside.Address(t) }

// rows returns a trace: row i is due at i·10 ms and has 20+i input tokens and 4 output tokens.
func rows(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": %d, "output_length": 4}`+"\n", i*10, 20+i)
	}
	return b.String()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func target(name, url string) config.Target {
	t := config.DefaultTarget()
	t.Name, t.URL = name, url
	return t
}

// looped returns a workload that plays a trace at every second of the wall clock.
func looped(name, target, path string) config.Workload {
	w := once(name, target, path)
	w.Repeat.Mode, w.Repeat.Align, w.Repeat.Every = "loop", "wall_clock", time.Second
	return w
}

// once returns a workload that plays a trace once, on time. If other work keeps the cores busy for a second, rows are
// missed, so no test may rely on their number.
func once(name, target, path string) config.Workload {
	w := config.DefaultWorkload()
	w.Name, w.Target, w.Trace.Path, w.Repeat.Mode = name, target, path, "once"
	return w
}

// each returns a workload that sends all rows of a trace once, as fast as its lanes allow, however busy the machine is.
func each(name, target, path string) config.Workload {
	w := once(name, target, path)
	w.Arrival = "concurrency"
	return w
}

func conf(targets []config.Target, workloads ...config.Workload) config.Config {
	c := config.Default()
	c.Web.Listen = "127.0.0.1:0"
	c.Targets, c.Workloads = targets, workloads
	return c
}

// A daemon is Serve under test.
type daemon struct {
	t          *testing.T
	url        string
	stop, hard context.CancelFunc
	finished   chan measure.Request
	ended      chan error

	mu     sync.Mutex
	config config.Config // what the next reload reads
}

// load returns the configuration for a reload, checked like the configuration of a file.
func (d *daemon) load() (config.Config, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.config
	c.Targets, c.Workloads = slices.Clone(c.Targets), slices.Clone(c.Workloads)
	if faults := append(c.Resolve(), c.Check()...); len(faults) > 0 {
		return c, fmt.Errorf("replayd.yaml: %s: %s", faults[0].Key, faults[0].Want)
	}
	return c, nil
}

// post sends a POST request and returns the answer.
func (d *daemon) post(path string) (status int, text string) {
	d.t.Helper()
	resp, err := http.Post(d.url+path, "", nil)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// reload changes the configuration and requests a reload, which must succeed.
func (d *daemon) reload(change func(c *config.Config)) {
	d.t.Helper()
	d.mu.Lock()
	change(&d.config)
	d.mu.Unlock()
	if status, text := d.post("/-/reload"); status != http.StatusOK {
		d.t.Fatalf("reload: want 200, got %d: %s", status, text)
	}
}

// Observe keeps the last 10,000 finished requests for next. It must not block, because a test may not read them and a
// closed loop finishes requests very fast.
func (d *daemon) Observe(r *measure.Request) {
	for {
		select {
		case d.finished <- *r:
			return
		default:
		}
		select {
		case <-d.finished:
		default:
		}
	}
}

// start runs Serve until the test ends.
func start(t *testing.T, c config.Config) *daemon {
	t.Helper()
	d := &daemon{t: t, finished: make(chan measure.Request, 10000), ended: make(chan error, 1), config: c}
	hard, abort := context.WithCancel(t.Context())
	ctx, stop := context.WithCancel(hard)
	d.stop, d.hard = stop, abort
	url := make(chan string, 1)
	go func() {
		d.ended <- Serve(ctx, hard, ServeOptions{
			Config: c, Version: "1.2.3", Log: slog.New(slog.DiscardHandler), Observers: []replay.Observer{d}, Load: d.load,
			Started: func(u string, _ func() measure.Ledger) { url <- u },
		})
		close(d.ended)
	}()
	t.Cleanup(func() {
		abort()
		for range d.ended { // until it is closed
		}
	})
	select {
	case d.url = <-url:
	case err := <-d.ended:
		t.Fatalf("it did not start: %v", err)
	}
	return d
}

// end waits until the daemon ends without an error.
func (d *daemon) end() {
	d.t.Helper()
	select {
	case err := <-d.ended:
		if err != nil {
			d.t.Errorf("want a clean end, got %v", err)
		}
	case <-time.After(outside.Patience):
		d.t.Fatal("it does not end")
	}
}

// next waits for a finished request.
func (d *daemon) next() measure.Request {
	d.t.Helper()
	select {
	case r := <-d.finished:
		return r
	case <-time.After(outside.Patience):
		d.t.Fatal("no request ends")
		return measure.Request{}
	}
}

// see scrapes until the page has all the lines.
func (d *daemon) see(lines ...string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), outside.Patience)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		page := fetch(d.t, d.url+"/metrics")
		missing := ""
		for _, line := range lines {
			if !strings.Contains(page, "\n"+line+"\n") {
				missing = line
			}
		}
		if missing == "" {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			d.t.Fatalf("not on the page: %s\n%s", missing, page)
		}
	}
}

// unsee scrapes until a text is no longer on the page.
func (d *daemon) unsee(text string) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), outside.Patience)
	defer cancel()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for strings.Contains(fetch(d.t, d.url+"/metrics"), text) {
		select {
		case <-again.C:
		case <-ctx.Done():
			d.t.Fatalf("still on the page: %s", text)
		}
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A gate is a server whose streams begin, and go on when open is closed.
type gate struct {
	url  string
	came chan string // ids of waiting requests
	open chan struct{}
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{came: make(chan string, 10), open: make(chan struct{})}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"data":[{"id":"gate"}]}`)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"a"}}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		g.came <- r.Header.Get("X-Request-Id")
		select {
		case <-g.open:
		case <-r.Context().Done():
			return
		}
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	g.url = s.URL
	return g
}
