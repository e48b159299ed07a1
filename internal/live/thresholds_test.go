package live

import (
	"fmt"
	"strings"
	"testing"

	"replayd/test/outside"
)

// The verdict and the alerts have the same thresholds: otherwise /live says that all is well while an alert fires.
func TestThresholdsAreThoseOfTheAlerts(t *testing.T) {
	paths, err := outside.RuleFiles("../../alerts")
	if err != nil {
		t.Fatal(err)
	}
	exprs := map[string]string{}
	for _, path := range paths {
		groups, err := outside.RuleGroups(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, g := range groups {
			for _, r := range g.Rules {
				exprs[r.Alert] += strings.Join(strings.Fields(r.Expr), " ") + "\n"
			}
		}
	}
	ends := strings.NewReplacer("\n", " ", ")", " ") // a number ends there: 0.01 is no beginning of 0.012
	const burn = "workload:replayd_bad_requests:ratio_rate5m > " +
		"clamp_max(%v * (1 - workload:replayd_slo_objective_ratio:max), %v)"
	for want, alerts := range map[string][]string{ // their condition
		fmt.Sprintf("min_over_time(workload:replayd_failed_requests:ratio_rate5m[10m]) > %v", lostBad): {"ReplaydErrorRatio"},
		fmt.Sprintf("/ (workload:replayd_requests_expected:rate5m > 0) > %v", droppedStrained): {
			"ReplaydOverload", "ReplaydMissed", "ReplaydInvalidRequests",
		},
		fmt.Sprintf(burn, missedBad, missedBadMost):                                                 {"ReplaydSLOBurnFast"},
		"workload:replayd_bad_requests:ratio_rate6h > 1 - workload:replayd_slo_objective_ratio:max": {"ReplaydSLOBurnSlow"},
	} {
		for _, alert := range alerts {
			if words := ends.Replace(want) + " "; !strings.Contains(ends.Replace(exprs[alert]), words) {
				t.Errorf("%s: want %s in it, got %s", alert, want, exprs[alert])
			}
		}
	}
}
