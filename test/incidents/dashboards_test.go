//go:build real

package incidents_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// names are the dashboards that must exist, and those for native histograms.
var names = []string{"canary", "correlation", "fleet", "health", "native/canary", "native/correlation", "native/health"}

// runDashboards runs all queries of the dashboards, as they are opened and with each variable set to each other value
// in turn. No query may fail, and only the panels of testdata/empty_panels.txt may be empty.
func (w *world) runDashboards(t *testing.T) {
	wanted, empty := readEmpty(t), map[string]bool{}
	asked := 0
	for _, name := range names {
		d := readDashboard(t, name)
		views := w.views(t, name, d)
		for _, how := range slices.Sorted(maps.Keys(views)) {
			v := views[how]
			for _, p := range d.all() {
				n := 0
				for _, q := range p.Targets {
					asked++
					n += w.show(t, fmt.Sprintf("%s: %q %s, %s", name, p.Title, q.RefID, how), q, p.Interval, v)
				}
				if id := filepath.Base(name) + " | " + p.Title; n == 0 && len(p.Targets) > 0 {
					empty[id] = true
					if wanted[id] == "" {
						t.Errorf("%s: %q, %s: want something to be seen, or a line in %s", name, p.Title, how, emptyPanels)
					}
				}
			}
			for _, a := range d.Annotations.List {
				q := target{Expr: a.Expr}
				if q.Expr == "" && a.Target != nil {
					q = *a.Target
				}
				if q.Expr != "" { // Grafana's own annotation has none
					asked++
					w.show(t, fmt.Sprintf("%s: annotation %q, %s", name, a.Name, how), q, "", v)
				}
			}
		}
		t.Logf("%s: %d panels, %q", name, len(d.all()), slices.Sorted(maps.Keys(views)))
	}
	for id := range wanted {
		if !empty[id] {
			t.Errorf("%s: %s is not empty, or not there", emptyPanels, id)
		}
	}
	t.Logf("%d queries of %d dashboards, %d empty panels", asked, len(names), len(empty))
}

// show runs the query of one target and returns the number of values.
func (w *world) show(t *testing.T, where string, q target, least string, v view) (n int) {
	t.Helper()
	expr, step, err := v.fill(q.Expr, least)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return 0
	}
	var result []outside.Series
	if q.Instant {
		result, err = w.prom.Query(t.Context(), expr, time.Time{})
	}
	if err == nil && (q.Range || !q.Instant) { // a target can be both
		var more []outside.Series
		more, err = w.prom.QueryRange(t.Context(), expr, v.from, v.to, step)
		result = append(result, more...)
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", where, err, expr)
	}
	for _, s := range result {
		n += samples(s)
	}
	return n
}

// views returns a dashboard as it is opened, and with another value for each of its variables.
func (w *world) views(t *testing.T, name string, d *dashboard) map[string]view {
	t.Helper()
	to := time.Now()
	open := func(other, value string) (v view, options map[string][]string) {
		options = map[string][]string{}
		v = view{from: to.Add(-2 * time.Minute), to: to, scrape: time.Second, values: map[string]string{}}
		for _, variable := range d.Templating.List {
			if variable.Type == "datasource" {
				continue
			}
			values, err := variable.options(t.Context(), w.prom, v)
			if err != nil || len(values) == 0 && variable.AllValue == "" { // "All" exists even without other values
				t.Errorf("%s: variable %s: want values, got %q, %v", name, variable.Name, values, err)
				continue
			}
			options[variable.Name] = values
			switch {
			case variable.Name == other:
				v.values[variable.Name] = variable.one(value)
			case variable.IncludeAll:
				v.values[variable.Name] = variable.all(values)
			default:
				v.values[variable.Name] = variable.one(values[0])
			}
		}
		return v, options
	}
	opened, options := open("", "")
	views := map[string]view{"as it is opened": opened}
	for variable, values := range options {
		for _, value := range values {
			views[variable+" "+value], _ = open(variable, value)
		}
	}
	// The initial choices are among the others.
	for how, v := range views {
		if how != "as it is opened" && maps.Equal(v.values, opened.values) {
			delete(views, how)
		}
	}
	return views
}

func readDashboard(t *testing.T, name string) *dashboard {
	t.Helper()
	path := filepath.Join(repository, "dashboards", name+".json")
	if strings.HasPrefix(name, "native/") {
		path = filepath.Join(repository, name+".json")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if len(d.all()) == 0 {
		t.Errorf("%s: want panels, got none", path)
	}
	return &d
}

const emptyPanels = "testdata/empty_panels.txt"

// readEmpty returns the reason for each panel that may be empty. A line has the dashboard, the title and the reason,
// separated by " | ".
func readEmpty(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(emptyPanels)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		cells := strings.Split(line, " | ")
		if len(cells) != 3 || !slices.Contains(names, cells[0]) || cells[0] == "canary" || len(cells[2]) < 20 {
			t.Errorf("%s: want a dashboard that is not canary, a title and a reason, got %q", emptyPanels, line)
			continue
		}
		reasons[cells[0]+" | "+cells[1]] = cells[2]
	}
	if len(reasons) > 5 {
		t.Errorf("%s: want at most 5, got %d", emptyPanels, len(reasons))
	}
	return reasons
}
