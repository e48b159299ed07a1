//go:build prometheus

package prometheus_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// start runs a program until the test ends, then asks it to end, and shows what it said if the test failed.
func start(t *testing.T, program string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background()) // the test's own context ends before its clean-up
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 15 * time.Second // then it is killed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		err := cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("%s %s: want exit 0, got %v", filepath.Base(program), args[0], err)
		}
		if text, err := os.ReadFile(log.Name()); t.Failed() && err == nil {
			t.Logf("%s %s:\n%s", filepath.Base(program), args[0], text)
		}
		_ = log.Close()
	})
}

// until asks again and again, for half a minute, until what is wanted is so. The text says what was seen instead.
func until(t *testing.T, what string, so func() (bool, string)) {
	t.Helper()
	limit, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, seen := so()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-limit.Done():
			t.Fatalf("%s: not so within half a minute, last: %s", what, seen)
		}
	}
}

// get gives status and body, or status 0 and the error.
func get(t *testing.T, client *http.Client, url string) (status int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}
