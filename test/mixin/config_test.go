package mixin_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// alerts gives all alerts in order.
func (m mixin) alerts() (all []rule) {
	for _, g := range m.PrometheusAlerts.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// Each alert then has a link, whether the shipped one has one or not, and the link leads to a section of the runbook.
func TestRunbookBase(t *testing.T) {
	const base = "https://wiki.example.com/replayd"
	text, err := os.ReadFile(filepath.Join(repository, "docs/reference/alerts.md"))
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (\w+)$`).FindAllStringSubmatch(string(text), -1) {
		headings[strings.ToLower(m[1])] = true
	}
	plain, m := load(t, ""), load(t, "runbookBase: '"+base+"'")
	for i, r := range m.alerts() {
		annotations := r["annotations"].(object)
		link, _ := annotations["runbook_url"].(string)
		if anchor, ok := strings.CutPrefix(link, base+"#"); !ok || !headings[anchor] || anchor != strings.ToLower(r["alert"].(string)) {
			t.Errorf("%s: want a link to its section of the runbook, got %q", r["alert"], link)
		}
		was := plain.alerts()[i]["annotations"].(object)
		delete(annotations, "runbook_url")
		delete(was, "runbook_url")
		if !reflect.DeepEqual(annotations, was) {
			t.Errorf("%s: want the other annotations as shipped, got %v", r["alert"], annotations)
		}
	}
}

func TestAlertLabels(t *testing.T) {
	plain := load(t, "").alerts()
	for i, r := range load(t, "alertLabels: { team: 'inference', severity: 'none' }").alerts() {
		want := object{"team": "inference"}
		for name, value := range plain[i]["labels"].(object) {
			want[name] = value
		}
		if want["severity"] == nil || !reflect.DeepEqual(r["labels"], want) {
			t.Errorf("%s: want the labels %v, got %v", r["alert"], want, r["labels"])
		}
	}
}

// An alert of several rules goes with all of them, and a group goes with its last alert. Recording rules stay.
func TestExcludedAlerts(t *testing.T) {
	plain := load(t, "")
	last := plain.PrometheusAlerts.Groups[0]
	names := []string{"ReplaydTTFTRegression"}
	for _, r := range last.Rules {
		names = append(names, r["alert"].(string))
	}
	var want []group
	left := 0
	for _, g := range plain.PrometheusAlerts.Groups[1:] {
		var rules []rule
		for _, r := range g.Rules {
			if r["alert"] == names[0] {
				left++
			} else {
				rules = append(rules, r)
			}
		}
		if g.Rules = rules; len(rules) > 0 {
			want = append(want, g)
		}
	}
	m := load(t, "excludedAlerts: ['"+strings.Join(names, "', '")+"']")
	if left < 2 || !reflect.DeepEqual(m.PrometheusAlerts.Groups, want) {
		t.Errorf("want all but %q, got %d of %d alerts", names, len(m.alerts()), len(plain.alerts()))
	}
	if !reflect.DeepEqual(m.PrometheusRules, plain.PrometheusRules) {
		t.Error("want all recording rules")
	}
	_, err := evaluate(t, `((import 'github.com/OWNER/replayd/mixin/mixin.libsonnet') + { _config+:: { excludedAlerts: ['ReplaydUp'] } }).prometheusAlerts`)
	if want := "excludedAlerts: want names of alerts, got ReplaydUp"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("want the error %q, got %v", want, err)
	}
}

// The tag of the shipped dashboards stays: their links find the others by it.
func TestDashboardTags(t *testing.T) {
	plain, m := load(t, ""), load(t, "dashboardTags: ['inference']")
	for name, d := range m.GrafanaDashboards {
		if want := []any{"replayd", "inference"}; !reflect.DeepEqual(d["tags"], want) {
			t.Errorf("%s: want the tags %v, got %v", name, want, d["tags"])
		}
		d["tags"] = []any{"replayd"}
		if !reflect.DeepEqual(d, plain.GrafanaDashboards[name]) {
			t.Errorf("%s: want all else as shipped", name)
		}
	}
}

// The mixin is combined with those of other exporters by +.
func TestBesideOtherMixins(t *testing.T) {
	text, err := evaluate(t, `
		local other = {
			_config+:: {},
			prometheusAlerts+:: { groups+: [{ name: 'other', rules: [] }] },
			prometheusRules+:: { groups+: [{ name: 'other_rules', rules: [] }] },
			grafanaDashboards+:: { 'other.json': {} },
		};
		local ours = import 'github.com/OWNER/replayd/mixin/mixin.libsonnet';
		[
			[std.length(m.prometheusAlerts.groups) - std.length(ours.prometheusAlerts.groups),
			 std.length(m.prometheusRules.groups) - std.length(ours.prometheusRules.groups),
			 std.length(m.grafanaDashboards) - std.length(ours.grafanaDashboards)]
			for m in [other + ours, ours + other]
		]`)
	if want := "[[1,1,1],[1,1,1]]"; err != nil || strings.Join(strings.Fields(text), "") != want {
		t.Errorf("want one more of each, got %s, %v", text, err)
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
	if alerts := made["replayd-alerts.yaml"]; !strings.Contains(alerts, "ReplaydDown") || strings.Contains(alerts, "ReplaydPaused") || !strings.Contains(alerts, "inference") {
		t.Errorf("want the alerts of the example, got %s", alerts)
	}
	if len(made) != 2+len(load(t, "").GrafanaDashboards) || made["replayd-rules.yaml"] == "" {
		t.Errorf("want rules, alerts and the dashboards, got %d files", len(made))
	}
	var keys []string
	out, err = evaluate(t, `std.objectFieldsAll((import 'github.com/OWNER/replayd/mixin/mixin.libsonnet')._config)`)
	if err == nil {
		err = json.Unmarshal([]byte(out), &keys)
	}
	if err != nil || len(keys) != 4 {
		t.Fatalf("want four keys, got %q, %v", keys, err)
	}
	for _, key := range keys {
		if !strings.Contains(string(text), "\n| `"+key+"` |") {
			t.Errorf("want %s in the table", key)
		}
	}
}
