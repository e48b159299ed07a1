// Package alerts_test holds the rules to the series that there are. What they compute is for promtool, with
// recording_test.yaml, and for a real Prometheus: test/prometheus.
package alerts_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"replayd/test/outside"
)

// fleet are the labels that every rule keeps, so that targets of one name do not mix.
var fleet = []string{"cluster", "namespace", "target"}

type rule struct {
	Record string
	Alert  string
	Expr   string
	Labels map[string]string
}

type group struct {
	Name  string
	Rules []rule
}

// groups reads every file of rules.
func groups(t *testing.T) (all []group) {
	t.Helper()
	paths, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.yaml") {
			continue
		}
		var file struct{ Groups []group }
		if err := yaml.Unmarshal([]byte(read(t, path)), &file); err != nil || len(file.Groups) == 0 {
			t.Fatalf("%s: want groups of rules, got %v, %v", path, file, err)
		}
		all = append(all, file.Groups...)
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

// series gives the labels of all that docs/metrics.md lists, by the names that Prometheus stores it under.
func series(t *testing.T) map[string][]string {
	t.Helper()
	stored := map[string][]string{}
	for heading, common := range map[string]map[string][]string{
		"Workloads":   {"series": {"workload", "target", "model"}},
		"The process": {"series": nil},
		"The engines": {"series": {"target", "replica"}},
		"The GPUs": {
			"series": {"target", "source", "address"},
			"figure": {"target", "gpu", "uuid", "model_name", "hostname", "mig_profile", "mig_instance"},
		},
	} {
		rows, err := outside.Tables("../docs/metrics.md", heading, common)
		if err != nil || len(rows) == 0 {
			t.Fatalf("%s: want rows, got %d, %v", heading, len(rows), err)
		}
		for name, row := range rows {
			stored[name] = row.Labels
			if row.Type == "histogram" {
				stored[name+"_sum"], stored[name+"_count"] = row.Labels, row.Labels
				stored[name+"_bucket"] = append(slices.Clone(row.Labels), "le")
			}
		}
	}
	return stored
}

// A rule that names a series that is not there gives nothing, and no tool says so.
func TestRulesReadWhatIsThere(t *testing.T) {
	scraped := series(t)
	promQL := parser.NewParser(parser.Options{})
	for _, g := range groups(t) {
		recorded := map[string]bool{} // by the rules before, which are evaluated before
		for _, r := range g.Rules {
			name := r.Record + r.Alert
			expr, err := promQL.ParseExpr(r.Expr)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
				s, ok := n.(*parser.VectorSelector)
				if !ok || recorded[s.Name] {
					return nil
				}
				labels, ok := scraped[s.Name]
				if !ok {
					t.Errorf("%s: want a series of docs/metrics.md or of a rule before it in the group, got %s", name, s)
				}
				for _, m := range s.LabelMatchers {
					if m.Name != "__name__" && ok && !slices.Contains(labels, m.Name) {
						t.Errorf("%s: %s has the labels %v, got %s", name, s.Name, labels, m.Name)
					}
				}
				return nil
			})
			recorded[r.Record] = r.Record != ""
		}
	}
}

// Targets of one name in two clusters or namespaces are two targets.
func TestRulesKeepTheFleet(t *testing.T) {
	promQL := parser.NewParser(parser.Options{})
	for _, g := range groups(t) {
		for _, r := range g.Rules {
			expr, err := promQL.ParseExpr(r.Expr)
			if err != nil {
				continue // told above
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
				for _, label := range fleet {
					if slices.Contains(labels, label) != keeps {
						t.Errorf("%s: want %v kept, got %s", r.Record+r.Alert, fleet, n)
					}
				}
				return nil
			})
		}
	}
}

// Each rule has its test and its place in the document, and is told apart from the others.
func TestEachRuleIsTestedAndExplained(t *testing.T) {
	tests, document := read(t, "recording_test.yaml"), read(t, "../docs/correlation.md")
	names := regexp.MustCompile(`^target(_kind)?:replayd_[a-z_]+:(ratio_)?(rate|avg|mean|quantile)5m$`)
	seen := map[string]bool{}
	for _, g := range groups(t) {
		for _, r := range g.Rules {
			if r.Record == "" {
				continue
			}
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
			if !strings.Contains(tests, r.Record) {
				t.Errorf("recording_test.yaml: want a test of %s", r.Record)
			}
			if !strings.Contains(document, "`"+r.Record+"`") {
				t.Errorf("docs/correlation.md: want %s explained", r.Record)
			}
		}
	}
}
