package outside

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A Process is a program that a test has started. It is ended by its pid at the end of the test.
type Process struct {
	Cmd   *exec.Cmd
	Began time.Time
	Ended time.Time     // once Done is closed
	Err   error         // how it ended
	Done  chan struct{} // closed when it has ended
	log   string
}

// Start runs a program with its output in the file log. The end of the log is shown if the test fails.
func Start(t *testing.T, log, program string, args ...string) *Process {
	t.Helper()
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := &Process{Cmd: exec.Command(program, args...), Began: time.Now(), Done: make(chan struct{}), log: log}
	p.Cmd.Stdout, p.Cmd.Stderr = out, out
	p.start(t)
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			said := strings.Split(strings.TrimSpace(p.Said(t)), "\n")
			t.Logf("the end of %s:\n%s", filepath.Base(log), strings.Join(said[max(0, len(said)-40):], "\n"))
		}
	})
	return p
}

// start starts the program. It ends with the test, even if the test is killed.
func (p *Process) start(t *testing.T) {
	t.Helper()
	dieWithParent(p.Cmd)
	started := make(chan error)
	go func() { // the cleanup waits for it
		runtime.LockOSThread() // the kernel treats this thread as the parent
		defer runtime.UnlockOSThread()
		err := p.Cmd.Start()
		started <- err
		if err == nil {
			p.Err = p.Cmd.Wait()
			p.Ended = time.Now()
			close(p.Done)
		}
	}()
	if err := <-started; err != nil {
		t.Fatal(err)
	}
}

// kill ends the process, even if it was stopped.
func (p *Process) kill() {
	_ = p.Cmd.Process.Kill()
	<-p.Done
}

// Ready waits until a URL of the process answers 200.
func (p *Process) Ready(t *testing.T, client *http.Client, url string) {
	t.Helper()
	Until(t, func() error {
		select {
		case <-p.Done:
			t.Fatalf("%s: want it ready, it ended: %v", filepath.Base(p.log), p.Err)
		default:
		}
		status, body, err := Call(t.Context(), client, http.MethodGet, url)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%s: want 200, got %d: %s", url, status, body)
		}
		return err
	})
}

// Signal sends a signal and returns the instants just before and after.
func (p *Process) Signal(t *testing.T, s syscall.Signal) (before, after time.Time) {
	t.Helper()
	before = time.Now()
	if err := p.Cmd.Process.Signal(s); err != nil {
		t.Fatalf("%s: %v: %v", filepath.Base(p.log), s, err)
	}
	return before, time.Now()
}

// Wait waits for the end of the process.
func (p *Process) Wait(t *testing.T) {
	t.Helper()
	p.WaitIn(t, Patience)
}

// WaitIn is Wait with a bound of its own.
func (p *Process) WaitIn(t *testing.T, within time.Duration) {
	t.Helper()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.Done:
	case <-timer.C:
		t.Fatalf("%s is still there after %v", filepath.Base(p.log), within)
	}
}

// Term ends the process as an operator would, and expects exit code 0.
func (p *Process) Term(t *testing.T) {
	t.Helper()
	p.Signal(t, syscall.SIGTERM)
	p.Wait(t)
	if p.Err != nil {
		t.Fatalf("%s: want exit 0, got %v", filepath.Base(p.log), p.Err)
	}
}

// Said returns the output of the process so far.
func (p *Process) Said(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(p.log)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Write writes a file and returns its path.
func Write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Put replaces a file atomically: it writes a new file beside it and renames that.
func Put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// Patience bounds each wait for an event. Nothing takes so long, on any machine: what has not come by then does not come.
const Patience = 2 * time.Minute

// Until calls come again and again. If it still returns an error after Patience, Until fails the test with that error.
func Until(t *testing.T, come func() error) {
	t.Helper()
	UntilIn(t, Patience, come)
}

// UntilIn is Until with a bound of its own.
func UntilIn(t *testing.T, within time.Duration, come func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.Now().Add(within)
	for err := come(); err != nil; err = come() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %v", within, err)
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		}
	}
}
