//go:build faults

// Package faults_test puts a proxy that breaks connections between the real daemon and the simulated engine, each in
// its own process, and compares the daemon's counts with what the proxy and the engine saw.
package faults_test

import (
	"os"
	"testing"

	"replayd/test/outside"
)

var binary string

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary)) }

// A stage is a Stage with the steps of these tests.
type stage struct{ *outside.Stage }

func newStage(t *testing.T, flags ...string) *stage {
	t.Helper()
	return &stage{outside.NewStage(t, binary, flags...)}
}

// newStageAlone returns a stage whose servers are the test's own.
func newStageAlone(t *testing.T) *stage {
	t.Helper()
	return &stage{outside.NewStageAlone(t, binary)}
}
