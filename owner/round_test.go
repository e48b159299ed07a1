package owner

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// copyTree copies this repository to a new folder, without what git does not have.
func copyTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := fs.WalkDir(os.DirFS(".."), ".", func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains([]string{".git", ".cache", "bin", "artifacts", "node_modules"}, d.Name()):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(dir, p), 0o755)
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text, err := os.ReadFile(filepath.Join("..", p))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, p), text, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// set writes OWNER.yaml and what depends on it.
func set(t *testing.T, dir, text string) []string {
	t.Helper()
	write(t, filepath.Join(dir, File), text)
	o, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	changed, err := o.Write(dir)
	if err != nil {
		t.Fatal(err)
	}
	return changed
}

const nobody = "module: replayd\nrepository: \"\"\nimage: replayd\ncharts: \"\"\nrunbookBase: \"\"\nmaintainer: \"\"\ncodeowners: \"\"\n"

// An owner's names come into every file, a second run changes nothing, and without the owner each file has its bytes again.
func TestOwnerComesAndGoes(t *testing.T) {
	dir := copyTree(t)
	set(t, dir, nobody)
	before, err := sources(dir)
	if err != nil {
		t.Fatal(err)
	}
	publicName := regexp.MustCompile(`(github\.com|ghcr\.io)/replayd\b`)
	for path, text := range before {
		if publicName.MatchString(text) && !strings.HasPrefix(path, "owner/") {
			t.Errorf("%s points to a name that nobody owns: %q", path, publicName.FindString(text))
		}
	}

	changed := set(t, dir, example)
	if len(changed) < 500 {
		t.Errorf("want 500 files or more changed, got %d", len(changed))
	}
	if again := set(t, dir, example); len(again) > 0 {
		t.Errorf("want nothing changed by a second run, got %v", again)
	}
	with, err := sources(dir)
	if err != nil {
		t.Fatal(err)
	}
	imported := regexp.MustCompile(`(?m)^\s*(?:[\w.]+ )?"replayd/.*$`)
	for path, text := range with {
		if found := imported.FindString(text); filepath.Ext(path) == ".go" && found != "" {
			t.Errorf("%s: want the new module path, got %s", path, found)
		}
	}
	for path, want := range map[string]string{
		"go.mod":                             "module github.com/example/replayd\n",
		"test/argo/go.mod":                   "replace github.com/example/replayd/test/rollouts => ../rollouts\n",
		"tools/sbom/go.mod":                  "module github.com/example/replayd/tools/sbom\n",
		".golangci.yml":                      "allow: [github.com/example/replayd/internal/number, ",
		"alerts/service.yaml":                "          runbook_url: https://github.com/example/replayd/blob/main/docs/reference/alerts.md#replaydsloburnfast\n",
		"alerts/tests/measurement_test.yaml": "              runbook_url: https://github.com/example/replayd/blob/main/docs/reference/alerts.md#replaydreloadfailed\n",
		"dashboards/build/grafana.go":        `= "https://github.com/example/replayd/blob/main/docs/explanation/correlation.md"`,
		"Dockerfile":                         "      org.opencontainers.image.source=\"https://github.com/example/replayd\" \\\n",
		"deploy/systemd/replayd.service":     "\nDocumentation=https://github.com/example/replayd\n",
		"deploy/helm/replayd/Chart.yaml":     "home: https://github.com/example/replayd\nsources: [https://github.com/example/replayd]\nmaintainers: [{name: \"The Example's Authors\", email: \"replayd@example.com\"}]\n",
		"deploy/helm/replayd/values.yaml":    "  repository: \"ghcr.io/example/replayd\" #",
		"deploy/helm/replayd/README.md":      "| `image.repository` | `ghcr.io/example/replayd` |",
		"docs/reference/reference.go":        `const Repository = "https://github.com/example/replayd"`,
		"Makefile":                           "IMAGE      ?= ghcr.io/example/replayd\n",
		".github/CODEOWNERS":                 "* @example @example/team\n",
	} {
		if !strings.Contains(with[path], want) {
			t.Errorf("%s: want %q", path, want)
		}
	}

	set(t, dir, nobody)
	after, err := sources(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Sorted(maps.Keys(before)) {
		if after[path] != before[path] {
			t.Errorf("%s: want its bytes again", path)
		}
	}
	if len(after) != len(before) {
		t.Errorf("want %d files again, got %d", len(before), len(after))
	}
}
