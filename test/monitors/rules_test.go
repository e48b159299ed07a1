//go:build monitors

package monitors_test

import (
	"errors"
	"fmt"
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

// externalURL is that of all tests: vmalert-tool takes it as a flag.
const externalURL = "http://prometheus:9090"

// newest is the Prometheus of test/prometheus/install.
const newest = "Prometheus 3.5"

// A file is a file of tests in promtool's format.
type file struct {
	Rules    []string `yaml:"rule_files"`
	Interval string   `yaml:"evaluation_interval"`
	Order    []string `yaml:"group_eval_order,omitempty"`
	Tests    []test   `yaml:"tests"`
}

// A test is one of them, for promtool or for vmalert-tool.
type test struct {
	Name      string  `yaml:"name"`
	Interval  string  `yaml:"interval,omitempty"`
	URL       string  `yaml:"external_url,omitempty"`
	Input     []input `yaml:"input_series"`
	Alerts    []any   `yaml:"alert_rule_test,omitempty"`
	PromQL    []asked `yaml:"promql_expr_test,omitempty"`
	MetricsQL []asked `yaml:"metricsql_expr_test,omitempty"`
}

// An input is a series of a test.
type input struct{ Series, Values string }

// An asked is an expression with what it gives.
type asked struct {
	Expr string `yaml:"expr"`
	At   string `yaml:"eval_time"`
	Want []struct {
		Labels    string  `yaml:"labels,omitempty"`
		Value     float64 `yaml:"value"`
		Histogram string  `yaml:"histogram,omitempty"`
	} `yaml:"exp_samples"`
}

// readFile reads a file of tests and makes its paths absolute.
func readFile(t *testing.T, path string) (f file) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, &f)
	}
	if err != nil || len(f.Tests) == 0 {
		t.Fatalf("%s: want tests, got %d, %v", path, len(f.Tests), err)
	}
	for i, rules := range f.Rules {
		if f.Rules[i], err = filepath.Abs(filepath.Join(filepath.Dir(path), rules)); err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// only returns a file with one of the tests, and the test's name.
func (f file) only(path string, i int) (one file, name string) {
	f.Rules, f.Tests = slices.Clone(f.Rules), []test{f.Tests[i]}
	return f, strings.TrimSuffix(filepath.Base(path), "_test.yaml") + "/" + f.Tests[0].Name
}

// An evaluator runs a file with one test.
type evaluator struct {
	name    string
	convert func(t *testing.T, dir string, f *file) // what it needs otherwise
	command func(path string) []string
}

func evaluators(t *testing.T) []evaluator {
	t.Helper()
	old, victoria, _ := installed(t)
	tool := outside.PrometheusTool(t, "promtool")
	return []evaluator{
		{newest, func(*testing.T, string, *file) {}, func(path string) []string { return []string{tool, "test", "rules", path} }},
		{"Prometheus 2.42", halfOpen, func(path string) []string { return []string{old, "test", "rules", path} }},
		{"VictoriaMetrics", forVictoria, func(path string) []string {
			return []string{victoria, "unittest", "--files=" + path, "--disableAlertgroupLabel", "--external.url=" + externalURL}
		}},
	}
}

// rounded matches an expression that a test rounds.
var rounded = regexp.MustCompile(`^round\((.*), 1e-6\)$`)

// forVictoria gives expressions the name that vmalert-tool knows them under, and leaves out what it does not know. MetricsQL's round leaves
// an error of a millionth: it takes a remainder of floats off (transformRound in app/vmselect/promql/transform.go). An alert's group is a
// label of ALERTS (app/vmalert/rule/alerting.go).
func forVictoria(t *testing.T, dir string, f *file) {
	t.Helper()
	rewrite(t, dir, f, func(expr string) string { return expr })
	one := &f.Tests[0]
	if one.URL != "" && one.URL != externalURL {
		t.Fatalf("want the external_url %s in every test, got %v", externalURL, one.URL)
	}
	one.URL = ""
	for _, a := range one.PromQL {
		a.Expr = rounded.ReplaceAllString(a.Expr, "floor(($1) * 1e6 + 0.5) / 1e6")
		if strings.Contains(a.Expr, "ALERTS") {
			a.Expr = fmt.Sprintf(`label_del(%s, "alertgroup")`, a.Expr)
		}
		one.MetricsQL = append(one.MetricsQL, a)
	}
	one.PromQL = nil
}

// The rules pass their tests by every evaluator, but for what is listed in differences.
func TestRules(t *testing.T) {
	paths, err := filepath.Glob(repository + "/alerts/tests/*_test.yaml")
	natives, nativeErr := filepath.Glob(repository + "/alerts/tests/native/*_test.yaml")
	if err := errors.Join(err, nativeErr); err != nil || len(paths) < 10 || len(natives) == 0 {
		t.Fatalf("want files of tests, got %q and %q, %v", paths, natives, err)
	}
	all := evaluators(t)
	seen := map[string]bool{}
	dir := t.TempDir() // vmalert-tool takes a comma in a path for a border between two
	for _, path := range slices.Concat(paths, natives) {
		f := readFile(t, path)
		for i := range f.Tests {
			for _, e := range all {
				if slices.Contains(natives, path) && e.name != newest {
					continue // docs/reference/monitoring.md promises native histograms of this one alone
				}
				one, name := f.only(path, i)
				t.Run(e.name+"/"+name, func(t *testing.T) {
					dir, err := os.MkdirTemp(dir, "")
					if err != nil {
						t.Fatal(err)
					}
					e.convert(t, dir, &one)
					text, err := yaml.Marshal(one)
					if err != nil {
						t.Fatal(err)
					}
					words := e.command(outside.Write(t, dir, "one_test.yaml", string(text)))
					said, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput()
					var exit *exec.ExitError
					why, listed := differences[e.name][name]
					switch {
					case err != nil && !errors.As(err, &exit):
						t.Fatal(err)
					case err != nil && !listed:
						t.Errorf("%v: %s", err, said)
					case err == nil && listed:
						t.Errorf("it passes now, and is still listed: %s", why)
					}
					seen[e.name+"/"+name] = true
				})
			}
		}
	}
	for _, e := range all {
		for name := range differences[e.name] {
			if !seen[e.name+"/"+name] {
				t.Errorf("%s: %s is listed, and there is no such test", e.name, name)
			}
		}
	}
	t.Logf("%d tests", len(seen))
}
