//go:build daemon

// Package daemon_test tests the real daemon under load with what operators do: reloads, kills, stops, drains and
// pauses. It judges by the log of the simulated engine, which is a separate process, and by a plan that it computes
// itself from the trace.
//
// The sizes are CI's. Full sizes: DAEMON_RELOAD_FOR and DAEMON_RELOAD_EVERY (10m, 5s), DAEMON_KILLS (20), DAEMON_STOP
// (20s). REPLAYD_TRACES is the folder of the real traces; without it the bundled sample is used. DAEMON_RACE=1 builds
// both programs with the race detector, which needs a C compiler.
package daemon_test

import (
	"fmt"
	"os"
	"testing"

	"replayd/test/outside"
)

var binary string

// Types that the tests of the daemon share with those of faults.
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
	if os.Getenv("DAEMON_RACE") != "" { // a detected race is exit code 66
		args = []string{"-race"}
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise the race detector makes each exit a second longer
	}
	os.Exit(outside.Main(m, &binary, args...))
}

// A stage is a Stage whose daemon has the engine as its target.
type stage struct{ *outside.Stage }

func newStage(t *testing.T, flags ...string) *stage {
	t.Helper()
	return &stage{outside.NewStage(t, binary, flags...)}
}

// write writes a configuration with the engine as its target; rest follows the targets.
func (s *stage) write(t *testing.T, rest string) {
	t.Helper()
	s.Write(t, s.text(rest))
}

func (s *stage) text(rest string) string {
	return fmt.Sprintf("targets: [{name: sim, url: \"http://%s\"}]\n%s", s.Engine, rest)
}
