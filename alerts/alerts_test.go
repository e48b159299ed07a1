// Package alerts_test holds the rules to the series that there are, and to their tests and pages. What they compute is for promtool,
// with tests/*_test.yaml, and for a real Prometheus: test/incidents.
package alerts_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"replayd/test/outside"
)

// groups reads every file of rules.
func groups(t *testing.T) (all []outside.RuleGroup) {
	t.Helper()
	paths, err := outside.RuleFiles(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		of, err := outside.RuleGroups(path)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, of...)
	}
	return all
}

// rules gives those that record, or those that alert.
func rules(t *testing.T, alerts bool) (all []outside.Rule) {
	t.Helper()
	for _, g := range groups(t) {
		for _, r := range g.Rules {
			if (r.Alert != "") == alerts {
				all = append(all, r)
			}
		}
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// series returns the series that replayd exports, with their labels, and those that the rules record.
func series(t *testing.T) (stored map[string][]string, recorded map[string]bool) {
	t.Helper()
	stored, err := outside.Stored("../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	recorded = map[string]bool{}
	for _, r := range rules(t, false) {
		recorded[r.Record] = true
	}
	return stored, recorded
}

// A rule that names a series that is not there gives nothing, and no tool says so. It may read what any group records, and in its own
// group what stands before it: that is evaluated before.
func TestRulesReadWhatIsThere(t *testing.T) {
	stored, recorded := series(t)
	inText := regexp.MustCompile(`\b\w+:replayd_\w+:\w+`)
	names := map[string]bool{}
	for _, g := range groups(t) {
		if names[g.Name] {
			t.Errorf("two groups have the name %s", g.Name)
		}
		if len(g.Rules) > 20 { // the most that Mimir and Grafana Cloud take
			t.Errorf("%s: want at most 20 rules, got %d", g.Name, len(g.Rules))
		}
		names[g.Name] = true
		later := map[string]bool{}
		for _, r := range g.Rules {
			later[r.Record] = true
		}
		for _, r := range g.Rules {
			if err := outside.Known(r.Expr, stored, func(name string) bool { return recorded[name] && !later[name] || name == r.Record && later[name] }); err != nil {
				t.Errorf("%s: %v", r.Record+r.Alert, err)
			}
			for _, text := range r.Annotations { // some have queries of their own
				for _, name := range inText.FindAllString(text, -1) {
					if !recorded[name] {
						t.Errorf("%s: %q asks for %s, which no rule records", r.Alert, text, name)
					}
				}
			}
			delete(later, r.Record)
		}
	}
}

// Targets of one name in two clusters or namespaces are two targets, and so are workloads and processes.
func TestRulesKeepTheFleet(t *testing.T) {
	promQL := parser.NewParser(parser.Options{})
	process := []string{"cluster", "namespace", "job", "instance", "pod", "container", "endpoint"}
	for _, r := range append(rules(t, false), rules(t, true)...) {
		expr, err := promQL.ParseExpr(r.Expr)
		if err != nil {
			continue // told above
		}
		want := []string{"cluster", "namespace"}
		switch {
		case strings.HasPrefix(r.Record, "fleet"):
			continue // it is of all
		case strings.HasPrefix(r.Record, "target"):
			want = append(want, "target")
		case strings.HasPrefix(r.Record, "workload"):
			want = append(want, "workload", "target", "model")
		case strings.HasPrefix(r.Record, "instance"):
			want = process
		}
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			var labels []string
			var keeps bool
			switch n := n.(type) {
			case *parser.AggregateExpr:
				labels, keeps = n.Grouping, !n.Without
			case *parser.BinaryExpr:
				if n.VectorMatching == nil || !n.VectorMatching.On && len(n.VectorMatching.MatchingLabels) == 0 {
					return nil
				}
				labels, keeps = n.VectorMatching.MatchingLabels, n.VectorMatching.On
			default:
				return nil
			}
			want := want
			if _, match := n.(*parser.BinaryExpr); match && keeps && slices.Contains(labels, "instance") {
				want = process // each series of it, before workloads or targets are made of them
			}
			for _, label := range want {
				if slices.Contains(labels, label) != keeps {
					t.Errorf("%s: want %v kept, got %s", r.Record+r.Alert, want, n)
				}
			}
			return nil
		})
	}
}

// A copy with shorter windows needs to find the seconds that are not written as durations.
func TestOneNumberIsOfSeconds(t *testing.T) {
	promQL := parser.NewParser(parser.Options{})
	var found []string
	for _, r := range append(rules(t, false), rules(t, true)...) {
		expr, err := promQL.ParseExpr(r.Expr)
		if err != nil {
			continue // told above
		}
		parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
			if n, ok := n.(*parser.NumberLiteral); ok && slices.Contains([]float64{300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 259200, 604800}, n.Val) {
				found = append(found, r.Record+r.Alert+": "+n.String())
			}
			return nil
		})
	}
	if want := []string{"workload:replayd_loops_per_day:ratio: 86400"}; !slices.Equal(found, want) {
		t.Errorf("numbers that look like seconds: want %v, got %v", want, found)
	}
}

