//go:build bench && linux

// Package truth_test compares replayd's times with those of a server in another process that stamps each chunk just
// before its write. A plain net/http client and one of Python's asyncio play in the same rounds. The tests print
// tables, and assert counts and bounds that follow from arithmetic, but no times: those depend on the machine.
//
// The sizes come from the environment: BENCH_FULL (true: all loads), BENCH_SLICE
// (how long a slice of a load is measured), BENCH_ROUNDS (how many turns each
// client has). With BENCH_RESULTS the tables are also written to that folder.
package truth_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

var binary string // replayd

func TestMain(m *testing.M) { os.Exit(rig.Main(m, &binary, "nethttp", "floor")) }

// A load is a number of streams of 100 tokens.
type load struct {
	streams int
	itl     time.Duration
	few     bool // measured at CI's size too
	tls     bool
	past    bool // more than this machine carries: only replayd is measured
}

const (
	ttft   = 50 * time.Millisecond
	tokens = 100
)

func (l load) String() string {
	name := fmt.Sprintf("%d at %v", l.streams, l.itl)
	if l.tls {
		name += ", TLS"
	}
	return name
}

// requests returns the number of requests of a slice. The first
// ones, one per stream, open the connections and are not counted.
func (l load) requests(slice time.Duration) int { return l.streams + int(slice/l.spacing()) }

func (l load) spacing() time.Duration { return lab.Spacing(l.streams, tokens, ttft, l.itl) }

func (l load) serve(t *testing.T) rig.Server {
	t.Helper()
	return rig.Serve(t, rig.Options{TLS: l.tls}, "--ttft", ttft.String(), "--itl", l.itl.String(), "--tokens", fmt.Sprint(tokens))
}

// A client plays a load against a server.
type client struct {
	name string
	play func(t *testing.T, l load, slice time.Duration, s rig.Server) played
}

// played is what a client has seen, and its cost.
type played struct {
	seen []lab.Seen
	cpu  *lab.Usage
	page page // of replayd only
}

// plan plays the load with a program that takes the flags of lab.Plan.
func (l load) plan(t *testing.T, name string, slice time.Duration, s rig.Server, program ...string) played {
	t.Helper()
	out := filepath.Join(t.TempDir(), name+".jsonl")
	args := append(slices.Clone(program[1:]), "--url", s.URL, "--streams", fmt.Sprint(l.streams), "--requests", fmt.Sprint(l.requests(slice)),
		"--spacing", l.spacing().String(), "--tokens", fmt.Sprint(tokens), "--out", out)
	if s.CA != "" {
		args = append(args, "--ca", s.CA)
	}
	p := outside.Start(t, out+".out", program[0], args...)
	cpu := lab.WatchCPU(p.Cmd.Process.Pid)
	defer cpu.Stop()
	p.Wait(t, 2*time.Minute)
	if p.Err != nil {
		t.Fatalf("%s: want exit 0, got %v", name, p.Err)
	}
	seen, err := lab.ReadLines[lab.Seen](out)
	if err != nil {
		t.Fatal(err)
	}
	return played{seen: seen, cpu: cpu}
}

// floor is a loop that only reads, with kernel timestamps. Replayd adds the part of its error that exceeds floor's.
// floor has no TLS.
const floor = "floor, kernel's stamps"

// clients returns replayd and the clients that it is compared with; skipped says why one is missing.
func clients(ctx context.Context) (all []client, skipped string) {
	all = []client{{"replayd", playReplayd}, {"net/http", func(t *testing.T, l load, slice time.Duration, s rig.Server) played {
		t.Helper()
		return l.plan(t, "nethttp", slice, s, rig.Program("nethttp"))
	}}, {floor, func(t *testing.T, l load, slice time.Duration, s rig.Server) played {
		t.Helper()
		return l.plan(t, "floor", slice, s, rig.Program("floor"))
	}}}
	// asyncio.TaskGroup needs Python 3.11.
	if out, err := exec.CommandContext(ctx, "python3", "-c", "import asyncio; asyncio.TaskGroup").CombinedOutput(); err != nil {
		return all, fmt.Sprintf("no asyncio client: python3 of 3.11 or later: %v %s", err, out)
	}
	return append(all, client{"asyncio", func(t *testing.T, l load, slice time.Duration, s rig.Server) played {
		t.Helper()
		return l.plan(t, "asyncio", slice, s, "python3", "asyncio_client.py")
	}}), ""
}
