package owner

import (
	"strings"
	"testing"
)

const ruleText = `groups:
  - name: a
    rules:
      - {record: "workload:a", expr: sum without (instance) (a)}
      - {record: "instance:a", expr: a}
      - {record: "workload:seen", expr: "last_over_time(workload:a[1h]) or workload:seen"}
      - {record: "both", expr: a}
      - {record: "both", expr: sum(a)}
`

// What Prometheus does with the label instance: prometheus.io/docs/prometheus/latest/querying/operators.
func TestKeepsInstance(t *testing.T) {
	all, err := recorded(ruleText)
	if err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string]string{
		"a":                                      "yes",
		"a > 0":                                  "yes",
		"0 < a":                                  "yes",
		"time() - a > 0":                         "yes",
		"rate(a[5m])":                            "yes",
		"max_over_time((a > 1)[5m:1m])":          "yes",
		"-(a)":                                   "yes",
		"histogram_quantile(0.9, rate(a[5m]))":   "yes",
		"sum(a)":                                 "no",
		"sum by (job) (a)":                       "no",
		"sum by (job, instance) (a)":             "yes",
		"sum without (instance) (a)":             "no",
		"sum without (job) (a)":                  "yes",
		"sum by (instance) (workload:a)":         "no",
		"topk(3, a)":                             "yes",
		"a and on (job) sum by (job) (a)":        "yes",
		"sum(a) unless on () a":                  "no",
		"a or a":                                 "yes",
		"a or sum(a)":                            "error",
		"a / a":                                  "yes",
		"a / ignoring (x) a":                     "yes",
		"a / ignoring (instance) a":              "no",
		"a / on (job) a":                         "no",
		"a / on (job, instance) a":               "yes",
		"a * on (job) group_left () sum(a)":      "yes",
		"sum(a) * on (job) group_right (x) a":    "yes",
		"workload:a * on (job) group_left (x) a": "no",
		"workload:a * on () group_left (instance) a": "yes",
		"workload:a":    "no",
		"instance:a":    "yes",
		"workload:seen": "no",
		"both":          "error",
		"absent(a)":     "error",
		`label_replace(a, "x", "$1", "y", "(.*)")`: "yes",
		`label_replace(a, "instance", "", "", "")`: "error",
		"a +": "error",
	} {
		got := "no"
		if keeps, err := all.keeps(expr); err != nil {
			got = "error"
		} else if keeps {
			got = "yes"
		}
		if got != want {
			t.Errorf("%s: want %s, got %s", expr, want, got)
		}
	}
}

// Annotations of a rule and of promtool's tests get their link before the dashboard, and lose it again.
func TestLinksOfAlerts(t *testing.T) {
	rules := `groups:
  - name: a
    rules:
      - alert: ReplaydOne
        expr: a > 0
        annotations:
          summary: one
LINK1          dashboard: /d/one
      - alert: ReplaydTwo
        expr: sum(a) > 0
        annotations:
LINK2          dashboard: /d/two
`
	tests := `tests:
  - alert_rule_test:
      - alertname: ReplaydOne
        exp_alerts:
          - exp_labels: {instance: "10.0.0.1:9797"}
            exp_annotations:
LINK1              dashboard: /d/one
      - alertname: ReplaydTwo
        exp_alerts:
          - exp_labels: {}
            exp_annotations:
LINK2              dashboard: /d/two
`
	all, err := recorded(ruleText)
	if err != nil {
		t.Fatal(err)
	}
	with := func(text, indent, one, two string) string {
		line := func(link string) string {
			if link == "" {
				return ""
			}
			return indent + "runbook_url: " + link + "\n"
		}
		return strings.NewReplacer("LINK1", line(one), "LINK2", line(two)).Replace(text)
	}
	const base = "https://wiki.example/replayd"
	for _, c := range []struct {
		owner                Owner
		one, two, inTestsOne string
	}{
		{Owner{}, "http://{{ $labels.instance }}/runbook#replaydone", "", "http://10.0.0.1:9797/runbook#replaydone"},
		{Owner{RunbookBase: base}, base + "#replaydone", base + "#replaydtwo", base + "#replaydone"},
	} {
		for _, before := range [][2]string{{"", ""}, {"http://old", "http://old"}} {
			got, err := c.owner.linkRules(with(rules, "          ", before[0], before[1]), all)
			if want := with(rules, "          ", c.one, c.two); err != nil || got != want {
				t.Errorf("want\n%s\ngot\n%s, %v", want, got, err)
			}
			got, err = c.owner.linkTests(with(tests, "              ", before[0], before[1]))
			if want := with(tests, "              ", c.inTestsOne, c.two); err != nil || got != want {
				t.Errorf("want\n%s\ngot\n%s, %v", want, got, err)
			}
		}
	}
	inline := strings.Replace(with(rules, "", "", ""), "annotations:\n          dashboard: /d/two", "annotations: {dashboard: /d/two}", 1)
	if _, err := (Owner{}).linkRules(inline, all); err == nil || !strings.Contains(err.Error(), "ReplaydTwo: want annotations in lines of their own") {
		t.Errorf("want annotations in one line refused, got %v", err)
	}
}
