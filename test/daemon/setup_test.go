//go:build daemon

// Package daemon_test holds the real daemon to what an operator does to it: reloads, kills, stops, drains and pauses,
// under load. It judges by the log of the simulated engine, which is another process, and by a plan that it works out
// itself from the trace.
//
// The sizes are CI's. These make them whole: DAEMON_RELOAD_FOR and DAEMON_RELOAD_EVERY (10m, 5s), DAEMON_KILLS (20),
// DAEMON_STOP (20s). REPLAYD_TRACES is the folder of the real traces; without it the bundled sample stands in.
// DAEMON_RACE=1 builds both sides with the race detector, which needs a C compiler.
package daemon_test

import (
	"fmt"
	"os"
	"testing"

	"replayd/test/outside"
)

var binary string

// What tests of the daemon share with those of faults.
type (
	page   = outside.Page
	row    = outside.Row
	plan   = outside.Plan
	due    = outside.Due
	shift  = outside.Shift
	record = outside.Record
)

func TestMain(m *testing.M) {
	var args []string
	if os.Getenv("DAEMON_RACE") != "" { // a race that is found is exit code 66
		args = []string{"-race"}
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector would make each end a second longer
	}
	os.Exit(outside.Main(m, &binary, args...))
}

// A stage is one whose daemon has the engine as its target.
type stage struct{ *outside.Stage }

func newStage(t *testing.T, flags ...string) *stage {
	t.Helper()
	return &stage{outside.NewStage(t, binary, flags...)}
}

// write writes a configuration with the engine as its target: the rest follows the targets.
func (s *stage) write(t *testing.T, rest string) {
	t.Helper()
	s.Write(t, s.text(rest))
}

func (s *stage) text(rest string) string {
	return fmt.Sprintf("targets: [{name: sim, url: \"http://%s\"}]\n%s", s.Engine, rest)
}
