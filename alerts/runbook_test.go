package alerts_test

import (
	"strings"
	"testing"

	"replayd/owner"
)

// With an owner each alert links to the owner's page. Without one an alert links to the replayd that it is about: promtool's tests say
// which alerts have the label instance, as Prometheus computes them.
func TestEachAlertLinksToTheRunbook(t *testing.T) {
	o, err := owner.Read("..")
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]string{}
	for _, r := range rules(t, true) {
		written[r.Alert] = r.Annotations["runbook_url"]
	}
	links := 0
	for _, test := range promtoolTests(t) {
		for _, a := range test.Alerts {
			for _, e := range a.Expected {
				section, instance := "#"+strings.ToLower(a.Alertname), e.Labels["instance"]
				want, filled := "", ""
				switch base := o.Runbook(); {
				case base != "":
					want, filled = base+section, base+section
				case instance != "":
					want, filled = "http://{{ $labels.instance }}/runbook"+section, "http://"+instance+"/runbook"+section
				}
				if got := written[a.Alertname]; got != want {
					t.Errorf("%s: want the link %q, got %q", a.Alertname, want, got)
				}
				if got := e.Annotations["runbook_url"]; got != filled {
					t.Errorf("%s: want a test that expects the link %q, got %q", a.Alertname, filled, got)
				}
				if want != "" {
					links++
				}
			}
		}
	}
	if links < 7 {
		t.Errorf("want 7 links or more, got %d", links)
	}
}
