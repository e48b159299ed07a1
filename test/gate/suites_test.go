package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"replayd/test/machine"
)

// The suites that .ci/suites runs here: good passes, bad fails, chance fails once, absent cannot be had, busy
// lacks a quiet machine, cut ends the whole run at its first try.
const stub = `#!/usr/bin/env bash
case $1 in
names) printf '%s\n' good bad chance absent busy cut last ;;
good | last) ;;
absent) echo "no database"; exit 3 ;;
busy) echo "    a_test.go:7: not measured: load 8.5: the lateness of the requests" ;;
chance) [ -e tried ] || { touch tried; exit 1; } ;;
cut) [ -e begun ] || { touch begun; kill -KILL "$PPID"; sleep 60; } ;;
*) echo "it is bad"; exit 1 ;;
esac
`

// A scripts is a checkout with the scripts of .ci and the stub.
type scripts struct{ dir string }

func newScripts(t *testing.T) scripts {
	t.Helper()
	for _, program := range []string{"bash", "git", "awk"} {
		if _, err := exec.LookPath(program); err != nil {
			machine.Lacks(t, program, err)
		}
	}
	s := scripts{filepath.Join(t.TempDir(), "checkout")}
	s.write(t, "tools/suite", stub)
	s.write(t, ".ci/programs", "#!/usr/bin/env bash\n")
	for _, name := range []string{".ci/suites", ".ci/land", ".ci/environment"} {
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		s.write(t, name, string(text))
	}
	s.write(t, ".gitignore", ".cache/\ntried\nbegun\n")
	s.git(t, "init", "--quiet", "--initial-branch=main")
	s.commit(t)
	return s
}

