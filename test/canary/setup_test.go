//go:build canary

// Package canary_test runs `replayd compare` in real time: two simulated engines with noise, each in a process of its own, are compared by a third
// process. The tests judge by the engines' logs.
package canary_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"replayd/test/machine"
	"replayd/test/outside"
)

var binary string

// TestMain runs more tests at once than there are cores: they mostly wait. A comparison and its engines take 3 to 7 % of a core.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	flag.Parse() // an explicit -parallel takes precedence
	machine.Settle()
	os.Exit(outside.Main(m, &binary))
}

// The load: a request each spacing. TTFT is two fifths of it, so each request has its first token before the next is sent, even one that is twice as slow:
// no request waits for another.
const (
	spacing = 132 * time.Millisecond
	ttft    = spacing * 2 / 5
	input   = 491                  // tokens, and 9 of the template
	output  = 18                   // tokens of 8 ms: a prefill that is 10 % slower makes such an answer 3 % longer
	rate    = (input + 9) / 0.0528 // prompt tokens per second
	jitter  = 0.05

	block = 2 * time.Second // the least length of a block
	// A verdict is expected by then: a fail takes 12 blocks, and a machine with other work makes pairs void.
	longest = 40*block + 20*time.Second
)

// A server is a simulated engine in a process of its own.
type server struct {
	name, address, log string
	dir                string
	seed               uint64
	flags              []string
	process            *outside.Process
}

func (s *server) url() string { return "http://" + s.address }

// start starts the server and waits until it is ready.
func (s *server) start(t *testing.T) {
	t.Helper()
	s.process = outside.Start(t, filepath.Join(s.dir, s.name+".out"), binary, append([]string{
		"sim", "--web.listen-address", s.address, "--log", s.log, "--log-chunks", "--slots", "4096", "--cache-tokens", "0",
		"--prefill-rate", fmt.Sprint(rate), "--jitter", fmt.Sprint(jitter), "--seed", fmt.Sprint(s.seed),
	}, s.flags...)...)
	s.process.Ready(t, http.DefaultClient, s.url()+"/health")
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
	p.trace = steady(t, p.dir)
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

// steady writes a trace with a row each spacing, for longer than any comparison lasts.
func steady(t *testing.T, dir string) string {
	t.Helper()
	rows := make([]outside.Row, int(10*time.Minute/spacing))
	for i := range rows {
		rows[i] = outside.Row{Timestamp: (time.Duration(i) * spacing).Milliseconds(), Input: input, Output: output}
	}
	return outside.Write(t, dir, "trace.jsonl", outside.Trace(rows))
}
