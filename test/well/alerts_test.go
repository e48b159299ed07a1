//go:build prometheus

package well_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/sim"

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
				r, page := play(t, chart(t), scrapeEvery, spell{engine: of(ttft, itl), long: long})
				for _, f := range r.Alerts(t, promtool, rules...) {
					if f.Severity != "info" {
						t.Errorf("%v", f)
					}
				}
				t.Logf("%v: %v requests, %v dropped, most in flight %v", long, page.Sum("replayd_requests_expected_total"), page.Sum("replayd_requests_dropped_total"), r.Max("replayd_requests_in_flight"))
			})
		}
	}
}

// With the same defaults, alerts fire for an engine that becomes unhealthy after some hours.
func TestAlertsForAnIllEngine(t *testing.T) {
	promtool := outside.PrometheusTool(t, "promtool")
	rules, err := outside.RuleFiles("../../alerts")
	if err != nil {
		t.Fatal(err)
	}
	const well = 150 * time.Minute // the past that a regression is compared with, which repeats every hour
	ill := func(change func(o *sim.Options)) sim.Options {
		o := of(200*time.Millisecond, 20*time.Millisecond)
		change(&o)
		return o
	}
	for name, c := range map[string]struct {
		engine sim.Options
		want   []string
	}{
		"all fail, with a guard": {ill(func(o *sim.Options) { o.Faults.Error500 = 1 }), []string{"ReplaydGuardErrorRatio"}},
		"too slow for the lanes": {ill(func(o *sim.Options) { o.ITL = time.Second }), []string{"ReplaydOverload", "ReplaydSLOBurnFast", "ReplaydTPOTRegression"}},
		"too slow a first token": {ill(func(o *sim.Options) { o.TTFT = 3 * time.Second }), []string{"ReplaydSLOBurnFast", "ReplaydTTFTRegression"}},
		"too slow a token":       {ill(func(o *sim.Options) { o.ITL = 110 * time.Millisecond }), []string{"ReplaydSLOBurnFast", "ReplaydTPOTRegression"}},
		"slower than before":     {ill(func(o *sim.Options) { o.TTFT, o.ITL = 500*time.Millisecond, 50*time.Millisecond }), []string{"ReplaydTPOTRegression", "ReplaydTTFTRegression"}},
		"a tenth fails":          {ill(func(o *sim.Options) { o.Faults.Error500 = 0.1 }), []string{"ReplaydErrorRatio"}},
		"all fail":               {ill(func(o *sim.Options) { o.Faults.Error500 = 1 }), []string{"ReplaydErrorRatio", "ReplaydSLOBurnFast", "ReplaydTargetDown"}},
		"all hang":               {ill(func(o *sim.Options) { o.Faults.Stalled = 1 }), []string{"ReplaydErrorRatio", "ReplaydSLOBurnFast", "ReplaydTargetDown"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conf := chart(t)
			if strings.HasSuffix(name, "guard") { // the requests that the guard drops are not eligible
				conf.Workloads[0].Guard.ErrorRatio = 0.2
			}
			r, _ := play(t, conf, scrapeEvery, spell{engine: of(200*time.Millisecond, 20*time.Millisecond), long: well}, spell{engine: c.engine, long: time.Hour})
			got := map[string]bool{}
			for _, f := range r.Alerts(t, promtool, rules...) {
				t.Log(f)
				if f.First < well {
					t.Errorf("%v: want nothing while the engine was well", f)
				}
				got[f.Alert] = true
			}
			for _, alert := range c.want {
				if !got[alert] {
					t.Errorf("want %s, got %v", alert, got)
				}
			}
		})
	}
}