func (s scripts) write(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join(s.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func (s scripts) git(t *testing.T, args ...string) string {
	t.Helper()
	said, code := s.run(t, "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	if code != 0 {
		t.Fatalf("git %q: %s", args, said)
	}
	return strings.TrimSpace(said)
}

func (s scripts) commit(t *testing.T) {
	t.Helper()
	s.git(t, "add", "--all")
	s.git(t, "commit", "--quiet", "--message=a")
}

// run returns the output and the exit code.
func (s scripts) run(t *testing.T, program string, args ...string) (said string, code int) {
	t.Helper()
	c := exec.CommandContext(t.Context(), program, args...)
	c.Dir = s.dir
	out, err := c.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// table returns the table at the end, without its seconds.
func table(said string) string {
	_, said, _ = strings.Cut(said, "\n\ncommit ")
	_, said, _ = strings.Cut(said, "\n")
	return regexp.MustCompile(` +\d+ s(, \d+ s)?|  +$`).ReplaceAllString(said, "")
}

// All suites run, one that failed runs once more at the end, and only one that failed twice gives exit code 1: wherever it
// is in the table.
func TestSuites(t *testing.T) {
	for _, c := range []struct {
		names []string
		table string
		code  int
	}{
		{[]string{"good", "last"}, "good             passed\nlast             passed\n", 0},
		{[]string{"chance", "good"}, "chance           FLAKY\ngood             passed\n", 0},
		{[]string{"absent", "good"}, "absent           not had\ngood             passed\n", 0},
		{[]string{"busy", "good"}, "busy             not measured: load 8.5\ngood             passed\n", 0},
		{[]string{"bad", "good", "last"}, "bad              FAILED\ngood             passed\nlast             passed\n", 1},
		{[]string{"good", "bad"}, "good             passed\nbad              FAILED\n", 1},
	} {
		s := newScripts(t)
		said, code := s.run(t, ".ci/suites", c.names...)
		if code != c.code || table(said) != c.table {
			t.Errorf("%q: want code %d and %q, got %d and %q: %s", c.names, c.code, c.table, code, table(said), said)
		}
		if c.code == 1 && !strings.Contains(said, "it is bad") {
			t.Errorf("%q: want why it failed, got %s", c.names, said)
		}
	}
}

// A run that was cut off goes on where it was, for the same commit and the same changes alone.
func TestSuitesResume(t *testing.T) {
	s := newScripts(t)
	said, code := s.run(t, ".ci/suites", "good", "bad", "cut", "last")
	if code == 0 || strings.Contains(said, "==> last") {
		t.Fatalf("want it cut off, got %d: %s", code, said)
	}
	if said, _ := s.run(t, ".ci/suites", "last"); !strings.Contains(said, ": 1 of 4 passed, bad failed once, cut not run, last not run\n") {
		t.Errorf("want how far it came, got %s", said)
	}
	s.write(t, "more", "a")
	if said, code := s.run(t, ".ci/suites", "--resume"); code != 2 || !strings.HasPrefix(said, "--resume: want a run of ") {
		t.Errorf("with a change: want code 2, got %d: %s", code, said)
	}
	if err := os.Remove(filepath.Join(s.dir, "more")); err != nil {
		t.Fatal(err)
	}
	said, code = s.run(t, ".ci/suites", "--resume")
	const want = "good             passed\nbad              FAILED\ncut              passed\nlast             passed\n"
	if code != 1 || table(said) != want || strings.Contains(said, "==> good") {
		t.Errorf("want the rest alone, code 1 and %q, got %d and %q: %s", want, code, table(said), said)
	}
}

func TestSuitesBadInput(t *testing.T) {
	s := newScripts(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"good", "nosuch"}, "want a suite, got nosuch"},
		{[]string{"--bogus"}, "usage: "},
		{[]string{"--resume"}, "--resume: want a run of "},
		{[]string{"--resume", "good"}, "usage: "},
	} {
		if said, code := s.run(t, ".ci/suites", c.args...); code != 2 || !strings.Contains(said, c.want) || strings.Contains(said, "==>") {
			t.Errorf("%q: want code 2 and %q, got %d: %s", c.args, c.want, code, said)
		}
	}
}

// main moves to a commit on which the gate of a clean clone is green, and to no other.
func TestLand(t *testing.T) {
	s := newScripts(t)
	const gate = `#!/usr/bin/env bash
mkdir -p .cache/ci && : >.cache/ci/flaky.txt
[ -z "${SECRET:-}" ] && ! read -r line && [ ! -e left ]
`
	s.write(t, ".ci/run", "#!/usr/bin/env bash\nexit 1\n")
	s.commit(t)
	t.Setenv("SECRET", "in the environment")
	refused := func(want string) {
		t.Helper()
		before := s.git(t, "rev-parse", "main")
		said, code := s.run(t, ".ci/land")
		if after := s.git(t, "rev-parse", "main"); code != 2 || !strings.Contains(said, want) || after != before {
			t.Errorf("want %q and main at %s, got %d, %s: %s", want, before, code, after, said)
		}
	}
	refused("want a branch other than main")
	s.git(t, "switch", "--quiet", "--create=next")
	s.write(t, "left", "a")
	refused("want everything committed")
	s.commit(t)
	refused("the gate is red") // it writes no list of tests that failed by chance
	s.write(t, ".ci/run", gate)
	s.commit(t)
	refused("the gate is red")
	s.git(t, "rm", "--quiet", "left")
	s.commit(t)
	s.write(t, ".cache/left", "a") // ignored: it is not in the clone
	said, code := s.run(t, ".ci/land")
	landed, err := os.ReadFile(filepath.Join(s.dir, ".cache/ci/passed"))
	if head := s.git(t, "rev-parse", "HEAD"); code != 0 || s.git(t, "rev-parse", "main") != head || string(landed) != head+"\n" {
		t.Errorf("want main at %s, got %d, passed %q, %v: %s", head, code, landed, err, said)
	}
	s.git(t, "switch", "--quiet", "--detach", "HEAD~1")
	refused("want main among the ancestors")
	s.git(t, "branch", "--quiet", "--move", "main", "trunk")
	if said, code := s.run(t, ".ci/land"); code != 2 || !strings.Contains(said, "want a branch main") {
		t.Errorf("want a branch main, got %d: %s", code, said)
	}
}
