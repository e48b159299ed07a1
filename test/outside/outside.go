// Package outside has what tests share that observe the real
// binary, third-party programs or an inference server from outside.
package outside

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Main builds replayd, with further arguments of go build, sets binary to its path, runs the tests and returns their
// exit code. It is for TestMain.
func Main(m *testing.M, binary *string, args ...string) int {
	dir, err := os.MkdirTemp("", "replayd-test-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	*binary = filepath.Join(dir, "replayd")
	build := exec.Command("go", append(append([]string{"build"}, args...), "-o", *binary, "replayd/cmd/replayd")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if slices.Contains(args, "-race") { // the race detector needs cgo
		build.Env = append(build.Env, "CGO_ENABLED=1")
	}
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s\n%v\n", out, err)
		return 1
	}
	return m.Run()
}

// Install runs the script beside the test and returns its stdout. If its exit code says that a requirement is not
// available (3), the test is skipped, but fails in CI.
func Install(t *testing.T, args ...string) string {
	t.Helper()
	return install(t, "./install", args...)
}

func install(t *testing.T, script string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), script, args...)
	var told bytes.Buffer
	c.Stderr = &told
	out, err := c.Output()
	if err != nil {
		Missing(t, err, string(out)+told.String())
	}
	return strings.TrimSpace(string(out))
}

// Missing skips the test if err is exit code 3 or a missing program. Otherwise, and in CI, it fails the test.
func Missing(t *testing.T, err error, said string) {
	t.Helper()
	var exit *exec.ExitError
	gone := errors.As(err, &exit) && exit.ExitCode() == 3 || errors.Is(err, exec.ErrNotFound)
	if gone && os.Getenv("CI") != "true" {
		t.Skipf("%v: %s", err, said)
	}
	t.Fatalf("%v: %s", err, said)
}

// Knob reads a size from the environment.
func Knob[T any](t *testing.T, name string, otherwise T, read func(string) (T, error)) T {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return otherwise
	}
	v, err := read(s)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// Address returns an address of loopback for a server that the caller starts. The port is free, and reserved for this
// process. Address is for tests and for scripts.
func Address(t interface{ Fatalf(string, ...any) }) string {
	port, err := reserve()
	if err != nil {
		t.Fatalf("no free port: %v", err)
	}
	return fmt.Sprint("127.0.0.1:", port)
}

// Place parses an X-Request-Id.
func Place(t *testing.T, id string) (workload string, loop int64, row int) {
	t.Helper()
	parts := strings.Split(id, "/")
	if len(parts) != 3 {
		t.Fatalf("want workload/loop/row, got %q", id)
	}
	loop, err1 := strconv.ParseInt(parts[1], 10, 64)
	row, err2 := strconv.Atoi(parts[2])
	if err1 != nil || err2 != nil {
		t.Fatalf("want workload/loop/row, got %q", id)
	}
	return parts[0], loop, row
}

// StealTime returns the time that the host gave of this machine's cores to others: the eighth field of the first line
// of /proc/stat, in ticks of 10 ms (proc(5)); 0 if there is none.
func StealTime() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	fields := bytes.Fields(line)
	if len(fields) < 9 {
		return 0
	}
	ticks, _ := strconv.ParseInt(string(fields[8]), 10, 64)
	return time.Duration(ticks) * 10 * time.Millisecond
}
