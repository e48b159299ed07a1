//go:build faults

// Package faults_test puts a proxy that breaks connections between the real daemon and the simulated engine, each in
// its own process, and compares the daemon's counts with what the proxy and the engine saw.
//
// The sizes are CI's. Full sizes: FAULTS_FOR (30m), FAULTS_LOOPS (24), FAULTS_KILLS (100). FAULTS_SEED is the seed of
// the schedule of faults. FAULTS_RACE=1 builds both programs with the race detector, which needs a C compiler.
package faults_test

import (
	"os"
	"testing"

	"replayd/test/outside"
)

var binary string

func TestMain(m *testing.M) {
	var args []string
	if os.Getenv("FAULTS_RACE") != "" { // a detected race is exit code 66
		args = []string{"-race"}
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise the race detector makes each exit a second longer
	}
	os.Exit(outside.Main(m, &binary, args...))
}

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
