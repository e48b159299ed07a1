//go:build replay

// Package replay_test replays real traces with the real binary against the simulated engine in another process. It
// judges by the engine's log: which requests were sent, when, and how they were answered.
//
// The sizes come from the environment, so that CI runs a few minutes of what a release runs in full: REPLAYD_TRACES
// (folder of the real traces; without it the bundled sample is replayed), REPLAY_TO and REPLAY_SPEED.
package replay_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"replayd/internal/sim"
	"replayd/internal/trace"
	"replayd/test/machine"
	"replayd/test/outside"
)

var binary string

func TestMain(m *testing.M) {
	machine.Settle()
	os.Exit(outside.Main(m, &binary))
}

func number(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

// conversation writes the first part of a trace to a file of its own, so that its statistics are those of the part.
func conversation(t *testing.T, to time.Duration) (string, trace.Stats) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "part.jsonl")
	outside.Conversation(t, path, to)
	p, err := trace.Open(t.Context(), path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return path, p.Stats
}

// start runs replayd with its output in NAME.out of the folder.
func start(t *testing.T, dir, name string, args ...string) *outside.Process {
	t.Helper()
	return outside.Start(t, filepath.Join(dir, name+".out"), binary, args...)
}

// watch scrapes each second until the workload has finished the expected requests, or until atMost has passed.
func watch(t *testing.T, url string, expected int, atMost time.Duration) outside.Page {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), atMost)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		p, err := outside.Scrape(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		for _, fault := range p.Balance() {
			t.Error(fault)
		}
		finished, dropped := p.Sum("replayd_requests_total"), p.Sum("replayd_requests_dropped_total")
		if finished+dropped >= float64(expected) {
			return p
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("want %d finished within %v, got %v ended, %v dropped", expected, atMost, finished, dropped)
		}
	}
}

// An engine is a simulated engine in a process of its own.
type engine struct {
	*outside.Process
	address, path string
}

func startEngine(t *testing.T, dir string, flags ...string) *engine {
	t.Helper()
	e := &engine{address: outside.Address(t), path: filepath.Join(dir, "sim.jsonl")}
	e.Process = start(t, dir, "sim", append([]string{"sim", "--web.listen-address", e.address, "--log", e.path}, flags...)...)
	e.Ready(t, http.DefaultClient, "http://"+e.address+"/health")
	return e
}

// log ends the engine and returns its log, without replayd's own probes.
func (e *engine) log(t *testing.T) []sim.LogEntry {
	t.Helper()
	all := outside.EngineLog[sim.LogEntry](t, e.Process, e.path)
	return slices.DeleteFunc(all, func(e sim.LogEntry) bool { return e.ID == "replayd/probe" })
}

// readRecords reads the records of a process that has ended.
func readRecords(t *testing.T, path string) []record {
	t.Helper()
	all, torn := outside.Lines[record](t, path)
	if torn {
		t.Fatalf("%s: want whole lines", path)
	}
	return all
}
