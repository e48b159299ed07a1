// Package mixin_test evaluates mixin/ as monitoring tools do and compares it with the shipped rules and dashboards:
// `make suite NAME=test-mixin`. It is a separate module, so that the product does not depend on go-jsonnet.
package mixin_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-jsonnet"
	"go.yaml.in/yaml/v3"
)

const repository = "../.."

type (
	object = map[string]any
	rule   = object
)

// A group is a group of rules. Keys beside these would get lost in the comparison, so they are refused.
type group struct {
	Name     string
	Interval string `yaml:",omitempty"`
	Rules    []rule
}

// A mixin is what a monitoring mixin offers.
type mixin struct {
	PrometheusAlerts, PrometheusRules struct{ Groups []group }
	GrafanaDashboards                 map[string]object
}

// evaluate runs Jsonnet with the repository as a vendored library, as jsonnet-bundler puts it.
func evaluate(t *testing.T, code string) (string, error) {
	t.Helper()
	vendor := t.TempDir()
	owner := filepath.Join(vendor, "github.com", "OWNER")
	whole, err := filepath.Abs(repository)
	if err == nil {
		err = os.MkdirAll(owner, 0o700)
	}
	if err == nil {
		err = os.Symlink(whole, filepath.Join(owner, "replayd"))
	}
	if err != nil {
		t.Fatal(err)
	}
	vm := jsonnet.MakeVM()
	vm.Importer(&jsonnet.FileImporter{JPaths: []string{vendor}})
	return vm.EvaluateAnonymousSnippet("test.jsonnet", code)
}

// load evaluates the mixin with changes to its configuration.
func load(t *testing.T, config string) (m mixin) {
	t.Helper()
	text, err := evaluate(t, `local m = (import 'github.com/OWNER/replayd/mixin/mixin.libsonnet') + { _config+:: {`+config+`} };
		{ [name]: m[name] for name in ['prometheusAlerts', 'prometheusRules', 'grafanaDashboards'] }`)
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&m); err != nil {
		t.Fatal(err)
	}
	return m
}

