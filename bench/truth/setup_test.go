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
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/test/outside"
)

// The programs, built once.
var binary, stampServer, plainClient string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "truth-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	for name, path := range map[string]*string{"stamp": &stampServer, "nethttp": &plainClient} {
		*path = filepath.Join(dir, name)
		build := exec.Command("go", "build", "-o", *path, "replayd/bench/"+name)
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s\n%v\n", out, err)
			return 1
		}
	}
	return outside.Main(m, &binary)
}

// sizes are how much is measured.
type sizes struct {
	slice  time.Duration // in which requests begin, after as many as there are streams
	rounds int
	all    bool // loads
}

func readSizes(t *testing.T) sizes {
	t.Helper()
	count := func(s string) (n int, err error) {
		_, err = fmt.Sscan(s, &n)
		return n, err
	}
	s := sizes{slice: time.Second, rounds: 1}
	if outside.Knob(t, "BENCH_FULL", false, strconv.ParseBool) {
		s = sizes{slice: 3 * time.Second, rounds: 2, all: true}
	}
	s.slice = outside.Knob(t, "BENCH_SLICE", s.slice, time.ParseDuration)
	s.rounds = outside.Knob(t, "BENCH_ROUNDS", s.rounds, count)
	if s.slice <= 0 || s.rounds < 1 {
		t.Fatalf("want BENCH_SLICE and BENCH_ROUNDS above 0, got %v and %d", s.slice, s.rounds)
	}
	return s
}

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

// A server is bench/stamp under one slice.
type server struct {
	*outside.Process
	url, log, ca string
	trust        *http.Client
}

func (l load) serve(t *testing.T) server {
	t.Helper()
	dir := t.TempDir()
	s := server{log: filepath.Join(dir, "stamps.jsonl")}
	args := []string{"--ttft", ttft.String(), "--itl", l.itl.String(), "--tokens", fmt.Sprint(tokens), "--log", s.log}
	scheme := "http://"
	if l.tls {
		s.trust = outside.Certificate(t, dir)
		s.ca, scheme = filepath.Join(dir, "cert.pem"), "https://"
		args = append(args, "--cert", s.ca, "--key", filepath.Join(dir, "key.pem"))
	}
	s.Process = outside.Start(t, filepath.Join(dir, "server.out"), stampServer, args...)
	outside.Until(t, 20*time.Second, func() error {
		said, _, whole := strings.Cut(s.Said(t), "\n")
		if !whole {
			return errors.New("the server says no address")
		}
		s.url = scheme + strings.TrimPrefix(said, "listening on ")
		return nil
	})
	return s
}

// stamps ends the server and reads what it wrote.
func (s server) stamps(t *testing.T) map[string]lab.Stamped {
	t.Helper()
	s.Term(t, 30*time.Second)
	all, err := lab.ReadLines[lab.Stamped](s.log)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]lab.Stamped{}
	for _, a := range all {
		if _, twice := byID[a.ID]; twice {
			t.Errorf("%s was sent twice", a.ID)
		}
		byID[a.ID] = a
	}
	return byID
}

// A client plays a load against a server.
type client struct {
	name string
	play func(t *testing.T, l load, slice time.Duration, s server) played
}

// played is what a client has seen, and what it took.
type played struct {
	seen []lab.Seen
	cpu  *lab.Usage
	page page // of replayd alone
}

// ours are the clients that take the flags of lab.Plan.
func (l load) plan(t *testing.T, name string, slice time.Duration, s server, program ...string) played {
	t.Helper()
	out := filepath.Join(t.TempDir(), name+".jsonl")
	args := append(slices.Clone(program[1:]), "--url", s.url, "--streams", fmt.Sprint(l.streams), "--requests", fmt.Sprint(l.requests(slice)),
		"--spacing", l.spacing().String(), "--tokens", fmt.Sprint(tokens), "--out", out)
	if s.ca != "" {
		args = append(args, "--ca", s.ca)
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

// clients are replayd and those beside it; skipped says why one is missing.
func clients(ctx context.Context) (all []client, skipped string) {
	all = []client{{"replayd", playReplayd}, {"net/http", func(t *testing.T, l load, slice time.Duration, s server) played {
		t.Helper()
		return l.plan(t, "nethttp", slice, s, plainClient)
	}}}
	// asyncio.TaskGroup is of 3.11.
	if out, err := exec.CommandContext(ctx, "python3", "-c", "import asyncio; asyncio.TaskGroup").CombinedOutput(); err != nil {
		return all, fmt.Sprintf("no asyncio client: python3 of 3.11 or later: %v %s", err, out)
	}
	return append(all, client{"asyncio", func(t *testing.T, l load, slice time.Duration, s server) played {
		t.Helper()
		return l.plan(t, "asyncio", slice, s, "python3", "asyncio_client.py")
	}}), ""
}

// results prints the tables, and writes them where BENCH_RESULTS says.
func results(t *testing.T, name string, steal *lab.Steal, tables ...*lab.Table) {
	t.Helper()
	for _, table := range tables {
		t.Logf("%s\n", table)
	}
	t.Logf("%s; steal: %v, %.1f %% of a core", lab.Machine(), steal.Total(), 100*steal.Share())
	if dir := os.Getenv("BENCH_RESULTS"); dir != "" {
		if err := lab.WriteResults(dir, name, steal, tables...); err != nil {
			t.Fatal(err)
		}
	}
}