// A promtoolTest is what is looked at of one.
type promtoolTest struct {
	Exprs []struct {
		Expr string
	} `yaml:"promql_expr_test"`
	Alerts []struct {
		Alertname string
		Expected  []struct {
			Labels      map[string]string `yaml:"exp_labels"`
			Annotations map[string]string `yaml:"exp_annotations"`
		} `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

func promtoolTests(t *testing.T) (all []promtoolTest) {
	t.Helper()
	paths, err := filepath.Glob("tests/*_test.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("want files with promtool tests, got %v, %v", paths, err)
	}
	for _, path := range paths {
		var file struct{ Tests []promtoolTest }
		if err := yaml.Unmarshal([]byte(read(t, path)), &file); err != nil || len(file.Tests) == 0 {
			t.Fatalf("%s: want tests, got %v, %v", path, file, err)
		}
		all = append(all, file.Tests...)
	}
	return all
}

// Each rule that records has its test and its place in the document, and is told apart from the others.
func TestEachRecordIsTestedAndExplained(t *testing.T) {
	document := read(t, "../docs/explanation/correlation.md")
	tested := map[string]bool{}
	for _, test := range promtoolTests(t) {
		for _, e := range test.Exprs {
			selectors, err := outside.Selectors(e.Expr)
			if err != nil {
				t.Errorf("%s: %v", e.Expr, err)
			}
			for _, s := range selectors {
				tested[s.Name] = true
			}
		}
	}
	names := regexp.MustCompile(`^(fleet|instance|target|target_kind|workload|workload_outcome|workload_reason|workload_trace):replayd_[a-z0-9_]+:` +
		`((ratio_)?(rate|increase|avg|mean|quantile)\d+[mhd](_(loop|day)_before)?|max|min|ratio)$`)
	seen := map[string]bool{}
	for _, r := range rules(t, false) {
		if !names.MatchString(r.Record) {
			t.Errorf("want level:metric:operations, got %s", r.Record)
		}
		id := r.Record
		for _, label := range slices.Sorted(maps.Keys(r.Labels)) {
			id += "," + label + "=" + r.Labels[label]
		}
		if seen[id] {
			t.Errorf("%s is recorded twice", id)
		}
		seen[id] = true
		if !tested[r.Record] {
			t.Errorf("want a promql_expr_test of %s in tests/*_test.yaml", r.Record)
		}
		if !strings.Contains(document, "`"+r.Record+"`") {
			t.Errorf("docs/explanation/correlation.md: want %s explained", r.Record)
		}
	}
}

// Each alert says how bad it is, what is the matter, where to look and what to do; it is seen to fire and to stay quiet.
func TestEachAlertIsTestedAndHasItsPage(t *testing.T) {
	type key struct{ alert, further string } // one name may have several rules, which their labels tell apart
	of := func(alert string, labels map[string]string) key {
		return key{alert, labels["against"] + labels["about"]}
	}
	fires, quiet := map[key]bool{}, map[string]bool{}
	for _, test := range promtoolTests(t) {
		for _, a := range test.Alerts {
			if len(a.Expected) == 0 {
				quiet[a.Alertname] = true
			}
			for _, e := range a.Expected {
				fires[of(a.Alertname, e.Labels)] = true
			}
		}
	}
	pages := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^## (Replayd\w+)$`).FindAllStringSubmatch(read(t, "../docs/reference/alerts.md"), -1) {
		if pages[m[1]] {
			t.Errorf("docs/reference/alerts.md: %s is there twice", m[1])
		}
		pages[m[1]] = true
	}
	alerts := map[string]bool{}
	for _, r := range rules(t, true) {
		alerts[r.Alert] = true
		if s := r.Labels["severity"]; !slices.Contains([]string{"critical", "warning", "info"}, s) {
			t.Errorf("%s: want a severity critical, warning or info, got %q", r.Alert, s)
		}
		for _, annotation := range []string{"summary", "description"} {
			if r.Annotations[annotation] == "" {
				t.Errorf("%s: want a %s", r.Alert, annotation)
			}
		}
		if !pages[r.Alert] {
			t.Errorf("docs/reference/alerts.md: want a section %s", r.Alert)
		}
		if n := strings.Count(" "+r.Annotations["description"], " First: "); n != 1 {
			t.Errorf("%s: want one first step in the description, First: …, got %d", r.Alert, n)
		}
		if !fires[of(r.Alert, r.Labels)] || !quiet[r.Alert] {
			t.Errorf("%s %v: want an alert_rule_test that has it firing and one that has it quiet, got %v and %v", r.Alert, r.Labels, fires[of(r.Alert, r.Labels)], quiet[r.Alert])
		}
	}
	for page := range pages {
		if !alerts[page] {
			t.Errorf("docs/reference/alerts.md: %s is no alert", page)
		}
	}
}

