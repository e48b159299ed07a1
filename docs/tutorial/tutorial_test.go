//go:build tutorial

// Package tutorial_test types the commands of the tutorials into a shell and compares what they print with the pages.
package tutorial_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A step is a command of a page, with the output that the page shows. The command is empty for a file that the reader saves.
type step struct {
	line    int
	command string
	output  []string
	file    string
	text    string
}

var saved = regexp.MustCompile("Save this as `([^`]+)`:")

// steps reads the console blocks of a page, in which a command follows "$ ", and the files that the page has the reader save.
func steps(page string) (all []step) {
	block, name := "", ""
	for i, line := range strings.Split(page, "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			block = strings.TrimPrefix(line, "```")
			if block == "yaml" && name != "" {
				all = append(all, step{line: i + 1, file: name})
			} else if block == "" {
				name = ""
			}
		case block == "yaml" && name != "":
			all[len(all)-1].text += line + "\n"
		case block != "console":
			if m := saved.FindStringSubmatch(line); m != nil {
				name = m[1]
			}
		case strings.HasPrefix(line, "$ "):
			all = append(all, step{line: i + 1, command: line[2:]})
		default:
			all[len(all)-1].output = append(all[len(all)-1].output, line)
		}
	}
	return all
}

// script has the shell print a line before the output of each step, and its exit code after it.
func script(all []step) string {
	s := &strings.Builder{}
	for i, at := range all {
		fmt.Fprintf(s, "printf '\\n@@begin %d\\n'\n", i)
		switch background, yes := strings.CutSuffix(at.command, " &"); {
		case at.file != "":
			fmt.Fprintf(s, "cat > %s <<'@@'\n%s@@\n", at.file, at.text)
		case yes:
			fmt.Fprintf(s, "%s >background.%d 2>&1 &\n", background, i)
		default:
			fmt.Fprintf(s, "%s\n", at.command)
		}
		s.WriteString("printf '\\n@@end %d\\n' $?\n")
	}
	return s.String()
}

var (
	number = regexp.MustCompile(`\d[\d,.]*(e-?\d+)?`)
	unit   = regexp.MustCompile(`# (ns|µs|ms|s)\b`)
)

// shape is a line without its figures: other machines are slower, and other runs have other bursts.
func shape(line string) string {
	return unit.ReplaceAllString(number.ReplaceAllString(strings.Join(strings.Fields(line), " "), "#"), "# TIME")
}

// shapes leaves out empty lines.
func shapes(lines []string) (all []string) {
	for _, line := range lines {
		if s := shape(line); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// matches reports whether got are the lines of want, in which an ellipsis stands for any lines.
func matches(want, got []string) bool {
	if len(want) == 0 {
		return len(got) == 0
	}
	if want[0] == "…" {
		return matches(want[1:], got) || len(got) > 0 && matches(want, got[1:])
	}
	return len(got) > 0 && want[0] == got[0] && matches(want[1:], got[1:])
}

func TestTutorials(t *testing.T) {
	home := t.TempDir()
	for _, page := range []string{"first-run.md", "first-report.md", "first-canary.md"} { // the first one builds the program
		t.Run(page, func(t *testing.T) { typed(t, page, home) })
	}
	pages, err := filepath.Glob("*.md")
	if err != nil || len(pages) != 3 {
		t.Errorf("want 3 pages, got %v, %v", pages, err)
	}
}

func typed(t *testing.T, page, home string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all := steps(string(text))
	if len(all) < 5 {
		t.Fatalf("want 5 commands or more, got %d", len(all))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	shell := exec.CommandContext(ctx, "bash", "-s")
	shell.Dir = "../.."
	shell.Stdin = strings.NewReader(script(all))
	shell.Env = append(os.Environ(), "HOME="+home, "GOCACHE="+goenv(t, "GOCACHE"), "GOMODCACHE="+goenv(t, "GOMODCACHE"),
		"PATH="+filepath.Join(home, "replayd")+":"+os.Getenv("PATH"))
	out, errs := &bytes.Buffer{}, &bytes.Buffer{}
	shell.Stdout, shell.Stderr = out, errs
	shell.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// What runs in the background ends with the shell's process group.
	shell.Cancel = func() error { return syscall.Kill(-shell.Process.Pid, syscall.SIGKILL) }
	err = shell.Run()
	_ = syscall.Kill(-shell.Process.Pid, syscall.SIGKILL)
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, errs)
	}
	for i, at := range all {
		var got string
		_, rest, begun := strings.Cut(out.String(), fmt.Sprintf("\n@@begin %d\n", i))
		got, rest, ended := strings.Cut(rest, "\n@@end ")
		code, _, _ := strings.Cut(rest, "\n")
		want, had := shapes(at.output), shapes(strings.Split(got, "\n"))
		if !begun || !ended || code != "0" || !matches(want, had) {
			t.Errorf("%s:%d: %s: exit code %s\nwant\n%s\ngot\n%s\nstderr of the page:\n%s", page, at.line, at.command, code,
				strings.Join(at.output, "\n"), got, errs)
		}
	}
}

func goenv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
