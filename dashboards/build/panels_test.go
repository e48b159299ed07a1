package main

import (
	"regexp"
	"slices"
	"testing"
)

// Lines of workloads, targets, replicas, processes and GPUs differ in color, and each keeps its color from panel to panel: Grafana
// takes it from the name. No override gives all of them one color.
func TestColorsAreByName(t *testing.T) {
	several := regexp.MustCompile(`\{\{(workload|target|address|instance|gpu)\}\}`)
	names := map[string]bool{}
	for name, b := range boards() {
		for _, p := range b.all() {
			if p.Type != "timeseries" {
				continue
			}
			if mode := p.defaults()["color"].(object)["mode"]; mode != byName {
				t.Errorf("%s: %q: want colors %s, got %s", name, p.Title, byName, mode)
			}
			for _, q := range p.Targets {
				if !several.MatchString(q.LegendFormat) {
					continue
				}
				if regexp.MustCompile(`\{\{workload\}\}.*\{\{model\}\}`).MatchString(q.LegendFormat) {
					names[q.LegendFormat] = true
				}
				shown := regexp.MustCompile(`\{\{\w+\}\}`).ReplaceAllString(q.LegendFormat, "any")
				for _, o := range p.FieldConfig["overrides"].([]object) {
					matcher := o["matcher"].(object)
					one := slices.ContainsFunc(o["properties"].([]object), func(p object) bool { return p["id"] == "color" })
					if one && matches(t, matcher, q.RefID, shown) {
						t.Errorf("%s: %q: want a color for each of %q, got one for all", name, p.Title, q.LegendFormat)
					}
				}
			}
		}
	}
	if len(names) != 1 {
		t.Errorf("want one form of the names of workloads, got %v", names)
	}
}

// matches reports whether an override is of a query's series, by its letter or by the displayed name.
func matches(t *testing.T, matcher object, letter, shown string) bool {
	t.Helper()
	if matcher["id"] == "byFrameRefID" {
		return matcher["options"] == letter
	}
	pattern := regexp.MustCompile(`^/(.*)/$`).ReplaceAllString(matcher["options"].(string), "$1")
	return regexp.MustCompile(pattern).MatchString(shown)
}
