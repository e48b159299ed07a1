package alerts_test

import (
	"strings"
	"testing"
)

// An alert links to the runbook of the replayd that it is about. Promtool's tests say which alerts have the label
// instance, as Prometheus computes them; the others have no link.
func TestEachAlertLinksToTheRunbook(t *testing.T) {
	written := map[string]string{}
	for _, r := range rules(t, true) {
		written[r.Alert] = r.Annotations["runbook_url"]
	}
	links := 0
	for _, test := range promtoolTests(t) {
		for _, a := range test.Alerts {
			for _, e := range a.Expected {
				want, filled := "", ""
				if instance := e.Labels["instance"]; instance != "" {
					section := "/runbook#" + strings.ToLower(a.Alertname)
					want, filled = "http://{{ $labels.instance }}"+section, "http://"+instance+section
					links++
				}
				if got := written[a.Alertname]; got != want {
					t.Errorf("%s: want the link %q, got %q", a.Alertname, want, got)
				}
				if got := e.Annotations["runbook_url"]; got != filled {
					t.Errorf("%s: want a test that expects the link %q, got %q", a.Alertname, filled, got)
				}
			}
		}
	}
	if links < 7 {
		t.Errorf("want 7 links or more, got %d", links)
	}
}
