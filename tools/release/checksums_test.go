package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sha256sum accepts the file, and it notices a byte that changed.
func TestChecksums(t *testing.T) {
	program, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Skip("it needs sha256sum: ", err)
	}
	r := newTestRelease(t)
	for _, name := range []string{"a.tar.gz", "b"} {
		if err := os.WriteFile(filepath.Join(r.out, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.checksums(t.Context()); err != nil {
		t.Fatal(err)
	}
	check := func() (string, error) {
		c := exec.CommandContext(t.Context(), program, "--check", "--strict", checksumFile)
		c.Dir = r.out
		said, err := c.CombinedOutput()
		return string(said), err
	}
	if said, err := check(); err != nil || said != "a.tar.gz: OK\nb: OK\n" {
		t.Errorf("want both files accepted, got %v: %s", err, said)
	}
	if err := os.WriteFile(filepath.Join(r.out, "b"), []byte("B"), 0o644); err != nil {
		t.Fatal(err)
	}
	if said, err := check(); err == nil || !strings.Contains(said, "b: FAILED") {
		t.Errorf("want the changed file refused, got %v: %s", err, said)
	}
}

// Every way in which two runs can differ has its own words.
func TestUnequal(t *testing.T) {
	a := []sum{{"same", "11", 1}, {"first", "22", 1}, {"size", "33", 1}, {"bytes", "44", 1}}
	b := []sum{{"same", "11", 1}, {"second", "22", 1}, {"size", "34", 2}, {"bytes", "45", 1}}
	got := unequal(a, b)
	for name, want := range map[string]string{
		"first": "only in the first run", "second": "only in the second run",
		"size": "1 bytes in the first run, 2 in the second", "bytes": "sha256 44… in the first run, 45… in the second",
	} {
		if got[name] != want {
			t.Errorf("%s: want %q, got %q", name, want, got[name])
		}
	}
	if len(got) != 4 {
		t.Errorf("want 4 files that differ, got %v", got)
	}
}

// Files that no release made are not removed.
func TestEmpty(t *testing.T) {
	for _, name := range []string{"precious.txt", "replayd-folder/"} {
		r := newTestRelease(t)
		path := filepath.Join(r.out, name)
		if strings.HasSuffix(name, "/") {
			if err := os.Mkdir(path, 0o755); err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := r.empty(); err == nil || !strings.Contains(err.Error(), strings.TrimSuffix(name, "/")) {
			t.Errorf("%s: want it named, got %v", name, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	r := newTestRelease(t)
	for _, name := range []string{"replayd-0.1.0.linux-amd64.tar.gz", notesFile, checksumFile} {
		if err := os.WriteFile(filepath.Join(r.out, name), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.empty(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(r.out); err != nil || len(left) != 0 {
		t.Errorf("want an empty folder, got %v, %v", left, err)
	}
}
