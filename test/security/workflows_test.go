package security_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"replayd/test/outside"
)

// A workflow is a file of .github/workflows, as far as these tests read it.
type workflow struct {
	Permissions map[string]string
	Env         map[string]string
	Jobs        map[string]struct {
		Minutes  int `yaml:"timeout-minutes"`
		Strategy struct {
			Matrix map[string][]string
		}
		Steps []struct{ Uses, Run string }
	}
}

func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(root, ".github/workflows/*.yml"))
	if err != nil || len(paths) < 3 {
		t.Fatalf("want the workflows, got %q, %v", paths, err)
	}
	all := map[string]workflow{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var w workflow
		if err := yaml.Unmarshal(text, &w); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[filepath.Base(path)] = w
	}
	return all
}

// named returns what a pattern's group finds in a file of the repository.
func named(t *testing.T, file, pattern string) (names []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	return names
}

// Each step is an action of GitHub, pinned by its commit, or a script or a target of make that runs anywhere else too.
func TestStepsRunAnywhere(t *testing.T) {
	pinned := regexp.MustCompile(`^actions/[a-z-]+@[0-9a-f]{40}$`)
	run := regexp.MustCompile(`^(?:\.ci/as-root )?(?:(\.ci/[a-z-]+)(?: [a-z]+)?|make (suite NAME="\$SUITE"|[a-z-]+)( [A-Z]+=\S+)*)$`)
	targets, suites := named(t, "Makefile", `(?m)^([a-z-]+):`), named(t, "tools/suite", `(?m)^([a-z-]+)\(\) \{`)
	for name, w := range workflows(t) {
		if len(w.Permissions) > 0 {
			t.Errorf("%s: want permissions in jobs alone, got %v", name, w.Permissions)
		}
		for job, j := range w.Jobs {
			if j.Minutes == 0 || j.Minutes > 360 {
				t.Errorf("%s: %s: want timeout-minutes of at most GitHub's 360, got %d", name, job, j.Minutes)
			}
			for _, s := range j.Steps {
				m := run.FindStringSubmatch(s.Run)
				switch {
				case s.Uses != "" && !pinned.MatchString(s.Uses):
					t.Errorf("%s: %s: want an action of GitHub by its commit, got %s", name, job, s.Uses)
				case s.Uses == "" && m == nil:
					t.Errorf("%s: %s: want a script of .ci or a target of make, got %s", name, job, s.Run)
				case s.Uses == "" && m[1] != "":
					if info, err := os.Stat(filepath.Join(root, m[1])); err != nil || info.Mode()&0o111 == 0 {
						t.Errorf("%s: %s: want %s executable: %v", name, job, m[1], err)
					}
				case s.Uses == "" && !strings.HasPrefix(m[2], "suite ") && !slices.Contains(targets, m[2]):
					t.Errorf("%s: %s: there is no target %s", name, job, m[2])
				}
			}
			for _, suite := range j.Strategy.Matrix["suite"] {
				if !slices.Contains(suites, suite) {
					t.Errorf("%s: there is no suite %s", name, suite)
				}
			}
		}
	}
}

// Nightly has every suite of .ci/suites, the small ones and those of full size.
func TestNightlyIsWhole(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, ".ci/suites"))
	if err != nil {
		t.Fatal(err)
	}
	lists := regexp.MustCompile(`(?ms)^(?:both|small|full)=\((.*?)\)$`).FindAllStringSubmatch(string(text), -1)
	var names []string
	for _, list := range lists {
		names = append(names, regexp.MustCompile(`\b[a-z]+(?:-[a-z]+)*\b`).FindAllString(strings.ReplaceAll(list[1], `"${both[@]}"`, ""), -1)...)
	}
	if len(lists) != 3 || len(names) < 45 {
		t.Fatalf("want three lists of suites in .ci/suites, got %d, %q", len(lists), names)
	}
	suites := workflows(t)["nightly.yml"].Jobs["suite"].Strategy.Matrix["suite"]
	for _, name := range names {
		if !slices.Contains(suites, name) {
			t.Errorf("nightly.yml: want %s", name)
		}
	}
}

// The workflows, which have a network, fail without the database of vulnerabilities.
func TestVulnIsRequired(t *testing.T) {
	for _, name := range []string{"ci.yml", "nightly.yml"} {
		if got := workflows(t)[name].Env["VULN_REQUIRED"]; got != "true" {
			t.Errorf("%s: want VULN_REQUIRED: true, got %q", name, got)
		}
	}
}

// Dependabot sees every module.
func TestModulesAreUpdated(t *testing.T) {
	files, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard", "*go.mod", "go.mod").Output()
	if err != nil {
		t.Skipf("this is no checkout of git: %v", err)
	}
	var want []string
	for file := range strings.FieldsSeq(string(files)) {
		want = append(want, filepath.Join("/", filepath.Dir(file)))
	}
	slices.Sort(want)
	text, err := os.ReadFile(filepath.Join(root, ".github/dependabot.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		Updates []struct {
			Ecosystem   string `yaml:"package-ecosystem"`
			Directories []string
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range config.Updates {
		if u.Ecosystem == "gomod" {
			got = append(got, u.Directories...)
		}
	}
	slices.Sort(got)
	if want = slices.Compact(want); !slices.Equal(got, want) {
		t.Errorf("dependabot.yml: gomod: want %q, got %q", want, got)
	}
}

// Only the repository that OWNER.yaml names publishes: no fork does, and without an owner none at all.
func TestOwned(t *testing.T) {
	for _, c := range []struct {
		owner, in string
		ok        bool
	}{
		{`repository: https://github.com/someone/replayd`, "someone/replayd", true},
		{`repository: "https://github.com/someone/replayd" # the public one`, "someone/replayd", true},
		{`repository: https://github.com/someone/replayd`, "another/replayd", false},
		{`repository: https://github.com/someone/replayd`, "someone/replayd2", false},
		{`repository: ""    # https://github.com/someone/replayd`, "someone/replayd", false},
		{`module: replayd`, "someone/replayd", false},
	} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(root, ".ci/owned"))
		cmd.Env = append(os.Environ(), "GITHUB_REPOSITORY="+c.in, "OWNER_FILE="+outside.Write(t, t.TempDir(), "OWNER.yaml", "module: replayd\n"+c.owner+"\nimage: replayd\n"))
		if said, err := cmd.CombinedOutput(); (err == nil) != c.ok || !c.ok && !strings.Contains(string(said), "OWNER.yaml: repository: want https://github.com/"+c.in) {
			t.Errorf("%s in %s: want published %v, got %v: %s", c.owner, c.in, c.ok, err, said)
		}
	}
}
