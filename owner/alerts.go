package owner

import (
	"fmt"
	"maps"
	"strings"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// ruleFile has the keys of a file of rules that owner reads.
type ruleFile struct {
	Groups []struct {
		Rules []struct {
			Record, Alert, Expr string
			Annotations         yaml.Node
		}
	}
}

// testFile has the keys of a file of promtool's tests that owner reads.
type testFile struct {
	Tests []struct {
		Alerts []struct {
			Alertname string
			Expected  []struct {
				Labels      map[string]string `yaml:"exp_labels"`
				Annotations yaml.Node         `yaml:"exp_annotations"`
			} `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	}
}

// recorded returns the instances of all rules in the given files.
func recorded(texts ...string) (instances, error) {
	all := instances{promQL: parser.NewParser(parser.Options{}), recorded: map[string][]string{}, found: map[string]bool{}}
	for _, text := range texts {
		var file ruleFile
		if err := yaml.Unmarshal([]byte(text), &file); err != nil {
			return all, err
		}
		for _, g := range file.Groups {
			for _, r := range g.Rules {
				if r.Record != "" {
					all.recorded[r.Record] = append(all.recorded[r.Record], r.Expr)
				}
			}
		}
	}
	return all, nil
}

// link returns the runbook_url of an alert: the owner's page, else that of the replayd whose address is the label instance, else none.
func (o Owner) link(alert, instance string) string {
	section := "#" + strings.ToLower(alert)
	switch base := o.Runbook(); {
	case base != "":
		return base + section
	case instance != "":
		return "http://" + instance + "/runbook" + section
	}
	return ""
}

// linkRules writes the links of the alerts in a file of rules.
func (o Owner) linkRules(text string, all instances) (string, error) {
	var file ruleFile
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return "", err
	}
	links := annotations{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" {
				continue
			}
			keeps, err := all.keeps(r.Expr)
			if err != nil {
				return "", fmt.Errorf("%s: %w", r.Alert, err)
			}
			instance := ""
			if keeps {
				instance = "{{ $labels.instance }}"
			}
			if err := links.add(r.Annotations, r.Alert, o.link(r.Alert, instance)); err != nil {
				return "", err
			}
		}
	}
	return links.write(text), nil
}

// linkTests writes the links that promtool's tests expect of alerts: with the instance that they expect as a label.
func (o Owner) linkTests(text string) (string, error) {
	var file testFile
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return "", err
	}
	links := annotations{}
	for _, t := range file.Tests {
		for _, a := range t.Alerts {
			for _, e := range a.Expected {
				if err := links.add(e.Annotations, a.Alertname, o.link(a.Alertname, e.Labels["instance"])); err != nil {
					return "", err
				}
			}
		}
	}
	return links.write(text), nil
}

// annotations are the lines of a file that change: "" is a line that is removed, another text stands before the line.
type annotations map[int]string

// add puts the link before the annotation dashboard, which every alert has.
func (a annotations) add(of yaml.Node, alert, link string) error {
	lines := map[string]int{}
	for i := 0; i+1 < len(of.Content); i += 2 {
		lines[of.Content[i].Value] = of.Content[i].Line
	}
	if of.Style == yaml.FlowStyle || lines["dashboard"] == 0 {
		return fmt.Errorf("%s: want annotations in lines of their own, with a dashboard, got line %d", alert, of.Line)
	}
	added := annotations{}
	if at := lines["runbook_url"]; at > 0 {
		added[at] = ""
	}
	if link != "" {
		added[lines["dashboard"]] = "runbook_url: " + link
	}
	maps.Copy(a, added)
	return nil
}

func (a annotations) write(text string) string {
	var out strings.Builder
	n := 0
	for line := range strings.Lines(text) {
		n++
		add, changed := a[n]
		if changed && add == "" {
			continue
		}
		if changed {
			out.WriteString(line[:len(line)-len(strings.TrimLeft(line, " "))] + add + "\n")
		}
		out.WriteString(line)
	}
	return out.String()
}
