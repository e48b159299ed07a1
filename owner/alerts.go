package owner

import (
	"path"
	"regexp"
	"strings"
)

var (
	ofAlert     = regexp.MustCompile(`^ +- \{?alert(?:name)?: (\w+)`)
	ofLabels    = regexp.MustCompile(`^ +(?:- )?exp_labels: .*`)
	ofInstance  = regexp.MustCompile(`[ {]instance: "([^"]+)"`)
	ofLink      = regexp.MustCompile(`^ +runbook_url: `)
	ofDashboard = regexp.MustCompile(`^( +)dashboard: `)
)

// linkAlerts writes the links into rules and promtool's tests. Whether an alert has the label instance, which says
// which replayd it is about, is what the tests say that Prometheus gives it.
func (o Owner) linkAlerts(texts map[string]string) {
	ofProcess := map[string]bool{}
	for p, text := range texts {
		if path.Dir(p) == "alerts/tests" {
			texts[p] = linked(text, func(alert, instance string) string {
				ofProcess[alert] = ofProcess[alert] || instance != ""
				return o.link(alert, instance)
			})
		}
	}
	for p, text := range texts {
		if path.Dir(p) == "alerts" && path.Ext(p) == ".yaml" {
			texts[p] = linked(text, func(alert, _ string) string {
				if ofProcess[alert] {
					return o.link(alert, "{{ $labels.instance }}")
				}
				return o.link(alert, "")
			})
		}
	}
}

// linked returns a file of rules or of promtool's tests with the link of each alert, if it has one, before its
// annotation dashboard, which every alert has. A test says with which instance it expects the alert.
func linked(text string, link func(alert, instance string) string) string {
	var out strings.Builder
	alert, instance := "", ""
	for line := range strings.Lines(text) {
		if m := ofAlert.FindStringSubmatch(line); m != nil {
			alert, instance = m[1], ""
		}
		if ofLabels.MatchString(line) {
			instance = ""
			if m := ofInstance.FindStringSubmatch(line); m != nil {
				instance = m[1]
			}
		}
		if ofLink.MatchString(line) {
			continue
		}
		if m := ofDashboard.FindStringSubmatch(line); m != nil {
			if l := link(alert, instance); l != "" {
				out.WriteString(m[1] + "runbook_url: " + l + "\n")
			}
		}
		out.WriteString(line)
	}
	return out.String()
}

// link returns the runbook_url of an alert: the owner's page, else that of the replayd at the instance, else none.
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
