//go:build real

package ledger_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// window is the window of the recording rules.
const window = 5 * time.Minute

// rules evaluates the recording rules over a window that holds the whole run: requests a second, and the share that was
// not good. They are evaluated at the time of a scrape: then rate() extrapolates nothing.
func (c *run) rules(t *testing.T, p outside.Prometheus, at time.Time, want account) {
	t.Helper()
	// Before the model is known, there is another series.
	first := `max(min_over_time(replayd_requests_expected_total{namespace="` + c.name + `"}[5m]))`
	if least := p.Number(t, first, at); least > 0 {
		t.Logf("rules: not measured: the first scrape came late, and saw %v expected requests", least)
		return
	}
	ask := func(rule string, value float64) {
		t.Helper()
		result, err := p.Query(t.Context(), expression(t, rule), at)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range result {
			if s.Metric["namespace"] != c.name {
				continue
			}
			if got := s.Value.Number(); math.Abs(got-value) > 0.01*math.Abs(value)+1e-12 {
				t.Errorf("%s: want %v, got %v", rule, value, got)
			}
			return
		}
		t.Errorf("%s: want %v, got no series", rule, value)
	}
	ask("workload:replayd_requests_expected:rate5m", want[expected]/window.Seconds())
	ask("workload:replayd_goodput_requests:rate5m", want[good]/window.Seconds())
	ask("workload:replayd_requests_eligible:rate5m", want[eligible]/window.Seconds())
	ask("workload:replayd_bad_requests:ratio_rate5m", 1-want[service])
}

// expression returns the expression of a recording rule, with the names of other rules replaced by their expressions.
func expression(t *testing.T, rule string) string {
	t.Helper()
	groups, err := outside.RuleGroups("../../alerts/workloads.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, g := range groups {
		for _, r := range g.Rules {
			if r.Record == rule {
				text = r.Expr
			}
		}
	}
	if text == "" {
		t.Fatalf("want a rule %s, there is none", rule)
	}
	for _, g := range groups {
		for _, r := range g.Rules {
			if r.Record != "" && r.Record != rule && strings.Contains(text, r.Record) {
				text = strings.ReplaceAll(text, r.Record, "("+expression(t, r.Record)+")")
			}
		}
	}
	return text
}