// files reads the shipped files of a folder, which are YAML or JSON. Jsonnet reads YAML with another library, in which "n" is false.
func files[T any](t *testing.T, pattern string) map[string]T {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(repository, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: want files, got none, %v", pattern, err)
	}
	all := map[string]T{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var v T
		if filepath.Ext(path) == ".json" {
			err = json.Unmarshal(text, &v)
		} else {
			decoder := yaml.NewDecoder(bytes.NewReader(text))
			decoder.KnownFields(true)
			err = decoder.Decode(&v)
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[filepath.Base(path)] = v
	}
	return all
}

func shipped(t *testing.T) (all []group) {
	t.Helper()
	for _, file := range files[struct{ Groups []group }](t, "alerts/*.yaml") {
		all = append(all, file.Groups...)
	}
	return all
}

// split gives the rules of one kind.
func split(rules []rule, kind string) (some []rule) {
	for _, r := range rules {
		if _, ok := r[kind]; ok {
			some = append(some, r)
		}
	}
	return some
}

// Each shipped group is there with its interval: its alerts under its own name, its recording rules under that name or, beside
// alerts, under NAME_rules. There is nothing else.
func TestRulesAreTheShippedOnes(t *testing.T) {
	m := load(t, "")
	given := map[string]group{}
	for _, g := range append(m.PrometheusAlerts.Groups, m.PrometheusRules.Groups...) {
		if _, twice := given[g.Name]; twice {
			t.Errorf("two groups have the name %s", g.Name)
		}
		given[g.Name] = g
	}
	for _, g := range m.PrometheusAlerts.Groups {
		if n := len(split(g.Rules, "alert")); n != len(g.Rules) {
			t.Errorf("prometheusAlerts: %s: want alerts alone, got %d of %d", g.Name, n, len(g.Rules))
		}
	}
	both := 0
	for _, want := range shipped(t) {
		alerts, records := split(want.Rules, "alert"), split(want.Rules, "record")
		parts := map[string][]rule{want.Name: alerts, want.Name + "_rules": records}
		if len(alerts) == 0 {
			parts = map[string][]rule{want.Name: records}
		} else if len(records) > 0 {
			both++
		}
		for name, rules := range parts {
			if len(rules) == 0 {
				continue
			}
			if got := given[name]; !reflect.DeepEqual(got, group{name, want.Interval, rules}) {
				t.Errorf("group %s: want interval %s and %d rules as shipped, got %s and %d", name, want.Interval, len(rules), got.Interval, len(got.Rules))
			}
			delete(given, name)
		}
	}
	if both == 0 {
		t.Error("want a group of both kinds, or nothing tests how one is split")
	}
	for name := range given {
		t.Errorf("group %s is in no shipped file", name)
	}
}

func TestDashboardsAreTheShippedOnes(t *testing.T) {
	want := map[string]object{}
	for name, dashboard := range files[object](t, "dashboards/*.json") {
		want["replayd-"+name] = dashboard
	}
	got := load(t, "").GrafanaDashboards
	for name := range want {
		if !reflect.DeepEqual(got[name], want[name]) {
			t.Errorf("%s is not the shipped dashboard", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("want %d dashboards, got %d", len(want), len(got))
	}
}

// Each alert gets its link and its labels, those that are excluded go, with their group after the last one, and each
// dashboard gets its tags. All else is as shipped.
func TestConfiguration(t *testing.T) {
	want := load(t, "")
	excluded := []string{"ReplaydTTFTRegression"} // an alert of several rules, and a whole group
	for _, r := range want.PrometheusAlerts.Groups[0].Rules {
		excluded = append(excluded, r["alert"].(string))
	}
	var groups []group
	for _, g := range want.PrometheusAlerts.Groups {
		g.Rules = slices.DeleteFunc(g.Rules, func(r rule) bool { return slices.Contains(excluded, r["alert"].(string)) })
		for _, r := range g.Rules {
			link := r["annotations"].(object)["dashboard"].(string)
			_, link, found := strings.Cut(link, `label "dashboards_url" }}`)
			if !found {
				t.Errorf("%s: want a link below the address of the dashboards", r["alert"])
			}
			r["annotations"].(object)["dashboard"] = `{{ with "https://grafana.example.com" }}{{ . }}` + link
			r["annotations"].(object)["runbook_url"] = "https://wiki.example.com#" + strings.ToLower(r["alert"].(string))
			r["labels"].(object)["team"] = "inference"
		}
		if len(g.Rules) > 0 {
			groups = append(groups, g)
		}
	}
	want.PrometheusAlerts.Groups = groups
	for _, d := range want.GrafanaDashboards {
		d["tags"] = append(d["tags"].([]any), "inference")
	}
	got := load(t, `
		runbookBase: 'https://wiki.example.com',
		dashboardsBase: 'https://grafana.example.com',
		alertLabels: { team: 'inference', severity: 'none' },
		dashboardTags: ['inference'],
		excludedAlerts: ['`+strings.Join(excluded, "', '")+`'],`)
	if !reflect.DeepEqual(got, want) {
		t.Error("want links, labels and tags added, and alerts left out, and nothing else")
	}
	_, err := evaluate(t, `((import 'github.com/OWNER/replayd/mixin/mixin.libsonnet')
		+ { _config+:: { excludedAlerts: ['ReplaydUp'] } }).prometheusAlerts`)
	if want := "excludedAlerts: want names of alerts, got ReplaydUp"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want the error %q, got %v", want, err)
	}
}

// The example of the README gives a file of each kind, with its configuration applied.
func TestReadmeExample(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(repository, "mixin/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	example := regexp.MustCompile("(?s)```jsonnet\n(.*?)```").FindSubmatch(text)
	if example == nil {
		t.Fatal("want an example")
	}
	out, err := evaluate(t, string(example[1]))
	if err != nil {
		t.Fatal(err)
	}
	var made map[string]string
	if err := json.Unmarshal([]byte(out), &made); err != nil {
		t.Fatal(err)
	}
	if alerts := made["replayd-alerts.yaml"]; !strings.Contains(alerts, "ReplaydDown") || strings.Contains(alerts,
		"ReplaydPaused") || !strings.Contains(alerts, "inference") {
		t.Errorf("want the alerts of the example, got %s", alerts)
	}
	if len(made) != 2+len(load(t, "").GrafanaDashboards) || made["replayd-rules.yaml"] == "" {
		t.Errorf("want rules, alerts and the dashboards, got %d files", len(made))
	}
}

// With native histograms the rules of latencies and three dashboards are those of native/, and all else is as shipped. The interval of the
// scrapes is the one choice of a variable of each dashboard.
func TestNativeHistograms(t *testing.T) {
	m, shipped := load(t, `histograms: 'native'`), load(t, "")
	for name, native := range files[struct{ Groups []group }](t, "native/*.yaml") {
		for _, want := range native.Groups {
			i := slices.IndexFunc(m.PrometheusRules.Groups, func(g group) bool { return g.Name == want.Name })
			if i < 0 || !reflect.DeepEqual(m.PrometheusRules.Groups[i], want) {
				t.Errorf("%s: want the native group %s", name, want.Name)
			}
		}
	}
	if len(m.PrometheusRules.Groups) != len(shipped.PrometheusRules.Groups) || !reflect.DeepEqual(m.PrometheusAlerts, shipped.PrometheusAlerts) {
		t.Error("want the other groups as they are")
	}
	native := files[object](t, "native/*.json")
	for name, got := range m.GrafanaDashboards {
		want := shipped.GrafanaDashboards[name]
		if other, ok := native[strings.TrimPrefix(name, "replayd-")]; ok {
			want = other
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s is not the shipped dashboard", name)
		}
	}
	for name, d := range load(t, `scrapeInterval: '30s'`).GrafanaDashboards {
		chosen := ""
		for _, v := range d["templating"].(object)["list"].([]any) {
			if v := v.(object); v["name"] == "scrape" {
				chosen = v["query"].(string) + " " + v["current"].(object)["value"].(string)
			}
		}
		if chosen != "30s 30s" {
			t.Errorf("%s: want 30s, got %q", name, chosen)
		}
	}
}
