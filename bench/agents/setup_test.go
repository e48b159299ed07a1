//go:build bench && linux

// Package agents_test plays recorded sessions of agents against the simulated engine: `make suite NAME=bench-agents`.
// It has AIPerf on the same files beside replayd, and what large prompts and many sessions at once take. Times are
// shown and never asserted; the tests assert that every request arrived once, with its lengths, and ended well.
package agents_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"replayd/internal/sim"
	"replayd/internal/trace"

	"replayd/bench/lab"
	"replayd/test/outside"
)

var binary string // replayd

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary)) }

// folder is that of the twelve public sessions.
func folder(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(os.Getenv("REPLAYD_TRACES"), "weka")
	if _, err := os.Stat(dir); os.Getenv("REPLAYD_TRACES") == "" || err != nil {
		t.Skip("REPLAYD_TRACES names no folder with the sessions of weka/")
	}
	return dir
}

// An engine is a simulated engine with room for everything.
type engine struct {
	*outside.Process
	url, log string
}

func serveEngine(t *testing.T, dir string, flags ...string) engine {
	t.Helper()
	address, log := outside.Address(t), filepath.Join(dir, "sim.jsonl")
	e := engine{url: "http://" + address, log: log}
	e.Process = outside.Start(t, filepath.Join(dir, "sim.out"), binary, append([]string{
		"sim", "--web.listen-address", address, "--log", log, "--max-model-len", "400000", "--cache-tokens", "1000000000",
		"--block-tokens", "64", "--template-tokens", "0", "--slots", "2048", "--ttft", "5ms",
	}, flags...)...)
	e.Ready(t, http.DefaultClient, e.url+"/health")
	return e
}

// end ends the engine and returns its log, without probes.
func (e engine) end(t *testing.T) []sim.LogEntry {
	t.Helper()
	e.Term(t, time.Minute)
	all, _ := outside.Lines[sim.LogEntry](t, e.log)
	return slices.DeleteFunc(all, func(e sim.LogEntry) bool { return e.ID == "replayd/probe" })
}

// lengths are the tokens of a request.
type lengths struct{ input, output int }

// held compares the requests that arrived with the rows, by their lengths, and returns how many rows have their request.
func held(t *testing.T, log []sim.LogEntry, rows map[lengths]int) (as int) {
	t.Helper()
	left := map[lengths]int{}
	for l, n := range rows {
		left[l] = n
	}
	for _, e := range log {
		if e.Outcome != sim.OK {
			t.Errorf("%s: want ok, got %s", e.ID, e.Outcome)
		}
		if l := (lengths{e.PromptTokens, e.OutputTokens}); left[l] > 0 {
			left[l]--
			as++
		}
	}
	return as
}

// open returns the figures of a trace, the lengths of its rows, and which rows begin a session.
func open(t *testing.T, path string) (s trace.Stats, rows map[lengths]int, begins map[int]bool) {
	t.Helper()
	f, err := trace.Open(t.Context(), path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, begins = map[lengths]int{}, map[int]bool{}
	if err := f.Each(t.Context(), func(r *trace.Record) {
		rows[lengths{r.InputTokens, r.OutputTokens}]++
		begins[r.Number] = len(r.After) == 0
	}); err != nil {
		t.Fatal(err)
	}
	return f.Stats, rows, begins
}

// cost is the CPU time of a process that has ended, with all processes that it waited for.
func cost(p *outside.Process) time.Duration {
	return p.Cmd.ProcessState.UserTime() + p.Cmd.ProcessState.SystemTime()
}

// A late is the lateness in a record of replayd.
type late struct {
	Row      int   `json:"row"`
	Lateness int64 `json:"lateness_ns"`
}

// lateness returns the lateness of the sessions' first requests and of all others, in ms.
func lateness(t *testing.T, records string, begins map[int]bool) (firsts, others lab.Sample) {
	t.Helper()
	all, torn := outside.Lines[late](t, records)
	if torn {
		t.Fatal(errors.New("want whole records"))
	}
	for _, r := range all {
		if ms := float64(r.Lateness) / 1e6; begins[r.Row] {
			firsts = append(firsts, ms)
		} else {
			others = append(others, ms)
		}
	}
	return firsts, others
}
