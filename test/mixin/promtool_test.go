//go:build real

package mixin_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// tool returns the path of Debian's promtool.
func tool(t *testing.T) string {
	t.Helper()
	folder, err := filepath.Abs(filepath.Join(repository, ".cache/prometheus"))
	if err != nil {
		t.Fatal(err)
	}
	said, err := exec.CommandContext(t.Context(), "../prometheus/install", folder, "promtool").CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 3 && os.Getenv("CI") != "true" {
		t.Skipf("%v: %s", err, said)
	}
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	return filepath.Join(folder, "promtool")
}

func write(t *testing.T, path string, v any) {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func promtool(t *testing.T, dir string, args ...string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), tool(t), args...)
	c.Dir = dir
	if said, err := c.CombinedOutput(); err != nil {
		t.Errorf("promtool %q: %v\n%s", args, err, said)
	}
}

// Both kinds are in one file, as kube-prometheus writes them.
func TestPromtoolTakesTheRules(t *testing.T) {
	dir := t.TempDir()
	m := load(t, "alertLabels: { team: 'inference' }, runbookBase: 'https://wiki.example.com'")
	write(t, filepath.Join(dir, "rules.yaml"), object{"groups": slices.Concat(m.PrometheusAlerts.Groups, m.PrometheusRules.Groups)})
	promtool(t, dir, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")
}

// The alerts of a group that is split pass the tests of the shipped group. Prometheus evaluates both parts at its own instants; here the
// recording rules are first, as they are in the shipped group.
func TestAlertsOfSplitGroups(t *testing.T) {
	dir, m := t.TempDir(), load(t, "")
	if err := os.Mkdir(filepath.Join(dir, "tests"), 0o700); err != nil {
		t.Fatal(err)
	}
	for file, shipped := range files[struct{ Groups []group }](t, "alerts/*.yaml") {
		own := map[string]bool{}
		for _, g := range shipped.Groups {
			own[g.Name], own[g.Name+"_rules"] = true, true
		}
		groups := slices.DeleteFunc(slices.Concat(m.PrometheusRules.Groups, m.PrometheusAlerts.Groups), func(g group) bool { return !own[g.Name] })
		write(t, filepath.Join(dir, file), object{"groups": groups})
	}
	for _, name := range []string{"comparison", "measurement"} {
		text, err := os.ReadFile(filepath.Join(repository, "alerts/tests", name+"_test.yaml"))
		text = fmt.Appendf(text, "\ngroup_eval_order: [replayd_%[1]s_rules, replayd_%[1]s]\n", name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "tests", name+"_test.yaml"), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		promtool(t, filepath.Join(dir, "tests"), "test", "rules", name+"_test.yaml")
	}
}
