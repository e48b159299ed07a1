package docs_test

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"replayd/test/machine"
)

// inRoot runs a program in the root of the repository.
func inRoot(t *testing.T, program string, args ...string) (out, said string, err error) {
	t.Helper()
	for _, needed := range []string{"make", "bash"} {
		if _, err := exec.LookPath(needed); err != nil {
			machine.Lacks(t, needed, err)
		}
	}
	var stderr strings.Builder
	c := exec.CommandContext(t.Context(), program, args...)
	c.Dir, c.Stderr = "..", &stderr
	text, err := c.Output()
	return string(text), stderr.String(), err
}

// suites returns the names of all suites.
func suites(t *testing.T) []string {
	t.Helper()
	out, said, err := inRoot(t, "tools/suite", "names")
	names := strings.Fields(out)
	if err != nil || len(names) < 40 {
		t.Fatalf("want the names of 40 suites or more, got %d, %v: %s", len(names), err, said)
	}
	return names
}

// What make lists fits a terminal of 80 columns, and has every suite with a description.
func TestMakeListsFit(t *testing.T) {
	names := suites(t)
	for _, list := range []string{"help", "suites"} {
		out, said, err := inRoot(t, "make", "--no-print-directory", list)
		if err != nil {
			t.Fatalf("make %s: %v: %s", list, err, said)
		}
		for line := range strings.Lines(out) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("make %s: want 80 columns, got %d: %s", list, n, line)
			}
		}
		for _, name := range names {
			if !regexp.MustCompile(`\s` + name + `\s`).MatchString(out) {
				t.Errorf("make %s: want the suite %s", list, name)
			}
			if list == "suites" && !regexp.MustCompile(`(?m)^  `+name+` +[^ ]+ `).MatchString(out) {
				t.Errorf("want what the suite %s shows", name)
			}
		}
	}
}

// The name of a suite alone says how it is run, and fails.
func TestASuiteAsATarget(t *testing.T) {
	for _, c := range []struct{ target, out, said string }{
		{"bench-truth", "make suite NAME=bench-truth\n", ""},
		{"bench", "make suite NAME=bench\n", ""}, // there is a folder of this name
		{"nosuch", "", "want a target of make or a suite, got nosuch: see make help\n"},
	} {
		out, said, err := inRoot(t, "make", "--no-print-directory", c.target)
		var failed *exec.ExitError
		if !errors.As(err, &failed) || failed.ExitCode() != 2 || out != c.out || !strings.HasPrefix(said, c.said) {
			t.Errorf("make %s: want exit code 2 and %q, got %v, %q: %s", c.target, c.out+c.said, err, out, said)
		}
	}
}

// The documents name targets and suites that exist.
func TestDocumentsNameTargets(t *testing.T) {
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):`).FindAllStringSubmatch(string(makefile), -1) {
		targets = append(targets, m[1])
	}
	names := suites(t)
	command := regexp.MustCompile("(?m)(?:^|`|=\\S+ )make(?: ([a-z-]+)(?: NAME=([a-z-]+))?)")
	found := 0
	for path, text := range pages(t) {
		if path == "CHANGELOG.md" {
			continue
		}
		for _, m := range command.FindAllStringSubmatch(text, -1) {
			found++
			if !slices.Contains(targets, m[1]) || m[2] != "" && !slices.Contains(names, m[2]) {
				t.Errorf("%s: want a target or a suite, got %q", path, m[0])
			}
		}
	}
	if found < 50 {
		t.Errorf("want 50 commands or more, got %d", found)
	}
}
