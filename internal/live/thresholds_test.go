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
	for i, limit := range thresholds {
		want := limit.promql
		if strings.Contains(want, "%v") {
			want = fmt.Sprintf(want, limit.value)
		}
		if limit.value <= 0 || (limit.alerts == nil) != (want == "") {
			t.Errorf("threshold %d: want a value, and alerts with their condition or neither, got %+v", i, limit)
		}
		for _, alert := range limit.alerts {
			if words := ends.Replace(want) + " "; !strings.Contains(ends.Replace(exprs[alert]), words) {
				t.Errorf("%s: want %s in it, got %s", alert, want, exprs[alert])
			}
		}
	}
}
