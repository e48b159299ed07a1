//go:build unix

package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"replayd/test/machine"
)

// A configuration may come from a pipe, as a check of one that another program makes does. Without a writer it is not waited for.
func TestConfigurationFromAPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		machine.Lacks(t, "named pipes", err)
	}
	if _, err := Load(path, nil, nil, func(string) {}); err == nil || err.Error() != path+": want a configuration, got a pipe that nobody writes to" {
		t.Errorf("got %v", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString("drain: 7\n"); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	shell := fmt.Sprintf("/dev/fd/%d", r.Fd()) // as of <(...)
	if _, err := os.Stat(shell); err != nil {
		machine.Lacks(t, "/dev/fd", err)
	}
	if _, err := Load(shell, nil, nil, func(string) {}); err == nil || !strings.Contains(err.Error(), shell+":1: drain: ") {
		t.Errorf("got %v", err)
	}
	if NewWatcher(path).known != [32]byte{} {
		t.Error("want a pipe not watched")
	}
}
