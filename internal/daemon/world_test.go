package daemon

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/comparison"
	"replayd/internal/config"
	"replayd/internal/live"
	"replayd/internal/measure"
	"replayd/internal/metrics"
	"replayd/internal/replay"

	"replayd/test/outside"
)

// A world is a generation in virtual time with an engine whose model list the test sets, and which can die and return.
type world struct {
	t    *testing.T
	dir  string
	wire *outside.Pipes
	reg  *prometheus.Registry
	g    *Generation
	ctx  context.Context // ends with end
	end  func()
	log  bytes.Buffer

	comparisons *comparison.Collector
	token       func(r *http.Request) time.Duration                              // between tokens; nil: 10 ms
	answers     func(rw http.ResponseWriter, r *http.Request, model string) bool // whether it has answered; nil: it never does
	wall        func() time.Time                                                 // nil: the system's
	resolve     func(ctx context.Context, name string) ([]netip.Addr, error)     // of pods; nil: the system's

	mu     sync.Mutex
	models []string
	sent   []measure.Request // requests that have ended
	named  map[string]int    // models that requests asked for
	dialed map[string]int    // addresses that were connected to
}

// newWorld prepares a world for a synctest bubble. Call start to run it.
func newWorld(t *testing.T, dir string, models ...string) *world {
	return &world{
		t: t, dir: dir, wire: outside.NewPipes(), reg: prometheus.NewRegistry(), models: models,
		named: map[string]int{}, dialed: map[string]int{},
	}
}

// put overwrites the trace file, so that its inode stays the same, and returns its path.
func (w *world) put(text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, "trace.jsonl")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := io.WriteString(file, text); err != nil {
		w.t.Error(err)
	}
	if err := file.Close(); err != nil {
		w.t.Error(err)
	}
	return path
}

// paced returns a trace of n rows, due every milliseconds apart.
func paced(n, every int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": %d, "output_length": 3}`+"\n", i*every, 20+i)
	}
	return b.String()
}

func (w *world) start(c config.Config, patient bool) {
	w.t.Helper()
	s := &http.Server{Handler: http.HandlerFunc(w.serve)}
	var running sync.WaitGroup
	running.Go(func() { _ = s.Serve(w.wire) })
	ctx, stop := context.WithCancel(w.t.Context())
	board := live.New(live.Options{})
	running.Go(func() { _ = board.Run(ctx) })
	w.comparisons = comparison.NewCollector(w.reg)
	g, err := Build(ctx, Options{
		Virtual: Virtual{
			Dial: w.dial, Sleeper: func() replay.Sleeper { return replay.NewTimers() }, Wall: w.wall, Resolve: w.resolve,
		},
		Config:      c,
		Meter:       metrics.NewMeter(w.reg),
		Comparisons: w.comparisons,
		Board:       board,
		Log:         slog.New(slog.NewTextHandler(w, nil)),
		Failed:      func(error) {},
		Patient:     patient,
		Observers:   []replay.Observer{w},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := g.ClaimState(ctx, 0); err != nil {
		w.t.Fatal(err)
	}
	w.g, w.ctx = g, ctx
	g.Start(ctx, w.t.Context())
	w.end = func() {
		stop()
		if err := w.g.Close(); err != nil {
			w.t.Error(err)
		}
		_ = s.Close()
		running.Wait()
		<-time.After(time.Second) // net/http waits a moment before it closes a connection whose request body it has not read
	}
}

// reload replaces the generation.
func (w *world) reload(c config.Config) {
	w.t.Helper()
	next, err := w.g.Next(w.t.Context(), c)
	if err != nil {
		w.t.Fatal(err)
	}
	next.Replace(w.ctx, w.t.Context(), w.g)
	next.shared.state.Settle()
	w.g = next
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	<-time.After(time.Millisecond)
	w.mu.Lock()
	w.dialed[address]++
	w.mu.Unlock()
	return w.wire.Dial(ctx, network, address)
}

// dies takes the engine down, or brings it back if down is false.
func (w *world) dies(down bool) { w.wire.Die(down) }

func (w *world) lists(models ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.models = models
}

func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		w.mu.Lock()
		var entries []string
		for _, m := range w.models {
			entries = append(entries, fmt.Sprintf(`{"id":%q}`, m))
		}
		w.mu.Unlock()
		_, _ = fmt.Fprintf(rw, `{"data":[%s]}`, strings.Join(entries, ","))
		return
	}
	body, _ := io.ReadAll(r.Body)
	_, model, _ := bytes.Cut(body, []byte(`"model":"`))
	model, _, _ = bytes.Cut(model, []byte(`"`))
	w.mu.Lock()
	w.named[string(model)]++
	w.mu.Unlock()
	if r.Header.Get("X-Request-Id") == "replayd/probe" {
		_, _ = io.WriteString(rw, `{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":5}}`)
		return
	}
	if w.answers != nil && w.answers(rw, r, string(model)) {
		return
	}
	rw.Header().Set("Content-Type", "text/event-stream")
	every := 10 * time.Millisecond
	if w.token != nil {
		every = w.token(r)
	}
	for range 3 {
		<-time.After(every)
		_, _ = io.WriteString(rw, `data: {"choices":[{"index":0,"delta":{"content":" x"}}]}`+"\n\n")
		_ = http.NewResponseController(rw).Flush()
	}
	_, _ = io.WriteString(rw, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}`+"\n\ndata: [DONE]\n\n")
}

// asked returns the models that requests asked for.
func (w *world) asked() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.named))
}

// Write implements io.Writer for the log.
func (w *world) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.Write(p)
}

// logged returns how often a text occurs in the log.
func (w *world) logged(text string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Count(w.log.String(), text)
}

// Observe implements replay.Observer.
func (w *world) Observe(r *measure.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent = append(w.sent, measure.Request{
		ID: strings.Clone(r.ID), Loop: r.Loop, Row: r.Row, Pod: r.Pod, Outcome: r.Outcome,
		Timeline: measure.Timeline{Planned: r.Timeline.Planned},
	})
}

// page scrapes and checks that the ledgers balance.
func (w *world) page() outside.Page {
	w.t.Helper()
	families, err := w.reg.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	page := outside.Page{}
	for _, f := range families {
		page[f.GetName()] = f
	}
	for _, fault := range page.Balance() {
		w.t.Error(fault)
	}
	return page
}

// wants compares the sums of metric families with the given values.
func (w *world) wants(when string, sums map[string]float64) {
	w.t.Helper()
	page := w.page()
	for name, want := range sums {
		if got := page.Sum(name); got != want {
			w.t.Errorf("%s: %s = %v, want %v", when, name, got, want)
		}
	}
}

// loops returns the number of rows that ended ok by loop, of the rows planned at since or later. No row may have been
// sent twice.
func (w *world) loops(since time.Time) map[int64]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	rows := map[int64]int{}
	seen := map[string]bool{}
	for _, r := range w.sent {
		if r.Timeline.Planned.Before(since) {
			continue
		}
		if seen[r.ID] {
			w.t.Errorf("%s was sent twice", r.ID)
		}
		if seen[r.ID] = true; r.Outcome == measure.OK {
			rows[r.Loop]++
		}
	}
	return rows
}

func (w *world) pause(workload string, on bool) {
	w.t.Helper()
	if _, _, err := w.g.Pause(workload, on); err != nil {
		w.t.Error(err)
	}
}

func (w *world) restart(name string) {
	w.t.Helper()
	if _, err := w.g.RestartComparison(name, ""); err != nil {
		w.t.Error(err)
	}
}