// The first command of each alert can be typed: a shell parses it, and a query in it names series that exist. A person who
// is woken copies it.
func TestFirstCommands(t *testing.T) {
	stored, recorded := series(t)
	for _, r := range rules(t, true) {
		text := r.Annotations["summary"] + r.Annotations["description"]
		if r.Annotations["command"] == "" || !strings.Contains(text, "Likely cause") {
			t.Errorf("%s: want a command and a likely cause, got %q and %q", r.Alert, r.Annotations["command"], text)
		}
		if gauge := regexp.MustCompile(`(== [01]|replayd_loop_gone:max|\bquery\b)\s*$`); !strings.Contains(text, "$value") && !gauge.MatchString(r.Expr) {
			t.Errorf("%s: want its value in the summary or the description", r.Alert)
		}
	}
	query := regexp.MustCompile(`^promtool query instant "\$\{PROMETHEUS:\?its address\}" '(.*)'$`)
	commands, queries := map[string]bool{}, 0
	for _, test := range promtoolTests(t) {
		for _, a := range test.Alerts {
			for _, e := range a.Expected {
				command := e.Annotations["command"]
				if commands[command] {
					continue
				}
				commands[command] = true
				if said, err := exec.CommandContext(t.Context(), "sh", "-n", "-c", command).CombinedOutput(); err != nil {
					t.Errorf("%s: %s: %v: %s", a.Alertname, command, err, said)
				}
				m := query.FindStringSubmatch(command)
				if m == nil {
					continue
				}
				queries++
				known := func(name string) bool { return recorded[name] }
				if err := outside.Known(byName(t, m[1], stored, recorded), stored, known); err != nil {
					t.Errorf("%s: %s: %v", a.Alertname, command, err)
				}
			}
		}
	}
	if len(commands) < 25 || queries < 15 {
		t.Errorf("want 25 commands or more and 15 queries in them, got %d and %d", len(commands), queries)
	}
}

// byName replaces a selector by a pattern of names with one selector for each series that matches.
func byName(t *testing.T, query string, stored map[string][]string, recorded map[string]bool) string {
	t.Helper()
	m := regexp.MustCompile(`^\{__name__=~"([^"]*)",(.*)\}$`).FindStringSubmatch(query)
	if m == nil {
		return query
	}
	pattern := regexp.MustCompile("^(" + m[1] + ")$")
	var all []string
	for _, name := range append(slices.Collect(maps.Keys(stored)), slices.Collect(maps.Keys(recorded))...) {
		if pattern.MatchString(name) {
			all = append(all, name+"{"+m[2]+"}")
		}
	}
	if want := strings.Count(m[1], "|") + 1; len(all) != want {
		t.Errorf("%s: want %d series, got %v", query, want, all)
	}
	return strings.Join(all, " or ")
}

// Some rules are written once a quantile, a window and a latency: the copies may differ in nothing else.
func TestCopiesOfARuleAgree(t *testing.T) {
	window := regexp.MustCompile(`\d+[mhd]\b`)
	first := map[string]outside.Rule{}
	copies := 0
	for _, r := range rules(t, false) {
		name, expr := strings.ReplaceAll(r.Record, "_tpot_", "_ttft_"), strings.ReplaceAll(r.Expr, "_tpot_", "_ttft_")
		if quantile := r.Labels["quantile"]; quantile != "" {
			expr = strings.ReplaceAll(expr, "histogram_quantile("+quantile+",", "histogram_quantile(QUANTILE,")
		}
		if strings.HasPrefix(name, "workload:replayd_bad_requests:ratio_rate") && !strings.HasSuffix(name, "5m") && !strings.HasSuffix(name, "30m") {
			name, expr = window.ReplaceAllString(name, "WINDOW"), window.ReplaceAllString(expr, "WINDOW")
		}
		name += "," + r.Labels["counted_by"]
		if f, ok := first[name]; !ok {
			first[name] = outside.Rule{Record: r.Record, Expr: expr}
		} else if copies++; f.Expr != expr {
			t.Errorf("%s %v and %s are copies of one rule and differ:\n%s\n%s", r.Record, r.Labels, f.Record, expr, f.Expr)
		}
	}
	if copies < 16 {
		t.Errorf("want 16 copies or more compared, got %d", copies)
	}
}
