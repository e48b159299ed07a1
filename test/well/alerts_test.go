//go:build prometheus

package well_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"replayd/test/outside"
)

const scrapeEvery = 30 * time.Second

// With the chart's defaults no alert fires for a healthy engine, whatever its speed. WELL_FOR is the length of the
// test, and WELL_GRID=all tests every speed.
func TestNoAlertForAWellEngine(t *testing.T) {
	promtool := outside.PrometheusTool(t, "promtool")
	rules, err := outside.RuleFiles("../../alerts")
	if err != nil {
		t.Fatal(err)
	}
	long := outside.Knob(t, "WELL_FOR", 150*time.Minute, time.ParseDuration)
	all := outside.Knob(t, "WELL_GRID", false, func(s string) (bool, error) { return s == "all", nil })
	for _, ttft := range ttfts {
		for _, itl := range itls {
			edge := ttft == slices.Min(ttfts) && itl == slices.Min(itls) || ttft == slices.Max(ttfts) && itl == slices.Max(itls)
			if !all && !edge {
				continue
			}
			t.Run(fmt.Sprintf("ttft %v itl %v", ttft, itl), func(t *testing.T) {
				t.Parallel()
				r, _ := play(t, chart(t), scrapeEvery, of(ttft, itl), long)
				for _, f := range r.Alerts(t, promtool, rules...) {
					if f.Severity != "info" {
						t.Errorf("%v", f)
					}
				}
			})
		}
	}
}
