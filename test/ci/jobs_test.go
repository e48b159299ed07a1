//go:build real

// Package ci_test runs the scripts of deploy/ci as their runners do. They are part of `make suite NAME=test-rollouts`.
package ci_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"replayd/test/outside"
)

const folder = "../../deploy/ci/"

var binary string

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary)) }

func load[T any](t *testing.T, file string) (v T) {
	t.Helper()
	text, err := os.ReadFile(folder + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return v
}

// The verdicts of replayd compare: its last line and its exit code. The last one is the program's own, of a trace
// that is not there.
var verdicts = []struct {
	last string
	code int
}{{"verdict: pass: none worse", 0}, {"verdict: fail: ttft", 3}, {"verdict: undecided: 100%", 4}, {"", 2}}

// program puts replayd, or what plays it, at a path.
func program(t *testing.T, path, last string, code int) {
	t.Helper()
	_ = os.Remove(path) // if it is there
	if code == 2 {
		if err := os.Symlink(binary, path); err != nil {
			t.Fatal(err)
		}
		return
	}
	const asked = "compare none.jsonl --baseline a --candidate b --for 2h"
	text := fmt.Sprintf("#!/bin/sh\n[ \"$*\" = '%s' ] || exit 9\necho '%s'\nexit %d\n", asked, last, code)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// run runs a script as its runner does and returns its exit code and output. The last line of the artifact is the
// verdict.
func run(t *testing.T, dir, script, last string, env ...string) (code int, said string) {
	t.Helper()
	// https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax#jobsjob_idstepsshell; GitLab's runner
	// begins its script with `set -eo pipefail`.
	file := outside.Write(t, t.TempDir(), "script.sh", script)
	c := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", file)
	c.Dir, c.Env = dir, append(os.Environ(), append(env, "BASELINE=a", "CANDIDATE=b", "TRACE=none.jsonl")...)
	out, err := c.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "compare.txt")); err != nil ||
		!strings.HasSuffix(strings.TrimSpace(string(text)), last) {
		t.Errorf("want the artifact to end with %q, got %q, %v", last, text, err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

func TestGitHub(t *testing.T) {
	job := load[struct {
		Jobs map[string]struct {
			Env   map[string]string
			Steps []struct {
				Name, Shell, Run, If string
				Dir                  string `yaml:"working-directory"`
				With                 map[string]string
			}
		}
	}](t, "github-actions.yml").Jobs["compare"]
	n := len(job.Steps)
	build, compare, keep := job.Steps[n-3], job.Steps[n-2], job.Steps[n-1]
	if keep.If != "always()" || keep.With["path"] != "compare.txt" || compare.Shell != "bash" {
		t.Errorf("want the artifact kept whatever the verdict is, and bash, got %+v, %s", keep, compare.Shell)
	}
	if want := `CGO_ENABLED=0 go build -o "$RUNNER_TEMP/replayd" ./cmd/replayd`; build.Run != want ||
		build.Dir != "replayd" {
		t.Errorf("want %s in replayd, got %s in %s", want, build.Run, build.Dir)
	}
	temp := t.TempDir()
	for _, v := range verdicts {
		for _, undecided := range []string{job.Env["UNDECIDED"], "error"} {
			program(t, filepath.Join(temp, "replayd"), v.last, v.code)
			dir := t.TempDir()
			code, said := run(t, dir, compare.Run, v.last, "RUNNER_TEMP="+temp, "GITHUB_STEP_SUMMARY="+dir+"/summary.md",
				"UNDECIDED="+undecided, "FLAGS="+job.Env["FLAGS"])
			want := v.code
			if v.code == 4 && undecided == "warning" {
				want = 0
			}
			if code != want {
				t.Errorf("%d, %s: want exit code %d, got %d: %s", v.code, undecided, want, code, said)
			}
			if text, err := os.ReadFile(dir + "/summary.md"); err != nil || !strings.Contains(string(text), v.last) {
				t.Errorf("want the table in the summary, got %q, %v", text, err)
			}
			annotation := "\n::" + undecided + " title=replayd compare::verdict: undecided: 100%25\n"
			if strings.Contains(said, annotation) != (v.code == 4) {
				t.Errorf("want an annotation where undecided, got %s", said)
			}
		}
	}
}

func TestGitLab(t *testing.T) {
	job := load[map[string]struct {
		Variables map[string]string
		Script    []string
		Allowed   struct {
			Codes []int `yaml:"exit_codes"`
		} `yaml:"allow_failure"`
		Artifacts struct {
			When  string
			Paths []string
		}
	}](t, "gitlab-ci.yml")["compare"]
	if !slices.Equal(job.Allowed.Codes, []int{4}) {
		t.Errorf("want only undecided allowed, got %v", job.Allowed.Codes)
	}
	if a := job.Artifacts; a.When != "always" || !slices.Equal(a.Paths, []string{"compare.txt"}) {
		t.Errorf("want the artifact kept whatever the verdict is, got %+v", a)
	}
	const want = `CGO_ENABLED=0 go build -C "$REPLAYD_SOURCE" -o "$CI_PROJECT_DIR/replayd-compare" ./cmd/replayd`
	if job.Script[0] != want {
		t.Errorf("want %s, got %s", want, job.Script[0])
	}
	for _, v := range verdicts {
		dir := t.TempDir()
		program(t, filepath.Join(dir, "replayd-compare"), v.last, v.code)
		if code, said := run(t, dir, strings.Join(job.Script[1:], "\n"), v.last,
			"FLAGS="+job.Variables["FLAGS"]); code != v.code {
			t.Errorf("want exit code %d, got %d: %s", v.code, code, said)
		}
	}
}
