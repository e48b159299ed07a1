//go:build daemon

// Package daemon_test does to the real daemon what virtual time cannot: it kills the process, and stops it for a while.
// It judges by the log of the simulated engine, which is a separate process, and by a plan that it computes itself from
// the trace. Reloads, drains and pauses are tested in virtual time by package daemon.
package daemon_test

import (
	"fmt"
	"os"
	"testing"

	"replayd/test/outside"
)

var binary string

type (
	page   = outside.Page
	plan   = outside.Plan
	due    = outside.Due
	record = outside.Record
)

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary)) }

// A stage is a Stage whose daemon has the engine as its target.
type stage struct{ *outside.Stage }

func newStage(t *testing.T, flags ...string) *stage {
	t.Helper()
	return &stage{outside.NewStage(t, binary, flags...)}
}

// write writes a configuration with the engine as its target; rest follows the targets.
func (s *stage) write(t *testing.T, rest string) {
	t.Helper()
	s.Write(t, fmt.Sprintf("targets: [{name: sim, url: \"http://%s\"}]\n%s", s.Engine, rest))
}
