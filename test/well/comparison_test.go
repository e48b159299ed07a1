//go:build prometheus

package well_test

import (
	"slices"
	"testing"
	"time"

	"replayd/internal/canary"
	"replayd/internal/config"
	"replayd/internal/sim"

	"replayd/test/outside"
)

// compared is the chart's configuration with a comparison of each mode. One engine serves both sides, under two names.
func compared(t *testing.T) config.Config {
	t.Helper()
	c := chart(t)
	candidate := c.Targets[0]
	candidate.Name, candidate.URL = "candidate", "http://candidate:8000"
	c.Targets = append(c.Targets, candidate)
	other := c.Workloads[0]
	other.Name = "other"
	c.Workloads = append(c.Workloads, other)
	for i, mode := range []canary.Mode{canary.ModeVerdict, canary.ModeWatch} {
		one := config.DefaultComparison()
		one.Name, one.Workload, one.Candidate, one.Mode = string(mode), c.Workloads[i].Name, candidate.Name, mode
		c.Comparisons = append(c.Comparisons, one)
	}
	return c
}

// Equal servers raise no alert, well or down. Where requests wait at every instant there is no evidence, and an alert tells.
func TestAlertsOfComparisons(t *testing.T) {
	promtool := outside.PrometheusTool(t, "promtool")
	rules, err := outside.RuleFiles("../../alerts")
	if err != nil {
		t.Fatal(err)
	}
	well := of(200*time.Millisecond, 20*time.Millisecond)
	well.Jitter = 0.1
	slow := of(20*time.Second, 20*time.Millisecond)
	const before = 20 * time.Minute
	about := []string{"ReplaydCandidateWorse", "ReplaydChanged", "ReplaydComparisonBlind", "ReplaydStateErrors"}
	for name, c := range map[string]struct {
		then   sim.Options
		dead   bool
		blind  bool
		blocks float64 // least
	}{
		"well":     {well, false, false, 70},
		"down":     {well, true, false, 60},
		"too slow": {slow, false, true, 30},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, page := play(t, compared(t), scrapeEvery, spell{engine: well, long: before}, spell{engine: c.then, dead: c.dead, long: 25 * time.Minute})
			blind := 0
			for _, f := range r.Alerts(t, promtool, rules...) {
				switch {
				case c.blind && f.Alert == "ReplaydComparisonBlind" && f.First > before+10*time.Minute:
					blind++
				case slices.Contains(about, f.Alert), name == "well" && f.Severity != "info":
					t.Errorf("%v", f)
				}
			}
			if want := map[bool]int{true: 2}[c.blind]; blind != want {
				t.Errorf("%d comparisons are blind, want %d", blind, want)
			}
			if got := page.Sum("replayd_comparison_blocks_total", "bad"); got < c.blocks {
				t.Errorf("%v blocks, want %v", got, c.blocks)
			}
			t.Logf("%v pairs, %v blocks, %v passes, %v changes", page.Sum("replayd_comparison_pairs_total"), page.Sum("replayd_comparison_blocks_total", "bad"),
				page.Sum("replayd_comparison_verdict", "pass"), page.Sum("replayd_comparison_changes_total"))
		})
	}
}
