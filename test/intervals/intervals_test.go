// Package intervals_test holds the alerts to the scrape intervals of docs/reference/monitoring.md: what alerts/tests have
// fire does so at each of them, at the same time, also with each third scrape missing. Prometheus' own code evaluates the
// rules.
package intervals_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/rules"
	"go.yaml.in/yaml/v3"
)

const evaluation = time.Minute // of all tests and groups

var promQL = parser.NewParser(parser.Options{})

// A file is one of promtool's.
type file struct {
	RuleFiles          []string       `yaml:"rule_files"`
	EvaluationInterval model.Duration `yaml:"evaluation_interval"`
	GroupEvalOrder     []string       `yaml:"group_eval_order"`
	Tests              []struct {
		Name        string
		Interval    model.Duration
		InputSeries []struct{ Series, Values string } `yaml:"input_series"`
		AlertTests  []timed                           `yaml:"alert_rule_test"`
		ExprTests   []timed                           `yaml:"promql_expr_test"`
	}
}

type timed struct {
	EvalTime model.Duration `yaml:"eval_time"`
}

// A trial is a test with its rules, ready to be played at any interval.
type trial struct {
	name  string
	files []string
	order []string
	own   time.Duration
	pages []page
	until time.Duration // its last sample, or the last time that it looks at
}

