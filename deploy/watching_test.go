package deploy_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/limits"
	"replayd/test/outside"
)

type prometheus struct {
	Global struct {
		ScrapeInterval string `yaml:"scrape_interval"`
	}
	RuleFiles     []string `yaml:"rule_files"`
	ScrapeConfigs []struct {
		HonorLabels bool `yaml:"honor_labels"`
		Static      []struct{ Targets []string }
	} `yaml:"scrape_configs"`
}

// Prometheus loads all rules and keeps the page's labels, from where the services are.
func TestPrometheus(t *testing.T) {
	p := load[prometheus](t, "prometheus.yml")
	if want := []string{"../alerts/*.yaml"}; !slices.Equal(p.RuleFiles, want) {
		t.Errorf("want every file of rules, %v, got %v", want, p.RuleFiles)
	}
	s := load[compose](t, "compose.yaml").Services["prometheus"]
	const place = "/etc/prometheus/prometheus.yml"
	if inside(s, place) != "./prometheus.yml" || !slices.Contains(s.Command, "--config.file="+place) {
		t.Errorf("want prometheus.yml mounted where Prometheus is told to look")
	}
	for _, file := range p.RuleFiles {
		if path := inside(s, filepath.Join(filepath.Dir(place), file)); path != file {
			t.Errorf("want %s seen by Prometheus as that, got %q", file, path)
		}
	}
	for _, j := range p.ScrapeConfigs {
		if !j.HonorLabels {
			t.Errorf("want the page's labels kept, got %+v", j)
		}
	}
}

// Grafana finds its data source and the dashboards.
func TestGrafana(t *testing.T) {
	s := load[compose](t, "compose.yaml").Services["grafana"]
	provisioning := inside(s, "/etc/grafana/provisioning")
	sources := load[struct {
		Datasources []struct {
			Type, URL string
			JSONData  struct {
				TimeInterval string `yaml:"timeInterval"`
			} `yaml:"jsonData"`
		}
	}](t, filepath.Join(provisioning, "datasources", "prometheus.yaml")).Datasources
	if len(sources) != 1 || sources[0].Type != "prometheus" || sources[0].URL != "http://prometheus:9090" {
		t.Errorf("want the Prometheus of compose.yaml, got %+v", sources)
	}
	want := load[prometheus](t, "prometheus.yml").Global.ScrapeInterval
	if got := sources[0].JSONData.TimeInterval; got != want {
		t.Errorf("want the scrape interval, %s, as timeInterval, got %s", want, got)
	}
	providers := load[struct {
		Providers []struct{ Options struct{ Path string } }
	}](t, filepath.Join(provisioning, "dashboards", "replayd.yaml")).Providers
	if len(providers) != 1 {
		t.Fatalf("want one provider, got %+v", providers)
	}
	boards, err := filepath.Glob(filepath.Join(inside(s, providers[0].Options.Path), "*.json"))
	if err != nil || len(boards) == 0 {
		t.Errorf("want dashboards at %s, got %v, %v", providers[0].Options.Path, boards, err)
	}
	home := inside(s, s.Environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
	if !slices.Contains(boards, filepath.Clean(home)) {
		t.Errorf("want a dashboard to begin with, got %q of %v", home, boards)
	}
}

// Alertmanager's routes and inhibitions name alerts and severities that there are.
func TestAlertmanager(t *testing.T) {
	names, severities := map[string]bool{}, map[string]bool{}
	paths, err := outside.RuleFiles("../alerts")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		groups, err := outside.RuleGroups(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			for _, r := range g.Rules {
				if r.Alert != "" {
					names[r.Alert], severities[r.Labels["severity"]] = true, true
				}
			}
		}
	}
	a := load[struct {
		Route struct {
			Routes []struct{ Matchers []string }
		}
		InhibitRules []struct {
			Source []string `yaml:"source_matchers"`
			Target []string `yaml:"target_matchers"`
			Equal  []string
		} `yaml:"inhibit_rules"`
	}](t, "alertmanager.yml")
	routed := map[string]bool{"info": true} // what no route takes
	for _, r := range a.Route.Routes {
		for _, m := range r.Matchers {
			routed[strings.TrimPrefix(m, "severity = ")] = true
		}
	}
	if diff := cmp.Diff(severities, routed); diff != "" {
		t.Errorf("want a route for each severity (-alerts +routes):\n%s", diff)
	}
	word := regexp.MustCompile(`Replayd\w+`)
	for _, r := range a.InhibitRules {
		found := word.FindAllString(strings.Join(append(r.Source, r.Target...), " "), -1)
		if len(found) < 2 || !slices.Contains(r.Equal, "target") {
			t.Errorf("want alerts that are inhibited by others of the same target, got %+v", r)
		}
		for _, name := range found {
			if !names[name] {
				t.Errorf("there is no alert %s", name)
			}
		}
		for _, m := range append(r.Source, r.Target...) {
			limit, named := strings.CutPrefix(m, "limit = ")
			known := false
			for l := range limits.NumLimits {
				known = known || l.String() == limit
			}
			if named && !known {
				t.Errorf("want a limit of a guard, got %s", m)
			}
		}
	}
}
