package outside_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"

	"replayd/test/outside"
)

func rules(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestScaleRules(t *testing.T) {
	f := func(expr, want string) {
		t.Helper()
		text, err := outside.ScaleRules(rules(t, "groups: [{name: g, rules: [{record: r, expr: '"+expr+"'}]}]"), 60)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			return
		}
		path := rules(t, string(text))
		groups, err := outside.RuleGroups(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := groups[0].Rules[0].Expr; got != want {
			t.Errorf("%s: want %s, got %s", expr, want, got)
		}
	}
	f(`rate(a[5m])`, `rate(a[5s])`)
	f(`a offset 1h`, `a offset 1m`)
	f(`rate(a{b="5m"}[1h] offset 1d)`, `rate(a{b="5m"}[1m] offset 24m)`)
	f(`a offset -90s`, `a offset -1s500ms`)
	f(`max_over_time(rate(a[5m])[6h:1m] offset 1w)`, `max_over_time(rate(a[5s])[6m:1s] offset 2h48m)`)
	f(`max_over_time(a[6h:])`, `max_over_time(a[6m:])`)
	f(`max_over_time(a[6h:] @ end())`, `max_over_time(a[6m:] @ end())`)
	f(`sum by (x) (a) / 300 > 60 unless on (x) b`, `sum by (x) (a) / 300 > 60 unless on (x) b`)
	f(`histogram_quantile(0.9, avg_over_time(a:rate5m[15m]))`, `histogram_quantile(0.9, avg_over_time(a:rate5m[15s]))`)
}

func TestScaleRulesKeepsTheRest(t *testing.T) {
	text, err := outside.ScaleRules(rules(t, `# a comment
groups:
  - name: g
    interval: 1m
    query_offset: 30s
    limit: 5
    rules:
      - record: "level:metric:rate5m"
        expr: |
          sum by (level) (
            rate(metric[5m]))
        labels: {window: 5m}
      - alert: A
        expr: 'x == 0 # in words: "none"'
        for: 1h30m
        keep_firing_for: 0s
        annotations: {summary: 'none for 5m: {{ $value }}'}
`), 60)
	if err != nil {
		t.Fatal(err)
	}
	got, err := outside.RuleGroups(rules(t, string(text)))
	if err != nil {
		t.Fatal(err)
	}
	want := []outside.RuleGroup{{Name: "g", Interval: "1s", Rules: []outside.Rule{
		{Record: "level:metric:rate5m", Expr: "sum by (level) (rate(metric[5s]))", Labels: map[string]string{"window": "5m"}},
		{Alert: "A", Expr: "x == 0", For: "1m30s", KeepFiringFor: "0s", Annotations: map[string]string{"summary": "none for 5m: {{ $value }}"}},
	}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
	for _, kept := range []string{"query_offset: 500ms\n", "limit: 5\n"} {
		if !strings.Contains(string(text), kept) {
			t.Errorf("want %q in\n%s", kept, text)
		}
	}
}

func TestScaleRulesFaults(t *testing.T) {
	f := func(text, want string) {
		t.Helper()
		path := rules(t, text)
		scaled, err := outside.ScaleRules(path, 60)
		if err == nil {
			t.Errorf("%s: want %q, got\n%s", text, want, scaled)
		} else if got := strings.ReplaceAll(err.Error(), path, "F"); got != want {
			t.Errorf("%s: want\n%s\ngot\n%s", text, want, got)
		}
	}
	f("", "F: want groups of rules, got nothing")
	f("groups: [", "F: yaml: line 1: did not find expected node content")
	f("groups: {}", "F:1: want a list")
	f("groups:\n- rules:\n  - {expr: 'rate(a[5m]'}\n  - {expr: 'rate(a[50ms]) + b @ 5'}\n  - {expr: a, for: 10ms}\n  - {expr: a, every: 5m}\n- interval: 5\n",
		`F:3: 1:11: parse error: unclosed left parenthesis
F:4: a[50ms]: want a duration that 60 divides into whole milliseconds, got 50ms
F:4: b @ 5.000: want no instant: it does not scale
F:5: want a duration that 60 divides into whole milliseconds, got 10ms
F:6: want a key of a file of rules, got "every"
F:7: not a valid duration string: "5"`)
}

// The shipped rules do not change when they are divided by 1.
func TestScaleShippedRules(t *testing.T) {
	paths, err := outside.RuleFiles("../../alerts")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, path := range paths {
		want, err := outside.RuleGroups(path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := outside.ScaleRules(path, 1)
		if err != nil {
			t.Fatal(err)
		}
		got, err := outside.RuleGroups(rules(t, string(text)))
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range want {
			for j, r := range g.Rules {
				seen++
				expr, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr)
				if err != nil {
					t.Fatal(err)
				}
				if got := got[i].Rules[j].Expr; got != expr.String() {
					t.Errorf("%s: %s%s: want %s, got %s", path, r.Record, r.Alert, expr, got)
				}
			}
		}
		if _, err := outside.ScaleRules(path, 60); err != nil {
			t.Errorf("a minute as a second: %v", err)
		}
	}
	if seen < 50 {
		t.Errorf("want the rules of alerts, got %d", seen)
	}
}
