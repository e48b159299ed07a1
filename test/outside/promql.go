package outside

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// Stored returns the labels of all series in a document such as docs/reference/metrics.md, by the names under which Prometheus
// stores them: a histogram has the native name and those of the classic one.
func Stored(path string) (map[string][]string, error) {
	stored := map[string][]string{}
	for heading, common := range map[string]map[string][]string{
		"Workloads":   {"series": {"workload", "target", "model"}},
		"The process": {"series": nil},
		"Comparisons": {"series": {"comparison"}, "series of the state file": nil},
		"The engines": {"series": {"target", "address"}},
		"The routers": {"series": {"target", "address"}},
		"The GPUs": {
			"series": {"target", "source", "address"},
			"figure": {"target", "gpu", "uuid", "model_name", "hostname", "mig_profile", "mig_instance"},
		},
	} {
		rows, err := Tables(path, heading, common)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			return nil, fmt.Errorf("%s: want series under %q, got none", path, heading)
		}
		for name, row := range rows {
			stored[name] = row.Labels
			if row.Type == "histogram" {
				stored[name+"_sum"], stored[name+"_count"] = row.Labels, row.Labels
				stored[name+"_bucket"] = append(slices.Clone(row.Labels), "le")
			}
		}
	}
	return stored, nil
}

// A RuleGroup holds the parts of a rule group that a test needs.
type RuleGroup struct {
	Name     string
	Interval string
	Rules    []Rule
}

// A Rule is a recording or an alerting rule.
type Rule struct {
	Record        string
	Alert         string
	Expr          string
	For           string
	KeepFiringFor string `yaml:"keep_firing_for"`
	Labels        map[string]string
	Annotations   map[string]string
}

// RuleFiles returns the paths of the rules in a folder such as alerts; at least one.
func RuleFiles(folder string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s: want files of rules, got none", folder)
	}
	return paths, nil
}

// RuleGroups reads a file of rules, which has one group at least.
func RuleGroups(path string) ([]RuleGroup, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var file struct{ Groups []RuleGroup }
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(file.Groups) == 0 {
		return nil, fmt.Errorf("%s: want groups of rules, got none", path)
	}
	return file.Groups, nil
}

// Selectors parses a PromQL expression with Prometheus' parser and returns its selectors in order.
func Selectors(promQL string) (selectors []*parser.VectorSelector, err error) {
	expr, err := parser.NewParser(parser.Options{}).ParseExpr(promQL)
	if err != nil {
		return nil, err
	}
	parser.Inspect(expr, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			selectors = append(selectors, s)
		}
		return nil
	})
	return selectors, nil
}

// ofPrometheus are the labels of a scrape configuration, which any series can have.
var ofPrometheus = []string{"__name__", "cluster", "namespace", "job", "instance", "pod"}

// ofClientGolang matches the series that client_golang gives every process. docs/reference/metrics.md names their prefixes.
var ofClientGolang = regexp.MustCompile("^(go|process|promhttp_metric_handler)_")

var window = regexp.MustCompile(`\[(\d+(?:ms|[smhdwy])\w*)[\]:]`)

// LongWindows reports a window of less than 5 minutes in a text of PromQL. Where a page is scraped each 60 s, it can have too few
// samples for a rate.
func LongWindows(text string) error {
	for _, match := range window.FindAllStringSubmatch(text, -1) {
		if length, err := model.ParseDuration(match[1]); err != nil || time.Duration(length) < 5*time.Minute {
			return fmt.Errorf("want windows of 5 minutes or more, got %s", match[0])
		}
	}
	return nil
}

// Known returns an error for each selector of an expression that names an unknown series, or an unknown label of a
// series. Prometheus would silently return nothing. The labels of recorded series, of up, of ALERTS and of the series
// of client_golang are not checked.
func Known(promQL string, stored map[string][]string, recorded func(name string) bool) error {
	selectors, err := Selectors(promQL)
	if err != nil {
		return err
	}
	var faults []error
	for _, s := range selectors {
		if s.Name == "up" || s.Name == "ALERTS" || recorded(s.Name) || ofClientGolang.MatchString(s.Name) {
			continue
		}
		labels, ok := stored[s.Name]
		if !ok {
			faults = append(faults, fmt.Errorf("want a series of docs/reference/metrics.md or of a recording rule, got %s", s))
			continue
		}
		for _, m := range s.LabelMatchers {
			if !slices.Contains(labels, m.Name) && !slices.Contains(ofPrometheus, m.Name) {
				faults = append(faults, fmt.Errorf("%s has the labels %v, got %s", s.Name, labels, m.Name))
			}
		}
	}
	return errors.Join(faults...)
}
