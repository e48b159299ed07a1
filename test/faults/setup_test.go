//go:build faults

// Package faults_test puts a proxy that breaks connections between the real daemon and the simulated engine, each in a
// process of its own, and holds the daemon's counts to what the proxy and the engine saw.
//
// The sizes are CI's. These make them whole: FAULTS_FOR (30m), FAULTS_LOOPS (24), FAULTS_KILLS (100). FAULTS_SEED is the seed
// of the schedule of faults. FAULTS_RACE=1 builds both sides with the race detector, which needs a C compiler.
package faults_test

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

func TestMain(m *testing.M) {
	var args []string
	if os.Getenv("FAULTS_RACE") != "" { // a race that is found is exit code 66
		args = []string{"-race"}
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector would make each end a second longer
	}
	os.Exit(outside.Main(m, &binary, args...))
}

// A stage is a simulated engine with its log and a daemon with its records, each in a process of its own. What is between the
// two is the test's to choose.
type stage struct {
	dir     string
	engine  string // host:port
	log     string // of the engine
	config  string
	records string
	listen  string // host:port of the daemon
	flags   []string
	starts  int              // of the engine
	sim     *outside.Process // the engine's present life
	lives   int              // of the daemon
}

// newStage starts the engine.
func newStage(t *testing.T, flags ...string) *stage {
	t.Helper()
	dir := t.TempDir()
	s := &stage{
		dir: dir, engine: outside.Address(t), log: filepath.Join(dir, "sim.jsonl"), config: filepath.Join(dir, "replayd.yaml"),
		records: filepath.Join(dir, "records.jsonl"), listen: outside.Address(t), flags: flags,
	}
	// The log is there from the start, so that it can be read before the first request.
	if err := os.WriteFile(s.log, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.start(t)
	s.sim.Ready(t, http.DefaultClient, "http://"+s.engine+"/health")
	return s
}

// start begins a life of the engine, which appends to the log of those before.
func (s *stage) start(t *testing.T) {
	t.Helper()
	s.starts++
	s.sim = outside.Start(t, filepath.Join(s.dir, fmt.Sprintf("sim%d.out", s.starts)), binary, append([]string{
		"sim", "--web.listen-address", s.engine, "--slots", "4096", "--log", s.log,
	}, s.flags...)...)
}

// write writes a configuration.
func (s *stage) write(t *testing.T, text string) {
	t.Helper()
	outside.Put(t, s.config, text)
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
