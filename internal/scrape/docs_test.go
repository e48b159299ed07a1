package scrape

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"

	"replayd/test/outside"
)

const metricsDoc = "../../docs/reference/metrics.md"

// allRows returns rows that map a page with every quantity of a role.
func allRows(of *Role) []Row {
	rows := make([]Row, 0, len(of.quantities))
	for _, q := range of.quantities {
		rows = append(rows, Row{Family: "all_" + q.Name, Quantity: q.Name})
	}
	return rows
}

// The tables in docs/reference/metrics.md list the series that the page can show.
func TestDocumentedSeriesAreThoseOnThePage(t *testing.T) {
	for role, section := range map[*Role]string{Engines: "The engines", Routers: "The routers"} {
		want, err := outside.Tables(metricsDoc, section, map[string][]string{"series": {"target", "address"}})
		if err != nil {
			t.Fatal(err)
		}
		f, e := newFixtureOf(role), &server{}
		var lines []string
		for _, q := range role.quantities {
			name := "all_" + q.Name
			if q.Kind == Histogram {
				lines = append(lines, name+`_bucket{le="1"} 1`, name+`_bucket{le="+Inf"} 1`, name+"_sum 1", name+"_count 1")
			} else {
				lines = append(lines, name+" 1")
			}
		}
		e.say(lines...)
		target := f.target(t, e, TargetOptions{Page: "http://engine:8000/metrics", Map: allRows(role)})
		target.Show()
		target.endpoints[0].scrape(t.Context())
		families, err := f.registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		page := outside.Page{}
		for _, family := range families {
			page[family.GetName()] = family
		}
		if diff := cmp.Diff(want, page.Series()); diff != "" {
			t.Errorf("%s and the page (-document +page):\n%s", metricsDoc, diff)
		}
		name := "replayd_" + role.noun + "_scrape_errors_total"
		row := rowOf(t, "| `"+name+"` |")
		for _, m := range page[name].GetMetric() {
			if reason := value(m, "reason"); !strings.Contains(row, "`"+reason+"`") {
				t.Errorf("%s lacks the reason %s", metricsDoc, reason)
			}
		}
	}
}

func value(m *dto.Metric, label string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == label {
			return l.GetValue()
		}
	}
	return ""
}

func rowOf(t *testing.T, start string) string {
	t.Helper()
	text, err := os.ReadFile(metricsDoc)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, start) {
			return line
		}
	}
	t.Fatalf("%s has no line that begins %q", metricsDoc, start)
	return ""
}

// ORIGIN.md lists every page in testdata, and no other.
func TestOrigins(t *testing.T) {
	text, err := os.ReadFile("testdata/pages/ORIGIN.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob("testdata/pages/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range pages {
		if !strings.Contains(string(text), "`"+filepath.Base(path)+"`") {
			t.Errorf("ORIGIN.md does not say where %s is from", filepath.Base(path))
		}
	}
}

// docs/reference/metrics.md states for each engine and each router how many of its rows are checked.
func TestDocumentedChecks(t *testing.T) {
	text, err := os.ReadFile(metricsDoc)
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []*Role{Engines, Routers} {
		documentedChecks(t, role, string(text))
	}
}

func documentedChecks(t *testing.T, role *Role, text string) {
	t.Helper()
	rows, err := role.table()
	if err != nil {
		t.Fatal(err)
	}
	all, checked := map[string]int{}, map[string]int{}
	for _, r := range rows {
		all[r.Engine]++
		if r.checked != "" {
			checked[r.Engine]++
		}
	}
	for engine, n := range all {
		if want := fmt.Sprintf("| `%s` | %d of %d |", engine, checked[engine], n); !strings.Contains(text, want) {
			t.Errorf("%s: want %s", metricsDoc, want)
		}
	}
}
