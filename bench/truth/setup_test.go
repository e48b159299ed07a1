//go:build bench && linux

// Package truth_test compares replayd's times with those of a server in another process that stamps each chunk just
// before its write. A loop that only reads plays in the same rounds. The tests print tables, and assert counts and
// bounds that follow from arithmetic, but no times: those depend on the machine.
//
// The sizes come from the environment: BENCH_FULL (true: all loads), BENCH_SLICE
// (how long a slice of a load is measured), BENCH_ROUNDS (how many turns each
// client has). With BENCH_RESULTS the tables are also written to that folder.
package truth_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

var binary string // replayd

func TestMain(m *testing.M) { os.Exit(rig.Main(m, &binary, "floor")) }

// A load is a number of streams of 100 tokens.
type load struct {
	streams int
	itl     time.Duration
	few     bool // measured at CI's size too
	past    bool // more than this machine carries: only replayd is measured
}

const (
	ttft   = 50 * time.Millisecond
	tokens = 100
)

func (l load) String() string {
	return fmt.Sprintf("%d at %v", l.streams, l.itl)
}

// requests returns the number of requests of a slice. The first
// ones, one per stream, open the connections and are not counted.
func (l load) requests(slice time.Duration) int { return l.streams + int(slice/l.spacing()) }

func (l load) spacing() time.Duration { return lab.Spacing(l.streams, tokens, ttft, l.itl) }

func (l load) serve(t *testing.T) rig.Server {
	t.Helper()
	return rig.Serve(t, rig.Options{}, "--ttft", ttft.String(), "--itl", l.itl.String(), "--tokens", fmt.Sprint(tokens))
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

// playFloor plays a load with bench/floor.
func playFloor(t *testing.T, l load, slice time.Duration, s rig.Server) played {
	t.Helper()
	out := filepath.Join(t.TempDir(), "floor.jsonl")
	p := outside.Start(t, out+".out", rig.Program("floor"), "--url", s.URL, "--streams", fmt.Sprint(l.streams),
		"--requests", fmt.Sprint(l.requests(slice)), "--spacing", l.spacing().String(), "--tokens", fmt.Sprint(tokens),
		"--out", out)
	cpu := lab.WatchCPU(p.Cmd.Process.Pid)
	defer cpu.Stop()
	p.Wait(t)
	if p.Err != nil {
		t.Fatalf("floor: want exit 0, got %v", p.Err)
	}
	seen, err := lab.ReadLines[lab.Seen](out)
	if err != nil {
		t.Fatal(err)
	}
	return played{seen: seen, cpu: cpu}
}

// floor is a loop that only reads, with kernel timestamps. Replayd adds the part of its error that exceeds floor's.
const floor = "floor, kernel's stamps"

// clients are replayd and the loop that it is compared with.
var clients = []client{{"replayd", playReplayd}, {floor, playFloor}}
