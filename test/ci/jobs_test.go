//go:build real

// Package ci_test runs the jobs of deploy/ci as their runners do, between simulated engines. They are part of
// `make suite NAME=test-rollouts`.
package ci_test

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"replayd/test/outside"
)

const folder = "../../deploy/ci/"

// firstToken is the time of a well server. replayd's own lateness makes a pair void above a twentieth of it.
const firstToken = 100 * time.Millisecond

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

// A workspace is the folder that a runner checks a user's repository out to, with a trace and replayd's source.
type workspace struct {
	dir, baseline, equal, slow string
}

func newWorkspace(t *testing.T) workspace {
	t.Helper()
	w := workspace{dir: t.TempDir()}
	for i, s := range []struct {
		url  *string
		ttft time.Duration
	}{{&w.baseline, firstToken}, {&w.equal, firstToken}, {&w.slow, 2 * firstToken}} {
		address := outside.Address(t)
		*s.url = "http://" + address
		p := outside.Start(t, filepath.Join(t.TempDir(), "sim.out"), binary, "sim", "--web.listen-address", address,
			"--ttft", s.ttft.String(), "--itl", "2ms", "--jitter", "0.1", "--seed", fmt.Sprint(i+1))
		p.Ready(t, http.DefaultClient, *s.url+"/health")
	}
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(source, filepath.Join(w.dir, "replayd")); err != nil {
		t.Fatal(err)
	}
	var trace strings.Builder
	for i := range 200 { // no request meets another
		fmt.Fprintf(&trace, `{"timestamp": %d, "input_length": %d, "output_length": 3}`+"\n", i*300, 20+i)
	}
	outside.Write(t, w.dir, "trace.jsonl", trace.String())
	return w
}

// A scene is a comparison that ends with an exit code of replayd compare.
type scene struct {
	name, candidate, trace, flags string
	code                          int
	last                          string // in the last line of its output
}

func (w workspace) scenes() []scene {
	const quick = "--min-pairs 1 --min-time 0 --for 2m "
	return []scene{
		{"pass", w.equal, "trace.jsonl", quick + "--tolerance 300% --tolerance-tail 1 --tolerance-queued 1 --tolerance-bad 1", 0, "verdict: pass: "},
		{"fail", w.slow, "trace.jsonl", quick + "--tolerance 20%", 3, "verdict: fail: "},
		{"undecided", w.equal, "trace.jsonl", "--for 1s", 4, "verdict: undecided: "},
		{"wrong input", w.equal, "none.jsonl", quick, 2, ""},
	}
}

// run runs a script as its runner does and returns its exit code and output.
func (w workspace) run(t *testing.T, dir, script string, env ...string) (code int, said string) {
	t.Helper()
	// https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax#jobsjob_idstepsshell; GitLab's runner
	// begins its script with `set -eo pipefail`.
	file := outside.Write(t, t.TempDir(), "script.sh", script)
	c := exec.CommandContext(t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", file)
	c.Dir, c.Env = filepath.Join(w.dir, dir), append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), string(out)
}

// artifact returns the file that both jobs keep.
func (w workspace) artifact(t *testing.T, s scene) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, "compare.txt"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if last := lines[len(lines)-1]; !strings.HasPrefix(last, s.last) {
		t.Errorf("%s: want the artifact to end with %q, got %q", s.name, s.last, last)
	}
	return string(text)
}

