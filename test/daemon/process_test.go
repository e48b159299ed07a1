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
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/test/outside"
)

var binary string

func TestMain(m *testing.M) {
	var args []string
	if os.Getenv("DAEMON_RACE") != "" { // a race that is found is exit code 66
		args = []string{"-race"}
	}
	os.Exit(outside.Main(m, &binary, args...))
}

// A process is one of ours, ended by its pid at the end of the test.
type process struct {
	cmd   *exec.Cmd
	log   string
	began time.Time
	ended time.Time     // once done is closed
	err   error         // how it ended
	done  chan struct{} // closed when it has
}

func start(t *testing.T, log string, args ...string) *process {
	t.Helper()
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := &process{cmd: exec.Command(binary, args...), log: log, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	p.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0") // the race detector would make each end a second longer
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { // the clean-up waits for it
		p.err = p.cmd.Wait()
		p.ended = time.Now()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // also ends one that was stopped
		<-p.done
		if t.Failed() {
			t.Logf("the end of %s:\n%s", filepath.Base(log), tail(p.text(t), 40))
		}
	})
	return p
}

// signal sends one and gives the instants just before and just after.
func (p *process) signal(t *testing.T, s syscall.Signal) (before, after time.Time) {
	t.Helper()
	before = time.Now()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("%v: %v", s, err)
	}
	return before, time.Now()
}

// wait is for the end of the process.
func (p *process) wait(t *testing.T, within time.Duration) {
	t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		t.Fatalf("%s is still there after %v", filepath.Base(p.log), within)
	}
}

// term ends the process as an operator would.
func (p *process) term(t *testing.T, within time.Duration) {
	t.Helper()
	p.signal(t, syscall.SIGTERM)
	p.wait(t, within)
	if p.err != nil {
		t.Fatalf("want exit 0, got %v", p.err)
	}
}

func (p *process) text(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func tail(text string, lines int) string {
	all := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// until asks again and again whether something has come, and fails the test when it has not in time.
func until(t *testing.T, what string, within time.Duration, come func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(within)
	for !come() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, within)
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}
