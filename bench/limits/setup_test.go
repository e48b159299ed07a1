//go:build bench && linux

// Package limits_test measures the cost of a token, a request and a stream in replayd, and
// replayd's limits: `make suite NAME=bench-limits`. Each figure is compared with that of bench/floor
// in the same run, an epoll loop that only reads the sockets and finds the ends of lines.
// Times are shown and never asserted; the tests assert that every request ended well.
package limits_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

var binary string // replayd

func TestMain(m *testing.M) { os.Exit(rig.Main(m, &binary, "floor", "limits/growth")) }

// wait waits until an instant.
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

// A load is what a client plays in a slice.
type load struct {
	streams, tokens int // streams in flight, tokens of each answer
	ttft, itl       time.Duration
}

// answer returns the length of an answer, with some room.
func (l load) answer() time.Duration {
	return l.ttft + time.Duration(l.tokens)*l.itl + 200*time.Millisecond
}

func (l load) spacing() time.Duration { return lab.Spacing(l.streams, l.tokens, l.ttft, l.itl) }

// trace writes a file of rows over a time. The first row is alone; the others begin after rest.
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

func (l load) server(t *testing.T, o rig.Options) rig.Server {
	t.Helper()
	return rig.Serve(t, o, "--ttft", l.ttft.String(), "--itl", l.itl.String(), "--tokens", strconv.Itoa(l.tokens))
}

// stop kills processes whose exit does not matter, so that the next slice has the machine for itself.
func stop(processes ...*outside.Process) {
	for _, p := range processes {
		_ = p.Cmd.Process.Kill()
		<-p.Done
	}
}