func TestGitHub(t *testing.T) {
	type step struct {
		Uses, Name, Shell, Run, If string
		Dir                        string `yaml:"working-directory"`
		With                       map[string]string
	}
	jobs := load[struct {
		Jobs map[string]struct {
			Env   map[string]string
			Steps []step
		}
	}](t, "github-actions.yml").Jobs
	job := jobs["compare"]
	w := newWorkspace(t)
	named := func(name string) step {
		t.Helper()
		i := slices.IndexFunc(job.Steps, func(s step) bool { return s.Name == name })
		if i < 0 {
			t.Fatalf("want a step %q", name)
		}
		if s := job.Steps[i]; s.Shell == "bash" && !strings.Contains(s.Run, "${{") { // an input in a script is a way to inject commands
			return s
		}
		t.Fatalf("%s: want a script of bash without expressions, got %+v", name, job.Steps[i])
		return step{}
	}
	temp := "RUNNER_TEMP=" + t.TempDir()
	build := named("build replayd")
	if code, said := w.run(t, build.Dir, build.Run, temp); code != 0 {
		t.Fatalf("%d: %s", code, said)
	}
	keep := job.Steps[len(job.Steps)-1]
	if keep.If != "always()" || keep.With["path"] != "compare.txt" {
		t.Errorf("want the artifact kept whatever the verdict is, got %+v", keep)
	}
	for _, s := range w.scenes() {
		for _, undecided := range []string{job.Env["UNDECIDED"], "error"} {
			t.Run(s.name+" "+undecided, func(t *testing.T) {
				summary := filepath.Join(t.TempDir(), "summary.md")
				code, said := w.run(t, "", named("compare").Run, temp, "GITHUB_STEP_SUMMARY="+summary, "BASELINE="+w.baseline,
					"CANDIDATE="+s.candidate, "TRACE="+s.trace, "FLAGS="+s.flags, "UNDECIDED="+undecided)
				want := s.code
				if s.code == 4 && undecided == "warning" {
					want = 0
				}
				if code != want {
					t.Errorf("want exit code %d, got %d: %s", want, code, said)
				}
				artifact := w.artifact(t, s)
				text, err := os.ReadFile(summary)
				if err != nil || !strings.Contains(string(text), artifact) {
					t.Errorf("want the table in the summary, got %q, %v", text, err)
				}
				annotation := "\n::" + undecided + " title=replayd compare::verdict: undecided: "
				if strings.Contains(said, annotation) != (s.code == 4) {
					t.Errorf("want an annotation where undecided, got %s", said)
				}
			})
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
	if job.Artifacts.When != "always" || !slices.Equal(job.Artifacts.Paths, []string{"compare.txt"}) {
		t.Errorf("want the artifact kept whatever the verdict is, got %+v", job.Artifacts)
	}
	w := newWorkspace(t)
	for _, s := range w.scenes() {
		t.Run(s.name, func(t *testing.T) {
			values := map[string]string{"BASELINE": w.baseline, "CANDIDATE": s.candidate, "TRACE": s.trace, "FLAGS": s.flags}
			env := []string{"CI_PROJECT_DIR=" + w.dir}
			for name, value := range job.Variables {
				if other, ok := values[name]; ok {
					value = other
				}
				env = append(env, name+"="+value)
			}
			if code, said := w.run(t, "", strings.Join(job.Script, "\n"), env...); code != s.code {
				t.Errorf("want exit code %d, got %d: %s", s.code, code, said)
			}
			w.artifact(t, s)
		})
	}
}

// actionlint knows the syntax of GitHub's workflows, and the inputs of actions.
func TestWorkflowIsLinted(t *testing.T) {
	text, err := os.ReadFile(folder + "github-actions.yml")
	if err != nil {
		t.Fatal(err)
	}
	lint := func(text string) (said string, err error) {
		out, err := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../../tools/actionlint/go.mod", "actionlint", "-shellcheck=", "-pyflakes=",
			outside.Write(t, t.TempDir(), "workflow.yml", text)).CombinedOutput()
		return string(out), err
	}
	if said, err := lint(string(text)); err != nil {
		t.Errorf("%v: %s", err, said)
	}
	bad := strings.Replace(string(text), "inputs.trace }}", "inputs.path }}", 1)
	if said, err := lint(bad); err == nil || !strings.Contains(said, `property "path" is not defined`) {
		t.Errorf("want an unknown input found, got %v: %s", err, said)
	}
}
