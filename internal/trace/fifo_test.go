//go:build unix

package trace

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"replayd/test/machine"
)

func fifo(t *testing.T) string {
	t.Helper()
	t.Chdir(t.TempDir())
	if err := syscall.Mkfifo("fifo", 0o600); err != nil {
		machine.Lacks(t, "named pipes", err)
	}
	return "fifo"
}

func TestNamedPipe(t *testing.T) {
	path := fifo(t)
	written := make(chan error, 1)
	go func() { written <- os.WriteFile(path, []byte(gzipped(t, threeRows)), 0) }()
	f, err := Open(t.Context(), path, Options{})
	if err := errors.Join(err, <-written); err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if rows := read(t, f, 0); len(rows) != 3 {
		t.Errorf("got %v, want three rows", rows)
	}
}

// A daemon reopens its trace at a reload, so it refuses a pipe and does not wait for a writer. A device is refused too:
// it may have no end.
func TestNoFile(t *testing.T) {
	path := fifo(t)
	for path, want := range map[string]string{
		path: "fifo: want a file, got a pipe", "/dev/zero": "/dev/zero: want a file, got a device", ".": ".: want a file, got a directory",
	} {
		if _, err := Open(t.Context(), path, Options{Regular: true}); err == nil || err.Error() != want {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if _, err := Open(t.Context(), "/dev/zero", Options{}); err == nil || err.Error() != "/dev/zero: want a file, got a device" {
		t.Errorf("where a pipe may be: got %v", err)
	}
}

// The context ends the wait for a pipe that has no writer or a silent one.
func TestSilentPipe(t *testing.T) {
	path := fifo(t)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, path, Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("without a writer: %v", err)
	}
	silent, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := Open(ctx, path, Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a silent writer: %v", err)
	}
}
