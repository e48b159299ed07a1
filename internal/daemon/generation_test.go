package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/replay"
	"replayd/internal/sim"
	"replayd/test/machine"
	"replayd/test/outside"
)

// heard collects the outcomes and failures of a generation. It is safe for concurrent use.
type heard struct {
	mu       sync.Mutex
	outcomes map[string]int // by workload and outcome, separated by a blank
	failures []string
}

func (h *heard) Observe(r *measure.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	workload, _, _ := strings.Cut(r.ID, "/")
	h.outcomes[workload+" "+string(r.Outcome)]++
}

func (h *heard) options(c config.Config) Options {
	h.outcomes = map[string]int{}
	return Options{
		Config: c, Meter: metrics.NewMeter(prometheus.NewRegistry()), UserAgent: "replayd/test", Log: slog.New(slog.DiscardHandler),
		Observers: []replay.Observer{h},
		Failed: func(err error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.failures = append(h.failures, err.Error())
		},
	}
}

// run builds a generation and runs it to the end of its plans.
func (h *heard) run(t *testing.T, c config.Config) {
	t.Helper()
	g, err := Build(t.Context(), h.options(c))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), outside.Patience)
	defer cancel()
	g.Start(ctx, ctx)
	_ = g.outlast(ctx)
	if ctx.Err() != nil {
		t.Error("it does not end")
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
}

// If a target lists several models and none is configured, its workloads end. Other workloads go on.
func TestSeveralModels(t *testing.T) {
	several := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("want nothing sent, got %s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[{"id":"llama"},{"id":"qwen"}]}`)
	}))
	defer several.Close()
	_, url := engine(t, func(*sim.Options) {})
	path := write(t, "trace.jsonl", rows(5))
	h := &heard{}
	h.run(t, conf([]config.Target{target("sim", url), target("several", several.URL)}, each("good", "sim", path), each("bad", "several", path)))
	if len(h.failures) != 1 || h.failures[0] != "target several: model: the server lists several, name one of 2: llama, qwen" {
		t.Errorf("want the target and its models named, got %q", h.failures)
	}
	if len(h.outcomes) != 1 || h.outcomes["good ok"] != 5 {
		t.Errorf("want 5 ok of the good one and nothing of the other, got %v", h.outcomes)
	}
}

// A full disk loses records, but no requests.
func TestRecordsFail(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		machine.Lacks(t, "/dev/full", err)
	}
	_, url := engine(t, func(*sim.Options) {})
	c := conf([]config.Target{target("sim", url)}, each("w", "sim", write(t, "trace.jsonl", rows(5))))
	c.Records.Path = "/dev/full"
	h := &heard{}
	g, err := Build(t.Context(), h.options(c))
	if err != nil {
		t.Fatal(err)
	}
	if err := g.OpenRecords(); err != nil {
		t.Fatal(err)
	}
	g.Start(t.Context(), t.Context())
	_ = g.outlast(t.Context())
	if err := g.Close(); err == nil || err.Error() != "records: write /dev/full: no space left on device" {
		t.Errorf("want the disk named, got %v", err)
	}
	if h.outcomes["w ok"] != 5 {
		t.Errorf("want 5 ok, got %v", h.outcomes)
	}
}

// Build reports all faults at once, sends no request and leaves no connection or file open.
func TestBuildFaults(t *testing.T) {
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, _ http.ConnState) { connections.Add(1) }
	server.Start()
	defer server.Close()
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"good.jsonl": rows(3), "bad.jsonl": rows(2) + "oops\n{\"timestamp\": 30, \"input_length\": 0}\n", "untimed.jsonl": `{"input_length": 5}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	userIn := target("userin", server.URL)
	userIn.URL = "http://user@host"
	short := once("short", "sim", "good.jsonl")
	short.Repeat.Mode, short.Repeat.Align, short.Repeat.Every = "loop", "wall_clock", time.Millisecond
	c := conf([]config.Target{target("sim", server.URL), userIn},
		once("good", "sim", "good.jsonl"), once("bad", "sim", "bad.jsonl"), once("untimed", "sim", "untimed.jsonl"), short,
		once("gone", "sim", "gone.jsonl"), once("orphan", "userin", "gone.jsonl"))
	before := openFiles(t)
	_, err := Build(t.Context(), (&heard{}).options(c))
	if err == nil {
		t.Fatal("want errors")
	}
	want := `targets[1] "userin": url: want no user or password in it: use http.basic_auth
workloads[1] "bad": trace.path: bad.jsonl:3: row: want a JSON object, got "oops" (invalid character 'o' looking for beginning of value)
workloads[1] "bad": trace.path: bad.jsonl:4: input_length: want an integer ≥ 1, got 0
workloads[2] "untimed": arrival: want a trace with timestamps for "exact", got one without: constant, poisson, gamma and concurrency need none
workloads[3] "short": repeat.every: want more than 20ms, the length of the trace at speed 1, got 1ms
workloads[4] "gone": trace.path: open gone.jsonl: no such file or directory
workloads[5] "orphan": trace.path: open gone.jsonl: no such file or directory`
	if err.Error() != want {
		t.Errorf("want %s\n\n got %v", want, err)
	}
	outside.Until(t, func() error { // connections of an earlier test may end later
		if after := openFiles(t); after > before {
			return fmt.Errorf("open files: want %d as before, got %d", before, after)
		}
		return nil
	})
	if n := connections.Load(); n != 0 {
		t.Errorf("want nothing sent, got %d connections", n)
	}
}

// openFiles returns the number of open descriptors of this process, or 0 if it is unknown.
func openFiles(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return 0
	}
	return len(entries)
}

func TestRequests(t *testing.T) {
	path := write(t, "trace.jsonl", rows(8))
	build := func(changes ...func(*config.Workload)) int {
		t.Helper()
		c := conf([]config.Target{target("t", nobody)})
		for i, change := range changes {
			w := once(string(rune('a'+i)), "t", path)
			change(&w)
			c.Workloads = append(c.Workloads, w)
		}
		g, err := Build(t.Context(), (&heard{}).options(c))
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}()
		return g.Requests()
	}
	whole := func(*config.Workload) {}
	for name, c := range map[string]struct {
		changes []func(*config.Workload)
		want    int
	}{
		"whole":         {[]func(*config.Workload){whole}, 8},
		"two":           {[]func(*config.Workload){whole, whole}, 16},
		"some rows":     {[]func(*config.Workload){func(w *config.Workload) { w.Rows = 3 }}, 3},
		"more than all": {[]func(*config.Workload){func(w *config.Workload) { w.Rows = 30 }}, 8},
		"clipped":       {[]func(*config.Workload){func(w *config.Workload) { w.Trace.MaxInput, w.Trace.OverLimit = 20, "clip" }}, 8},
		"filtered":      {[]func(*config.Workload){func(w *config.Workload) { w.Trace.MaxInput = 20 }}, 0},
		"from":          {[]func(*config.Workload){func(w *config.Workload) { w.Trace.From = time.Millisecond }}, 0},
		"to":            {[]func(*config.Workload){func(w *config.Workload) { w.Trace.To = time.Millisecond }}, 0},
		"a shard":       {[]func(*config.Workload){func(w *config.Workload) { w.Shard.Of = 2 }}, 0},
		"one of a loop": {[]func(*config.Workload){whole, func(w *config.Workload) { w.Repeat.Mode, w.Repeat.Align = "loop", "wall_clock" }}, 0},
	} {
		if got := build(c.changes...); got != c.want {
			t.Errorf("%s: want %d, got %d", name, c.want, got)
		}
	}
}
