// Package well_test runs the configurations that the project ships, above all the chart's, with simulated engines in
// virtual time, and checks how a healthy engine appears on their pages. `go test` checks the pages of a loop. With
// the tag prometheus (make suite NAME=test-prometheus) promtool evaluates that no alert fires.
package well_test

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	"replayd/internal/comparison"
	"replayd/internal/config"
	"replayd/internal/daemon"
	"replayd/internal/metrics"
	"replayd/internal/replay"
	"replayd/internal/scrape"
	"replayd/internal/sim"
	"replayd/internal/synth"

	"replayd/test/outside"
)

// of returns an engine whose answers have these speeds, whatever their number.
func of(ttft, itl time.Duration) sim.Options {
	o := sim.Defaults()
	o.TTFT, o.ITL, o.Slots = ttft, itl, 1024
	return o
}

// An outage begins so long after the start. Until it is over the engine refuses connections.
type outage struct{ at, long time.Duration }

// play runs a daemon with an engine for a virtual time. It returns what a Prometheus that scrapes the daemon at an
// interval would have stored, and the last page.
func play(t *testing.T, c config.Config, every time.Duration, engine sim.Options, long time.Duration, outages ...outage) (
	r *outside.Recording, last outside.Page,
) {
	t.Helper()
	r = &outside.Recording{Interval: every}
	synctest.Test(t, func(t *testing.T) {
		e, err := sim.New(engine)
		if err != nil {
			t.Fatal(err)
		}
		wire := outside.NewPipes()
		server := &http.Server{IdleTimeout: 5 * time.Second, Handler: e.Handler()}
		var serving sync.WaitGroup
		serving.Go(func() { _ = server.Serve(wire) })
		defer func() {
			_ = server.Close()
			serving.Wait()
			<-time.After(time.Second) // net/http lingers on a connection that it closes before it read a body
		}()
		reg, started := prometheus.NewRegistry(), float64(time.Now().Unix())
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "process_start_time_seconds", Help: "As of client_golang, in virtual time."},
			func() float64 { return started }))
		g, err := daemon.Build(t.Context(), daemon.Options{
			Virtual:     daemon.Virtual{Dial: wire.Dial, Sleeper: func() replay.Sleeper { return replay.NewTimers() }},
			Config:      c,
			Meter:       metrics.NewMeter(reg),
			Comparisons: comparison.NewCollector(reg),
			Engines:     scrape.NewCollector(reg, scrape.Engines),
			UserAgent:   "replayd/test",
			Patient:     true,
			Log:         slog.New(slog.DiscardHandler),
			Failed:      func(err error) { t.Error(err) },
		})
		if err != nil {
			t.Error(err)
			return
		}
		ctx, stop := context.WithCancel(t.Context())
		at := time.Now()
		g.Start(ctx, t.Context())
		for _, o := range outages {
			time.AfterFunc(o.at, func() { wire.Die(true) })
			time.AfterFunc(o.at+o.long, func() { wire.Die(false) })
		}
		for end := at.Add(long); at.Before(end); at = at.Add(every) {
			<-time.After(time.Until(at))
			synctest.Wait()
			if last, err = r.Scrape(reg, map[string]string{
				"cluster": "c", "namespace": "n", "job": "replayd",
				"instance": "a:9797",
			}); err != nil {
				t.Fatal(err)
			}
		}
		stop()
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return r, last
}

// chart returns the configuration of the chart's defaults. The trace is the chart's sample.
func chart(t *testing.T) config.Config {
	t.Helper()
	var values struct{ Canary map[string]any }
	text, err := os.ReadFile("../../deploy/helm/replayd/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &values); err != nil || len(values.Canary) == 0 {
		t.Fatalf("values.yaml: want the workload canary, got %v, %v", values.Canary, err)
	}
	w := maps.Clone(values.Canary)
	w["trace"] = map[string]string{"path": sample(t)}
	text, err = yaml.Marshal(map[string]any{"targets": []any{map[string]string{"name": "engine", "url": "http://engine:8000"}}, "workloads": []any{w}})
	if err != nil {
		t.Fatal(err)
	}
	return load(t, outside.Write(t, t.TempDir(), "replayd.yaml", string(text)), "")
}

func sample(t *testing.T) string {
	t.Helper()
	return outside.Write(t, t.TempDir(), "sample.jsonl", string(synth.Sample))
}

// public returns the path of the trace that the documents use.
func public(t *testing.T) string {
	t.Helper()
	folder := os.Getenv("REPLAYD_TRACES")
	if folder == "" {
		t.Skip("REPLAYD_TRACES names no folder with mooncake_conversation.jsonl")
	}
	return absolute(t, filepath.Join(folder, "mooncake_conversation.jsonl"))
}

// documented writes the first configuration in a document to a file.
func documented(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, begins, _ := strings.Cut(string(text), "```yaml\n")
	shown, _, found := strings.Cut(begins, "```\n")
	if !found {
		t.Fatalf("%s: want a configuration, got none", path)
	}
	return outside.Write(t, t.TempDir(), "replayd.yaml", shown)
}

// load reads a configuration as the daemon does, for a single engine without GPUs. If a trace is named, it replaces the
// configured one.
func load(t *testing.T, path, trace string) config.Config {
	t.Helper()
	c, err := config.Load(path, nil, nil, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	c.GPUs, c.Records = nil, config.Records{}
	for i := range c.Targets {
		c.Targets[i].Metrics.Interval = 15 * time.Second // a day of scrapes takes long
	}
	for i := range c.Workloads {
		if trace != "" {
			c.Workloads[i].Trace.Path = trace
		}
	}
	return c
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
