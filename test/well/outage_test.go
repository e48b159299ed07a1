//go:build prometheus

package well_test

import (
	"slices"
	"testing"
	"time"

	"replayd/test/outside"
)

// In a day of outages, each has its page within ten minutes, and no other page comes while that one does not mute it: above all none after
// the engine is back.
func TestNoPageAfterAnOutage(t *testing.T) {
	promtool := outside.PrometheusTool(t, "promtool")
	rules, err := outside.RuleFiles("../../alerts")
	if err != nil {
		t.Fatal(err)
	}
	outages := []outage{
		{20 * time.Minute, 10 * time.Minute}, // of a new workload
		{3 * time.Hour, 5 * time.Minute},
		{7 * time.Hour, 30 * time.Minute},
		{11 * time.Hour, time.Hour},
		{16 * time.Hour, 3 * time.Hour},
	}
	r, _ := play(t, chart(t), scrapeEvery, of(ttfts[0], itls[0]), 24*time.Hour, outages...)
	all := r.Alerts(t, promtool, rules...)
	mutes := func(f outside.Firing) bool { // as deploy/alertmanager.yml has it
		return f.Alert == "ReplaydTargetUnreachable" || f.Alert == "ReplaydTargetDown"
	}
	for _, o := range outages {
		if !slices.ContainsFunc(all, func(f outside.Firing) bool { return mutes(f) && f.First > o.at && f.First <= o.at+10*time.Minute }) {
			t.Errorf("want a page within 10 minutes of the outage after %v", o.at)
		}
	}
	paged := 0
	for _, f := range all {
		if f.Severity != "critical" || mutes(f) {
			continue
		}
		paged++
		for at := f.First; at < f.First+f.For; at += time.Minute {
			if !slices.ContainsFunc(all, func(by outside.Firing) bool { return mutes(by) && by.First <= at && at < by.First+by.For }) {
				t.Errorf("%v: nothing mutes it after %v", f, at)
				break
			}
		}
	}
	if paged == 0 {
		t.Error("want a burn rate too high in the long outages")
	}
	t.Log(all)
}
