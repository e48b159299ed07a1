package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"replayd/test/outside"
)

const (
	repository = "../.."
	folder     = ".."
)

// The committed files are what this program writes, and there are no others.
func TestDashboardsAreAsCommitted(t *testing.T) {
	all, err := files(repository)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		if got, err := os.ReadFile(filepath.Join(repository, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what the program writes (%v): run go generate ./dashboards/...", name, err)
		}
	}
	found := 0
	for _, pattern := range []string{"/dashboards/*.json", "/native/*"} {
		paths, err := filepath.Glob(repository + pattern)
		if found += len(paths); err != nil {
			t.Fatal(err)
		}
	}
	if found != len(all) {
		t.Errorf("want %d files, got %d", len(all), found)
	}
}

// filled replaces the variables as Grafana does.
func filled(text string) string {
	text = strings.NewReplacer("${before}ms", "3600000ms", "$__rate_interval", "1m", "$__interval", "15s", "$__range", "3h").Replace(text)
	return regexp.MustCompile(`\$\{?[a-z]+\}?`).ReplaceAllString(text, "x")
}

// expressions returns all expressions of a dashboard by their place: panels, annotations and variables.
func expressions(t *testing.T, b *board) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, p := range b.all() {
		for _, q := range p.Targets {
			all[p.Title+" "+q.RefID] = q.Expr
		}
	}
	for _, a := range b.Annotations["list"].([]object) {
		all["annotation "+a["name"].(string)] = a["expr"].(string)
	}
	for _, v := range b.Templating["list"].([]object) {
		if v["type"] != "query" {
			continue
		}
		asked := v["definition"].(string)
		inner, values := strings.CutPrefix(asked, "label_values(")
		if values {
			inner, _, values = cutLast(inner, ",")
		} else if inner, values = strings.CutPrefix(asked, "query_result("); values {
			inner, values = strings.CutSuffix(inner, ")")
		}
		if !values {
			t.Errorf("variable %s: want label_values or query_result, got %s", v["name"], asked)
		}
		all["variable "+v["name"].(string)] = inner
	}
	return all
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// recorded returns the names of the recording rules.
func recorded(t *testing.T) map[string]bool {
	t.Helper()
	paths, err := outside.RuleFiles(repository + "/alerts")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, path := range paths {
		groups, err := outside.RuleGroups(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			for _, r := range g.Rules {
				names[r.Record] = r.Record != ""
			}
		}
	}
	return names
}

// Every expression parses, names existing series and has a bounded cost: whole histograms are queried for one chosen
// target or workload, never for a fleet.
func TestExpressions(t *testing.T) {
	stored, err := outside.Stored(repository + "/docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rules := recorded(t)
	for name, b := range boards() {
		single := map[string]bool{}
		for _, v := range b.Templating["list"].([]object) {
			multi, isList := v["multi"].(bool)
			single[v["name"].(string)] = isList && !multi
		}
		for where, expr := range expressions(t, b) {
			if err := outside.LongWindows(expr); err != nil {
				t.Errorf("%s: %s: %v", name, where, err)
			}
			asked := filled(expr)
			if err := outside.Known(asked, stored, func(name string) bool { return rules[name] }); err != nil {
				t.Errorf("%s: %s: %v", name, where, err)
				continue
			}
			selectors, err := outside.Selectors(asked)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range selectors {
				_, histogram := stored[strings.TrimSuffix(s.Name, "_bucket")+"_bucket"]
				chosen := false
				for label, one := range single {
					chosen = chosen || one && strings.Contains(s.String(), label+`="x"`)
				}
				if histogram && !chosen {
					t.Errorf("%s: %s: want a chosen workload or target, got the histograms of a fleet: %s", name, where, s)
				}
			}
		}
	}
}

// Every panel explains what it means and what to do, and leads to a section of the runbook: by a link where that is published.
func TestPanelsExplainThemselves(t *testing.T) {
	text, err := os.ReadFile(repository + "/docs/reference/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		headings[m[1]] = true
	}
	for name, b := range boards() {
		titles := map[string]bool{}
		for _, p := range b.all() {
			if titles[p.Title] {
				t.Errorf("%s: %q is the title of two panels", name, p.Title)
			}
			titles[p.Title] = true
			if p.Type == "row" {
				continue
			}
			if p.Title == "" || len(p.Description) < 40 || p.defaults()["unit"] == "" {
				t.Errorf("%s: %q: want a title, a description that says what to do, and a unit", name, p.Title)
			}
			_, section, _ := strings.Cut(p.Description, " Runbook: ")
			section = strings.TrimSuffix(section, ".")
			if runbook != "" {
				section, _ = strings.CutPrefix(p.Links[0]["title"].(string), "Runbook: ")
				if got := p.Links[0]["url"]; got != runbook+"#"+anchor(section) {
					t.Errorf("%s: %q: want a link to %s, got %v", name, p.Title, section, got)
				}
			}
			if !headings[section] {
				t.Errorf("%s: %q: want a section of docs/reference/alerts.md, got %q", name, p.Title, section)
			}
		}
	}
}

// Links between dashboards and from alerts use the UIDs.
func TestBoardsAreLinked(t *testing.T) {
	for name, b := range boards() {
		if want := "replayd-" + strings.TrimSuffix(filepath.Base(name), ".json"); b.UID != want {
			t.Errorf("%s: want the uid %s, got %s", name, want, b.UID)
		}
		var again board
		text, err := b.text()
		if err != nil || json.Unmarshal(text, &again) != nil || len(again.Panels) < 8 {
			t.Errorf("%s: want a dashboard of panels, got %d, %v", name, len(again.Panels), err)
		}
	}
}

// The runbook refers to panels by their titles.
func TestRunbookNamesPanels(t *testing.T) {
	text, err := os.ReadFile(repository + "/docs/reference/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	titles := map[string]bool{}
	for _, b := range boards() {
		for _, p := range b.all() {
			titles[p.Title] = true
		}
	}
	plain := regexp.MustCompile(`\s+`).ReplaceAllString(string(text), " ")
	named := regexp.MustCompile(`\*(?:Canary|Comparison|Correlation|Replay health|Fleet)\*, "([^"]+)"|"([^"]+\?)"`).FindAllStringSubmatch(plain, -1)
	if len(named) < 20 {
		t.Fatalf("want panels in the runbook, got %q", named)
	}
	for _, m := range named {
		if title := m[1] + m[2]; !titles[title] {
			t.Errorf("docs/reference/alerts.md: there is no panel %q", title)
		}
	}
}