func trials(t *testing.T) (all []trial) {
	t.Helper()
	paths, err := filepath.Glob("../../alerts/tests/*_test.yaml")
	if err != nil || len(paths) == 0 {
		t.Fatalf("want files with promtool tests, got %v, %v", paths, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var f file
		if err := yaml.Unmarshal(text, &f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if time.Duration(f.EvaluationInterval) != evaluation {
			t.Fatalf("%s: want an evaluation_interval of %s, got %s", path, evaluation, f.EvaluationInterval)
		}
		for i, r := range f.RuleFiles {
			f.RuleFiles[i] = filepath.Join(filepath.Dir(path), r)
		}
		for _, test := range f.Tests {
			one := trial{
				name:  strings.TrimSuffix(filepath.Base(path), "_test.yaml") + ": " + test.Name,
				files: f.RuleFiles, order: f.GroupEvalOrder, own: time.Duration(test.Interval),
			}
			for _, s := range test.InputSeries {
				p := page{own: one.own}
				if p.labels, p.values, err = promQL.ParseSeriesDesc(s.Series + " " + s.Values); err != nil {
					t.Fatalf("%s: %s: %v", one.name, s.Series, err)
				}
				if i := p.rounding(); i >= 0 {
					t.Errorf("%s: %s: value %d is less by rounding alone, which is a reset", one.name, s.Series, i)
				}
				one.pages = append(one.pages, p)
				if !p.recorded() { // a setting for links in alerts lasts longer than the test
					one.until = max(one.until, time.Duration(len(p.values)-1)*p.own)
				}
			}
			for _, at := range append(test.AlertTests, test.ExprTests...) {
				one.until = max(one.until, time.Duration(at.EvalTime))
			}
			all = append(all, one)
		}
	}
	return all
}

// A loader has the rules without annotations, which only ask further queries, and without those that read no series of
// the test: most rules in most tests.
type loader map[string]*rulefmt.RuleGroups

func (l loader) Load(path string, _ bool, _ model.ValidationScheme) (*rulefmt.RuleGroups, []error) {
	return l[path], nil
}

func (l loader) Parse(text string) (parser.Expr, error) { return promQL.ParseExpr(text) }

func (one trial) load(t *testing.T) loader {
	t.Helper()
	there := map[string]bool{"ALERTS": true}
	for _, p := range one.pages {
		there[p.labels.Get(model.MetricNameLabel)] = true
	}
	all, kept := loader{}, loader{}
	for _, path := range one.files {
		groups, errs := rulefmt.ParseFile(path, false, model.UTF8Validation, promQL, promslog.NewNopLogger())
		if len(errs) > 0 {
			t.Fatalf("%s: %v", path, errs)
		}
		all[path] = groups
	}
	for before := 0; before < len(there); { // from what is read to what reads it
		before = len(there)
		for path, groups := range all {
			kept[path] = &rulefmt.RuleGroups{}
			for _, g := range groups.Groups {
				rest := g
				rest.Rules = nil
				for _, r := range g.Rules {
					if reads(t, r.Expr, there) {
						r.Annotations = nil
						rest.Rules = append(rest.Rules, r)
						there[r.Record] = true
					}
				}
				kept[path].Groups = append(kept[path].Groups, rest)
			}
		}
	}
	return kept
}

// reads says whether an expression has a selector of a series that is there, or none at all.
func reads(t *testing.T, text string, there map[string]bool) bool {
	t.Helper()
	expr, err := promQL.ParseExpr(text)
	if err != nil {
		t.Fatal(err)
	}
	selectors := parser.ExtractSelectors(expr)
	isThere := func(m *labels.Matcher) bool { return m.Name == model.MetricNameLabel && there[m.Value] }
	return len(selectors) == 0 || slices.ContainsFunc(selectors, func(by []*labels.Matcher) bool {
		return slices.ContainsFunc(by, isThere)
	})
}

// An episode is from the first evaluation at which an alert fires to the first at which it no longer does, or to the
// end of the test.
type episode struct{ from, to time.Duration }

func (e episode) String() string {
	return fmt.Sprintf("%v to %v min", e.from.Minutes(), e.to.Minutes())
}

// play gives the episodes of a test, by alerts with their labels.
func (one trial) play(t *testing.T, by scraper) map[string][]episode {
	t.Helper()
	stored := newMemory()
	for _, p := range one.pages {
		if err := by.scrape(p, stored); err != nil {
			t.Fatalf("%s: %s: %v", one.name, p.labels, err)
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50e6, Timeout: time.Hour, Parser: promQL})
	manager := rules.NewManager(&rules.ManagerOptions{
		QueryFunc: rules.EngineQueryFunc(engine, stored), Appendable: stored, Context: t.Context(), Parser: promQL,
		NotifyFunc:  func(context.Context, string, ...*rules.Alert) {},
		GroupLoader: one.load(t), Logger: promslog.NewNopLogger(),
	})
	byKey, errs := manager.LoadGroups(evaluation, labels.EmptyLabels(), "", nil, false, one.files...)
	if len(errs) > 0 {
		t.Fatalf("%s: %v", one.name, errs)
	}
	var groups []*rules.Group
	for _, key := range slices.Sorted(maps.Keys(byKey)) { // by files and names, where the test does not say
		groups = append(groups, byKey[key])
	}
	slices.SortStableFunc(groups, func(a, b *rules.Group) int {
		return slices.Index(one.order, a.Name()) - slices.Index(one.order, b.Name())
	})
	var alerts []*rules.AlertingRule
	for _, g := range groups {
		alerts = append(alerts, g.AlertingRules()...)
	}
	for _, a := range alerts {
		a.SetRestored(true)
	}
	all, open := map[string][]episode{}, map[string]bool{}
	for now := time.Duration(0); now <= one.until; now += evaluation {
		for _, g := range groups {
			g.Eval(t.Context(), time.UnixMilli(now.Milliseconds()))
			for _, r := range g.Rules() {
				if err := r.LastError(); err != nil {
					t.Fatalf("%s: %s: %v", one.name, r.Name(), err)
				}
			}
		}
		firing := map[string]bool{}
		for _, a := range alerts {
			for _, active := range a.ActiveAlerts() {
				if active.State == rules.StateFiring {
					firing[active.Labels.String()] = true
				}
			}
		}
		for alert := range firing {
			if !open[alert] {
				all[alert] = append(all[alert], episode{from: now})
			}
		}
		for alert, of := range all {
			if open[alert] || firing[alert] {
				of[len(of)-1].to = now
			}
		}
		open = firing
	}
	return all
}
