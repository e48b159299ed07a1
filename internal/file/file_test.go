//go:build unix

package file

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"replayd/test/machine"
)

func fifo(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		machine.Lacks(t, "named pipes", err)
	}
	return path
}

// No open waits, whatever the path is.
func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir) // the path of a socket is short
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	pipe := fifo(t)
	for path, kind := range map[string]string{pipe: "a pipe", "/dev/zero": "a device", dir: "a directory", "socket": "a socket"} {
		want := path + ": want a file, got " + kind
		_, opened := Open(path)
		_, made := Create(path, 0o600)
		_, read := Read(path, 1)
		for call, err := range map[string]error{"Open": opened, "Create": made, "Read": read, "Check": Check(path, false)} {
			if err == nil || err.Error() != want {
				t.Errorf("%s: want %q, got %v", call, want, err)
			}
		}
	}
	f, err := OpenSoon(pipe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if text, err := io.ReadAll(f); len(text) > 0 || err != nil {
		t.Errorf("a pipe without a writer: want nothing, got %q, %v", text, err)
	}
	if _, err := OpenSoon("/dev/zero"); err == nil || !strings.Contains(err.Error(), "got a device") {
		t.Errorf("where a pipe may be: got %v", err)
	}
	if _, err := Open("none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("1234"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := Read(path, 4); string(text) != "1234" || err != nil {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := Read(path, 3); err == nil || err.Error() != path+": want at most 3 bytes, got more" {
		t.Errorf("got %v", err)
	}
}

// The end of a context ends the wait for a writer, and a read from one that says nothing.
func TestPipesEndWithTheirContext(t *testing.T) {
	path := fifo(t)
	ctx, cancel := context.WithCancel(t.Context())
	opened := make(chan *os.File)
	go func() {
		f, err := OpenPipe(ctx, path, true)
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		opened <- f
	}()
	cancel() // before or while it waits
	if f := <-opened; f != nil {
		_ = f.Close()
	}
	silent, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	f, err := OpenPipe(t.Context(), path, true)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	stop := Until(ctx, f)
	defer stop()
	if _, err := io.ReadAll(f); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("want the read ended, got %v", err)
	}
	if stop := Until(ctx, strings.NewReader("")); !stop() {
		t.Error("want nothing to stop")
	}
}

func TestReal(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for link, to := range map[string]string{"folder": dir, "dangling": "folder/none", "circle": "circle", "twice": "dangling"} {
		if err := os.Symlink(to, link); err != nil {
			machine.Lacks(t, "symbolic links", err)
		}
	}
	for path, want := range map[string]string{
		"none": "none", "./folder/../folder/none": "none", "dangling": "none", "twice": "none", "circle": "circle", "no/folder": "no/folder",
	} {
		if got := Real(path); got != filepath.Join(dir, want) {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
