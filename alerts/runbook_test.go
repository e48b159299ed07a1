package alerts_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"replayd/internal/web"
)

// Promtool renders the annotations of each alert. Its links lead to a section of the runbook and to a dashboard with the variables that
// they set.
func TestEachAlertIsLinked(t *testing.T) {
	page, err := web.Runbook()
	if err != nil {
		t.Fatal(err)
	}
	boards := map[string][]string{} // their variables, by uid
	paths, err := filepath.Glob("../dashboards/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		var d struct {
			UID        string
			Templating struct{ List []struct{ Name string } }
		}
		text, err := os.ReadFile(path)
		if err != nil || json.Unmarshal(text, &d) != nil {
			t.Fatalf("%s: want a dashboard, got %v", path, err)
		}
		boards[d.UID] = []string{}
		for _, v := range d.Templating.List {
			boards[d.UID] = append(boards[d.UID], "var-"+v.Name)
		}
	}
	follow := func(runbook, dashboard, alert string) error {
		at, section, _ := strings.Cut(runbook, "#")
		if at != "https://runbook.example/replayd.html" || section != strings.ToLower(alert) || !strings.Contains(string(page), `id="`+section+`"`) {
			return fmt.Errorf("want a link to a section of the runbook, got %q", runbook)
		}
		u, err := url.Parse(dashboard)
		if err != nil || u.Host != "grafana.example" {
			return fmt.Errorf("want a link to a dashboard, got %q", dashboard)
		}
		variables, there := boards[strings.TrimPrefix(u.Path, "/d/")]
		if !there {
			return fmt.Errorf("there is no dashboard %s", u.Path)
		}
		for name, values := range u.Query() {
			if !strings.Contains(strings.Join(variables, " ")+" ", name+" ") || values[0] == "" {
				return fmt.Errorf("%s: the dashboard has no variable %s", dashboard, name)
			}
		}
		return nil
	}
	followed := map[string]bool{}
	for _, test := range promtoolTests(t) {
		for _, a := range test.Alerts {
			for _, e := range a.Expected {
				followed[a.Alertname] = true
				if err := follow(e.Annotations["runbook_url"], e.Annotations["dashboard"], a.Alertname); err != nil {
					t.Errorf("%s: %v", a.Alertname, err)
				}
			}
		}
	}
	for _, r := range rules(t, true) {
		if !followed[r.Alert] {
			t.Errorf("%s: want a test that renders its links", r.Alert)
		}
	}
}

// What comes from outside stands between single quotes in a command, without a quote of its own.
func TestCommandsQuoteWhatIsFromOutside(t *testing.T) {
	bare := regexp.MustCompile(`\{\{ (\$labels\.(hostname|uuid|address|url|model|reason)|stripPort)`)
	for _, r := range rules(t, true) {
		if found := bare.FindString(r.Annotations["command"]); found != "" {
			t.Errorf("%s: want it without quotes and between quotes, got %s", r.Alert, found)
		}
	}
}
