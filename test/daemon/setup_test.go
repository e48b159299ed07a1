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
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

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

// A stage is a simulated engine with its log and a daemon with its records, each in a process of its own.
type stage struct {
	dir     string
	engine  string // host:port
	log     string // of the engine
	config  string
	records string
	listen  string
	lives   int
}

// newStage starts the engine.
func newStage(t *testing.T, flags ...string) *stage {
	t.Helper()
	dir := t.TempDir()
	s := &stage{
		dir: dir, engine: outside.Address(t), log: filepath.Join(dir, "sim.jsonl"), config: filepath.Join(dir, "replayd.yaml"),
		records: filepath.Join(dir, "records.jsonl"), listen: outside.Address(t),
	}
	// The log is there from the start, so that it can be read before the first request.
	if err := os.WriteFile(s.log, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	outside.Start(t, filepath.Join(dir, "sim.out"), binary, append([]string{
		"sim", "--web.listen-address", s.engine, "--slots", "4096", "--log", s.log,
	}, flags...)...).Ready(t, http.DefaultClient, "http://"+s.engine+"/health")
	return s
}

// write writes a configuration with the engine as its target: the rest follows the targets.
func (s *stage) write(t *testing.T, rest string) {
	t.Helper()
	outside.Put(t, s.config, s.text(rest))
}

func (s *stage) text(rest string) string {
	return fmt.Sprintf("targets: [{name: sim, url: \"http://%s\"}]\n%s", s.engine, rest)
}

// serve starts the daemon and waits until it is ready.
func (s *stage) serve(t *testing.T, flags ...string) (p *outside.Process, ready time.Time) {
	t.Helper()
	s.lives++
	p = outside.Start(t, filepath.Join(s.dir, fmt.Sprintf("serve%d.out", s.lives)), binary, append([]string{
		"serve", "--config", s.config, "--web.listen-address", s.listen, "--web.enable-lifecycle",
	}, flags...)...)
	p.Ready(t, http.DefaultClient, s.url()+"/-/ready")
	return p, time.Now()
}

func (s *stage) url() string { return "http://" + s.listen }
