package main

import (
	"regexp"
	"slices"
	"testing"
)

// TestLint checks the rules of Grafana's dashboard-linter (github.com/grafana/dashboard-linter) that fit these dashboards: the data
// source is a variable, each target uses it, and range selectors have the window of the scrape interval or that of a recording rule.
// TestPanelsExplainThemselves checks titles, descriptions and units, TestExpressions the expressions, TestChoicesFollowTheTimeRange the
// variables. The rule that a dashboard is not editable is not followed: who imports one by hand may change it.
func TestLint(t *testing.T) {
	window := regexp.MustCompile(`\[([^\]]+)\]`)
	windows := []string{"$__rate_interval", "$__range", "5m", "10m", "15m", "20m", "1h", "1d"} // the fixed ones are those of alerts/*.yaml
	for name, b := range boards() {
		sources := slices.DeleteFunc(slices.Clone(b.Templating["list"].([]object)), func(v object) bool { return v["type"] != "datasource" })
		if len(sources) != 1 || sources[0]["name"] != "datasource" || sources[0]["label"] != "Data source" {
			t.Errorf("%s: want one variable for the data source, got %v", name, sources)
		}
		for _, p := range b.all() {
			if p.Type == "row" {
				continue
			}
			if p.Datasource["uid"] != "${datasource}" || len(p.Targets) == 0 {
				t.Errorf("%s: %s: want queries to the data source of the variable, got %v", name, p.Title, p.Datasource)
			}
			for _, q := range p.Targets {
				if q.Datasource["uid"] != "${datasource}" {
					t.Errorf("%s: %s %s: data source %v", name, p.Title, q.RefID, q.Datasource)
				}
				for _, m := range window.FindAllStringSubmatch(q.Expr, -1) {
					if !slices.Contains(windows, m[1]) {
						t.Errorf("%s: %s %s: want a window of %v, got [%s]", name, p.Title, q.RefID, windows, m[1])
					}
				}
			}
		}
	}
}
