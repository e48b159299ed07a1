//go:build bench && linux

// Package rig has what the benchmarks against bench/stamp share: the programs, built once, the size of the measurement,
// the server, and the folder of the tables.
package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/test/outside"
)

var dir string // of the programs

// Main builds replayd, bench/stamp and other programs of bench/, sets binary to the path of replayd, runs the tests and
// returns their exit code. It is for TestMain.
func Main(m *testing.M, binary *string, programs ...string) int {
	var err error
	if dir, err = os.MkdirTemp("", "replayd-bench-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	args := []string{"build", "-o", dir + "/", "replayd/bench/stamp"}
	for _, name := range programs {
		args = append(args, "replayd/bench/"+name)
	}
	build := exec.Command("go", args...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s\n%v\n", out, err)
		return 1
	}
	return outside.Main(m, binary)
}

// Program returns the path of a program that Main has built.
func Program(name string) string { return filepath.Join(dir, filepath.Base(name)) }

// A Size is the size of a measurement.
type Size struct {
	Slice  time.Duration // of one client and load
	Rounds int           // in each, every client has its turn with every load
	Full   bool          // otherwise just enough to show that the benchmarks run
}

// ReadSize reads the size from BENCH_FULL. BENCH_SLICE and
// BENCH_ROUNDS take precedence over the values that follow from it.
func ReadSize(t *testing.T) Size {
	t.Helper()
	s := Size{Slice: time.Second, Rounds: 1}
	if s.Full = outside.Knob(t, "BENCH_FULL", false, strconv.ParseBool); s.Full {
		s.Slice, s.Rounds = 3*time.Second, 2
	}
	s.Slice = outside.Knob(t, "BENCH_SLICE", s.Slice, time.ParseDuration)
	s.Rounds = outside.Knob(t, "BENCH_ROUNDS", s.Rounds, strconv.Atoi)
	if s.Slice <= 0 || s.Rounds < 1 {
		t.Fatalf("want BENCH_SLICE and BENCH_ROUNDS above 0, got %v and %d", s.Slice, s.Rounds)
	}
	return s
}

// A Server is bench/stamp.
type Server struct {
	*outside.Process
	URL string
	log string // "": none
}

// Options are the settings of Serve beyond the flags of the server.
type Options struct{ NoLog bool }

// Serve starts a server.
func Serve(t *testing.T, o Options, flags ...string) Server {
	t.Helper()
	dir := t.TempDir()
	s := Server{}
	if !o.NoLog {
		s.log = filepath.Join(dir, "stamps.jsonl")
	}
	flags = append(flags, "--log", s.log)
	s.Process = outside.Start(t, filepath.Join(dir, "stamp.out"), Program("stamp"), flags...)
	outside.Until(t, func() error {
		said, _, whole := strings.Cut(s.Said(t), "\n")
		if !whole {
			return errors.New("the server says no address")
		}
		s.URL = "http://" + strings.TrimPrefix(said, "listening on ")
		return nil
	})
	return s
}

// Stamps ends the server and returns its records by id.
func (s Server) Stamps(t *testing.T) map[string]lab.Stamped {
	t.Helper()
	s.Term(t)
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

// WatchSteal watches the steal time until the test has ended, or Stop.
func WatchSteal(t *testing.T) *lab.Steal {
	t.Helper()
	s := lab.WatchSteal(outside.StealTime)
	t.Cleanup(s.Stop)
	return s
}

// Results prints tables, and writes them to the folder that BENCH_RESULTS names.
func Results(t *testing.T, name string, steal *lab.Steal, tables ...*lab.Table) {
	t.Helper()
	for _, table := range tables {
		t.Logf("\n%s", table)
	}
	t.Logf("%s; steal: %v, %.1f %% of a core", lab.Machine(), steal.Total(), 100*steal.Share())
	if dir := os.Getenv("BENCH_RESULTS"); dir != "" {
		if err := lab.WriteResults(dir, name, steal, tables...); err != nil {
			t.Fatal(err)
		}
	}
}
