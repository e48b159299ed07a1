package intervals_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

const usual = 15 * time.Second // the interval that the others are held against

// scrapers are those that a test is played with. One each 5 s costs most, so it plays the short tests.
func (one trial) scrapers() (all []scraper) {
	if one.until <= 6*time.Hour {
		all = append(all, scraper{every: 5 * time.Second})
	}
	return append(all, scraper{every: 2 * usual}, scraper{every: 4 * usual},
		scraper{usual, true}, scraper{2 * usual, true}, scraper{4 * usual, true})
}

func TestEpisodesAreThoseOfEachInterval(t *testing.T) {
	all := trials(t)
	for _, m := range missed {
		if !slices.ContainsFunc(all, func(one trial) bool { return one.name == m.test }) {
			t.Errorf("%s: is listed, and is no test", m.test)
		}
	}
	for _, one := range all {
		t.Run(one.name, func(t *testing.T) {
			t.Parallel()
			want := one.play(t, scraper{every: min(one.own, usual)})
			episodes := 0
			for _, of := range want {
				episodes += len(of)
			}
			t.Logf("%d episodes", episodes)
			for _, by := range one.scrapers() {
				found := one.differences(want, one.play(t, by), by)
				for _, m := range missed {
					if m.test != one.name || !slices.Contains(m.by, by.String()) {
						continue
					}
					rest := slices.DeleteFunc(slices.Clone(found), m.is)
					if len(rest) == len(found) {
						t.Errorf("%s: %s is listed, and is as at the usual interval", by, m.alert)
					}
					found = rest
				}
				for _, difference := range found {
					t.Errorf("%s: %s", by, difference)
				}
			}
		})
	}
}

// differences names the alerts that do not fire as often as wanted, or begin or end more than two scrapes and two
// evaluations apart. What begins that shortly before the end of the test is not judged: there it may not begin.
func (one trial) differences(want, got map[string][]episode, by scraper) (all []string) {
	most := 2*by.every + 2*evaluation
	near := func(a, b time.Duration) bool { return (a - b).Abs() <= most }
	judged := func(of []episode) []episode {
		return slices.DeleteFunc(slices.Clone(of), func(e episode) bool { return e.from > one.until-most })
	}
	alerts := maps.Clone(want)
	maps.Copy(alerts, got)
	for _, alert := range slices.Sorted(maps.Keys(alerts)) {
		alike := func(a, b episode) bool { return near(a.from, b.from) && near(a.to, b.to) }
		if !slices.EqualFunc(judged(want[alert]), judged(got[alert]), alike) {
			all = append(all, fmt.Sprintf("%s: want %v, got %v", alert, want[alert], got[alert]))
		}
	}
	return all
}

// A miss is an episode of a test that some scrapers see otherwise, for a reason that no rule can mend.
type miss struct {
	test  string
	alert string   // a part of its name and labels, in order
	by    []string // each of them sees it otherwise
}

func (m miss) is(difference string) bool { return strings.Contains(difference, m.alert) }

var missed = []miss{
	// Each number of the test stands for a minute, and some for no other scrape than a missing one.
	{"gpu: ReplaydGPUXid, of every number", "ReplaydGPUXid", []string{third15, third30, third60}},
	// What goes to and fro within two or three minutes, as regularly as scrapes are missing.
	{"gpu: ReplaydGPUThrottled, by heat", `gpu="1"`, []string{third60}},
	{"measurement: ReplaydGuardOpen", `workload="w"`, []string{third30, third60}},
	// Half a minute, at a scrape that is missing; at the one before it counts until the next, so for as long as it must.
	{"measurement: ReplaydWorkloadStuck", "ReplaydWorkloadStuck", []string{third60}},
	{"service: ReplaydTargetUnreachable", `target="blip"`, []string{third60}},
	// Within a minute of as long as it must last, and a scrape is missing where it begins or ends.
	{"measurement_engines: ReplaydEngineRestarting", "ReplaydEngineAddressShared", []string{third15, third60}},
	{allOfReplayd, `instance="a:9797"`, []string{third15, third60}},
	{allOfReplayd, `instance="moved:9797"`, []string{third15, third60}},
	{"service: ReplaydTargetDown", `workload="long answers"`, []string{third60}},
	// It ends 45 s before it fires at 15 s. Of a window of 5 minutes only 4 are between scrapes, so it fires sooner.
	{"service_lag: ReplaydTargetDown", `workload="short"`, []string{"1m0s", third60}},
	// An outage of just the 5 minutes that the windows have: at 15 s it is a minute too short to fire.
	{"service_recovery: recovery", ` of 5m"`, []string{"30s", "1m0s", third30, third60}},
	// The first scrape is missing, and with it a part of the first restart.
	{"measurement: counters of series that are new", `target="u"`, []string{third30}},
}

const (
	third15 = "15s without each third"
	third30 = "30s without each third"
	third60 = "1m0s without each third"

	allOfReplayd = "measurement_processes: ReplaydDown, of replayd's alone, and for as long as it is a target"
)
