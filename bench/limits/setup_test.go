//go:build bench && linux

// Package limits_test measures what a token, a request and a stream cost replayd, and where it ends: `make bench-limits`. Each
// figure stands beside that of bench/floor in the same run, an epoll loop that only reads the sockets and finds the ends of lines.
// Times are shown and never asserted; that every request ended well is.
package limits_test

import (
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

// binary is replayd; tools has the server that stamps and the floor.
var binary, tools string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if tools, err = os.MkdirTemp("", "replayd-limits-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(tools)
	build := exec.Command("go", "build", "-o", tools+"/", "replayd/bench/stamp", "replayd/bench/floor")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s\n%v\n", out, err)
		return 1
	}
	return outside.Main(m, &binary)
}

// A size is how much is measured: small shows that the benches run, full gives figures.
type size struct {
	slice  time.Duration // one client's, of one load
	rounds int           // in each, every client plays every load
	full   bool
}

func sizeOf(t *testing.T) size {
	t.Helper()
	s := size{slice: 1500 * time.Millisecond, rounds: 1}
	if s.full = outside.Knob(t, "BENCH_FULL", false, strconv.ParseBool); s.full {
		s.slice, s.rounds = 4*time.Second, 3
	}
	s.slice = outside.Knob(t, "BENCH_SLICE", s.slice, time.ParseDuration)
	s.rounds = outside.Knob(t, "BENCH_ROUNDS", s.rounds, strconv.Atoi)
	return s
}

// watch looks at the steal until the test has ended.
func watch(t *testing.T) *lab.Steal {
	t.Helper()
	s := lab.WatchSteal(outside.StealTime)
	t.Cleanup(s.Stop)
	return s
}

// show prints tables, and writes them where BENCH_RESULTS says.
func show(t *testing.T, name string, steal *lab.Steal, tables ...*lab.Table) {
	t.Helper()
	for _, table := range tables {
		t.Logf("\n%s", table)
	}
	t.Logf("steal in the run: %v", steal.Total())
	if dir := os.Getenv("BENCH_RESULTS"); dir != "" {
		if err := lab.WriteResults(dir, name, steal, tables...); err != nil {
			t.Error(err)
		}
	}
}

// wait is for an instant.
func wait(t *testing.T, until time.Time) {
	t.Helper()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// A load is what a client is given in a slice.
type load struct {
	streams, tokens int // in flight, of each answer
	ttft, itl       time.Duration
}

// answer is how long one takes, with some room.
func (l load) answer() time.Duration {
	return l.ttft + time.Duration(l.tokens)*l.itl + 200*time.Millisecond
}

func (l load) spacing() time.Duration { return lab.Spacing(l.streams, l.tokens, l.ttft, l.itl) }

// perSecond is how many tokens/s the load asks for.
func (l load) perSecond() float64 { return float64(l.tokens) / l.spacing().Seconds() }

// trace is a file of rows over a time. The first is alone; the others begin when rest has passed.
func (l load) trace(t *testing.T, dir string, rest, over time.Duration) string {
	t.Helper()
	var text strings.Builder
	row := func(at time.Duration) {
		fmt.Fprintf(&text, `{"timestamp": %.3f, "input_length": 20, "output_length": %d}`+"\n", at.Seconds()*1e3, l.tokens)
	}
	if rest > 0 {
		row(0)
	}
	for at := rest; at < rest+over; at += l.spacing() {
		row(at)
	}
	return outside.Write(t, dir, "trace.jsonl", text.String())
}

// server starts a stamp for a load and gives its URL. log is the file for its stamps, "" for none.
func (l load) server(t *testing.T, dir, log string) (*outside.Process, string) {
	t.Helper()
	p := outside.Start(t, filepath.Join(dir, "stamp.out"), filepath.Join(tools, "stamp"),
		"--ttft", l.ttft.String(), "--itl", l.itl.String(), "--tokens", strconv.Itoa(l.tokens), "--log", log)
	const first = "listening on "
	outside.Until(t, 10*time.Second, func() error {
		if said := p.Said(t); !strings.HasPrefix(said, first) || !strings.Contains(said, "\n") {
			return fmt.Errorf("want %s…, got %q", first, said)
		}
		return nil
	})
	address, _, _ := strings.Cut(strings.TrimPrefix(p.Said(t), first), "\n")
	return p, "http://" + address
}

// stop ends processes whose own end does not matter, so that the next slice has the machine for itself.
func stop(processes ...*outside.Process) {
	for _, p := range processes {
		_ = p.Cmd.Process.Kill()
		<-p.Done
	}
}
