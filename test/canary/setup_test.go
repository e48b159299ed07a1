//go:build canary

// Package canary_test runs `replayd compare` in real time: two simulated engines with noise, each in a process of its own, are compared by a third
// process. The tests judge by the engines' logs.
//
// The sizes are CI's. Full sizes (make suite NAME=canary-hours): CANARY_BLOCK, the least length of a block (1m),
// CANARY_FOR, the time of equal servers (1h), CANARY_SLOW and CANARY_ERRORS, shares of the candidate's requests (0.02,
// 0.01), CANARY_ANSWER, the length of long answers (10m), CANARY_ROUNDS, the rounds of the cost of a pair (7),
// CANARY_SPACING, the time between two pairs (250ms). CANARY_RESULTS is a folder for the table.
package canary_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"replayd/bench/lab"

	"replayd/test/machine"
	"replayd/test/outside"
)

var binary string

// found collects the figures of all comparisons, and the tables of single tests.
var found struct {
	sync.Mutex
	lab.Table
	more []*lab.Table
}

// show logs a table and keeps it.
func show(t *testing.T, table *lab.Table) {
	t.Helper()
	t.Logf("\n%s", table)
	found.Lock()
	defer found.Unlock()
	found.more = append(found.more, table)
}

// TestMain runs more tests at once than there are cores: they mostly wait. A comparison and its engines take 3 to 7 % of a core.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	flag.Parse() // an explicit -parallel takes precedence
	if text := os.Getenv("CANARY_SPACING"); text != "" {
		var err error
		if spacing, err = time.ParseDuration(text); err != nil {
			panic(fmt.Errorf("CANARY_SPACING: %w", err))
		}
	}
	machine.Settle()
	steal := lab.WatchSteal(outside.StealTime)
	code := outside.Main(m, &binary)
	steal.Stop()
	found.Title = "Comparisons of two simulated engines, each in a process of its own."
	found.Head = []string{"scenario", "verdict", "after", "pairs", "void", "ttft", "tpot", "e2e", "bad", "RSS MiB"}
	slices.SortFunc(found.Rows, slices.Compare)
	fmt.Printf("\n%s\n%s; steal: %v\n", &found.Table, lab.Machine(), steal.Total())
	if dir := os.Getenv("CANARY_RESULTS"); dir != "" && code == 0 {
		if err := lab.WriteResults(dir, "canary-hours", steal, append([]*lab.Table{&found.Table}, found.more...)...); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func number(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

// block is the least length of a block. A verdict needs at least a dozen.
func block(t *testing.T) time.Duration {
	t.Helper()
	return outside.Knob(t, "CANARY_BLOCK", 2*time.Second, time.ParseDuration)
}

// The load: a request each spacing. TTFT is two fifths of it, so each request has its first token before the next is sent, even one that is twice as slow:
// no request waits for another. On a machine with other work a longer spacing makes fewer pairs void, for TTFT is longer too.
var spacing = 132 * time.Millisecond

const (
	input  = 491 // tokens, and 9 of the template
	jitter = 0.05
)

func ttft() time.Duration { return spacing * 2 / 5 }

// output is the length of an answer in tokens of 8 ms. A prefill that is 10 % slower makes such an answer 3 % longer.
func output() int { return int(spacing / (7 * time.Millisecond)) }

// rate is in prompt tokens per second.
func rate() float64 { return (input + 9) / ttft().Seconds() }

// A server is a simulated engine in a process of its own.
type server struct {
	name, address, log string
	dir                string
	seed               uint64
	flags              []string
	process            *outside.Process
	lives              int
}

func (s *server) url() string { return "http://" + s.address }

// start starts a life of the server and waits until it is ready.
func (s *server) start(t *testing.T) {
	t.Helper()
	s.begin(t)
	s.process.Ready(t, http.DefaultClient, s.url()+"/health")
}

func (s *server) begin(t *testing.T) {
	t.Helper()
	s.lives++
	s.process = outside.Start(t, filepath.Join(s.dir, fmt.Sprint(s.name, s.lives, ".out")), binary, append([]string{
		"sim", "--web.listen-address", s.address, "--log", s.log, "--log-chunks", "--slots", "4096", "--cache-tokens", "0",
		"--prefill-rate", fmt.Sprint(rate()), "--jitter", fmt.Sprint(jitter), "--seed", fmt.Sprint(s.seed),
	}, s.flags...)...)
}

// A pair of servers and a trace.
type pair struct {
	dir, trace          string
	baseline, candidate *server
}

// newPair starts two servers that differ by the candidate's flags, and by their noise. Both have the further flags in common. The noise of a request
// follows from the seed and its id, and each comparison has the same ids, so each pair has a seed of its own.
func newPair(t *testing.T, seed uint64, candidate []string, common ...string) *pair {
	t.Helper()
	p := &pair{dir: t.TempDir()}
	p.trace = steady(t, p.dir, spacing, input, output())
	p.baseline = newServer(t, p.dir, "baseline", 2*seed, common...)
	p.candidate = newServer(t, p.dir, "candidate", 2*seed+1, append(slices.Clone(common), candidate...)...)
	p.baseline.start(t)
	p.candidate.start(t)
	return p
}

func newServer(t *testing.T, dir, name string, seed uint64, flags ...string) *server {
	t.Helper()
	s := &server{name: name, address: outside.Address(t), log: filepath.Join(dir, name+".jsonl"), dir: dir, seed: seed, flags: flags}
	if err := os.WriteFile(s.log, nil, 0o644); err != nil { // it exists before the first request
		t.Fatal(err)
	}
	return s
}

// traceTime is the length of a trace. Longer comparisons play it again.
const traceTime = 90 * time.Minute

// steady writes a trace with a row each so often.
func steady(t *testing.T, dir string, each time.Duration, input, output int) string {
	t.Helper()
	return outside.Write(t, dir, "trace.jsonl", outside.Trace(bursts(int(traceTime/each), 1, each, input, output)))
}

// bursts makes groups of burst rows. The rows of a group share an instant; the mean time between rows is each.
func bursts(rows, burst int, each time.Duration, input, output int) []outside.Row {
	all := make([]outside.Row, rows)
	for i := range all {
		all[i] = outside.Row{Timestamp: (time.Duration(i/burst*burst) * each).Milliseconds(), Input: input, Output: output}
	}
	return all
}
