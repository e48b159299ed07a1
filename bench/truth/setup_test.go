//go:build bench && linux

// Package truth_test holds replayd's times against those of a server in another process that stamps each chunk just before
// its write, beside a plain net/http client and one of Python's asyncio in the same rounds. It prints tables, and asserts
// counts and bounds that follow from arithmetic, but no times: those are of the machine.
//
// The sizes come from the environment: BENCH_FULL (true: all loads), BENCH_SLICE (how long a slice of a load is measured),
// BENCH_ROUNDS (how often each client has its turn). With BENCH_RESULTS the tables go to that folder too.
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

// A load is so many streams of 100 tokens.
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

// requests are those of a slice. The first ones, as many as there are streams, open the connections and count in no figure.
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

// played is what a client has seen, and what it took.
type played struct {
	seen []lab.Seen
	cpu  *lab.Usage
	page page // of replayd alone
}

// ours are the clients that take the flags of lab.Plan.
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

// floor is a loop that does nothing but read, with the kernel's stamps: what replayd's error is beyond its own, replayd adds.
// It speaks no TLS.
const floor = "floor, kernel's stamps"

// clients are replayd and those beside it; skipped says why one is missing.
func clients(ctx context.Context) (all []client, skipped string) {
	all = []client{{"replayd", playReplayd}, {"net/http", func(t *testing.T, l load, slice time.Duration, s rig.Server) played {
		t.Helper()
		return l.plan(t, "nethttp", slice, s, rig.Program("nethttp"))
	}}, {floor, func(t *testing.T, l load, slice time.Duration, s rig.Server) played {
		t.Helper()
		return l.plan(t, "floor", slice, s, rig.Program("floor"))
	}}}
	// asyncio.TaskGroup is of 3.11.
	if out, err := exec.CommandContext(ctx, "python3", "-c", "import asyncio; asyncio.TaskGroup").CombinedOutput(); err != nil {
		return all, fmt.Sprintf("no asyncio client: python3 of 3.11 or later: %v %s", err, out)
	}
	return append(all, client{"asyncio", func(t *testing.T, l load, slice time.Duration, s rig.Server) played {
		t.Helper()
		return l.plan(t, "asyncio", slice, s, "python3", "asyncio_client.py")
	}}), ""
}
