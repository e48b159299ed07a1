//go:build prometheus

package well_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"replayd/internal/config"
	"replayd/internal/sim"

	"replayd/test/outside"
)

// A fault of the day is a spell in which something is wrong, followed by a healthy spell until the next fault.
type fault struct {
	name      string
	ill, well spell
	alerts    []string // the alerts that fire, without severity info: names, with the workload if the alert has one
}

const (
	sampled = 15 * time.Second
	soon    = 2 * time.Minute  // to detect a dead target, and to play again after a recovery
	over    = 10 * time.Minute // from a recovery until no alert fires
)

// Two workloads on one target survive all faults within six hours. Each fault raises its alerts, and they resolve.
// WELL_ROUNDS is how often the six hours are played: 4 are a day.
func TestDay(t *testing.T) {
	promtool := outside.PrometheusTool(t, "promtool")
	rules, err := outside.RuleFiles("../../alerts")
	if err != nil {
		t.Fatal(err)
	}
	d := &day{t: t, path: filepath.Join(t.TempDir(), "a.jsonl"), rows: 200, expected: map[string]float64{}}
	d.write(d.trace())
	steady := outside.Write(t, t.TempDir(), "b.jsonl", spaced(800))
	var faults []fault
	var spells []spell
	for range outside.Knob(t, "WELL_ROUNDS", 1, strconv.Atoi) {
		quiet := fault{name: "nothing yet", ill: spell{engine: lists()}, well: spell{engine: lists(), long: 25 * time.Minute}}
		for _, f := range append([]fault{quiet}, d.faults()...) {
			f.ill.sees, f.well.sees = d.looks, d.looksWell
			faults = append(faults, f)
			spells = append(spells, f.ill, f.well)
		}
	}
	began := time.Now()
	r, page := play(t, d.config(steady), sampled, spells...)
	d.looks(r.Long()+sampled, page) // the last hour too
	t.Logf("%v requests, %v of them ok, %v dropped; played in %v", page.Sum("replayd_requests_expected_total"),
		page.Sum("replayd_requests_total", "ok"), page.Sum("replayd_requests_dropped_total"), time.Since(began).Round(time.Second))
	began = time.Now()
	firings := slices.DeleteFunc(r.Alerts(t, promtool, rules...), func(f outside.Firing) bool { return f.Severity == "info" })
	t.Logf("promtool took %v", time.Since(began).Round(time.Second))
	begins := time.Duration(0)
	for _, f := range faults {
		ends := begins + f.ill.long
		next := ends + f.well.long
		f.judge(t, begins, ends, slices.DeleteFunc(slices.Clone(firings), func(f outside.Firing) bool { return f.First < begins || f.First >= next }))
		begins = next
	}
}

// judge compares the alerts that began between a fault and the next one with the expected ones.
func (f fault) judge(t *testing.T, begins, ends time.Duration, firings []outside.Firing) {
	t.Helper()
	got := map[string]time.Duration{}
	for _, one := range firings {
		name := strings.TrimSpace(one.Alert + " " + one.Workload)
		last := one.First + one.For
		t.Logf("%s: %s fires %v after it began, and is clear %v after it ended", f.name, name, one.First-begins, last-ends)
		if _, twice := got[name]; twice {
			t.Errorf("%s: %s fires twice", f.name, name)
		}
		got[name] = one.First - begins
		if one.First > ends {
			t.Errorf("%s: %s begins to fire %v after the recovery, want none", f.name, name, one.First-ends)
		}
		if last > ends+over {
			t.Errorf("%s: %s is clear %v after the recovery, want %v", f.name, name, last-ends, over)
		}
	}
	names := make([]string, 0, len(got))
	for name := range got {
		names = append(names, name)
	}
	slices.Sort(names)
	if !slices.Equal(names, f.alerts) {
		t.Errorf("%s: want the alerts %q, got %q", f.name, f.alerts, names)
	}
	if at, fires := got["ReplaydTargetUnreachable"]; fires && at > soon {
		t.Errorf("%s: ReplaydTargetUnreachable fires after %v, want %v", f.name, at, soon)
	}
}

// A day is the state of the test: two workloads and their faults.
type day struct {
	t    *testing.T
	path string // of the trace that changes
	rows int    // in it

	hour     int                // the hour that was checked last
	expected map[string]float64 // expected requests at its start, by workload
	wellFor  int                // scrapes since the last fault
}

// config returns a configuration with two workloads. Neither they nor the target name a model. An outage takes less
// than a sixth of an hour, so with this objective it does not exhaust the budget of hours.
func (d *day) config(steady string) config.Config {
	d.t.Helper()
	return load(d.t, outside.Write(d.t, d.t.TempDir(), "replayd.yaml", fmt.Sprintf(`
targets:
  - {name: engine, url: "http://engine:8000"}
workloads:
  - {name: a, target: engine, trace: {path: %s}, repeat: {every: 10m}, slo: {ttft: 1s, objective: 0.9}}
  - {name: b, target: engine, trace: {path: %s}, repeat: {every: 30m}, slo: {ttft: 1s, objective: 0.9}}
`, d.path, steady)), "")
}

// faults returns the faults of six hours, except for their first 25 minutes.
func (d *day) faults() []fault {
	one, two, fails := lists(), lists("lora"), lists()
	fails.Faults.Error500 = 1
	return []fault{{
		name: "lists a second model",
		ill:  spell{engine: two, long: 20 * time.Minute},
		well: spell{engine: one, long: 40 * time.Minute},
	}, {
		name:   "dead",
		ill:    spell{engine: one, long: 8 * time.Minute, dead: true},
		well:   spell{engine: one, long: 52 * time.Minute},
		alerts: []string{"ReplaydTargetDown a", "ReplaydTargetDown b", "ReplaydTargetUnreachable"},
	}, {
		name:   "dead, and back with a second model",
		ill:    spell{engine: two, long: 5 * time.Minute, dead: true},
		well:   spell{engine: two, long: 55 * time.Minute},
		alerts: []string{"ReplaydTargetUnreachable"}, // ReplaydTargetDown takes 6 or 7 minutes
	}, {
		name: "a longer trace",
		ill:  spell{engine: one, begins: func() { d.rows += 5; d.write(d.trace()) }},
		well: spell{engine: one, long: 64 * time.Minute},
	}, {
		name:   "a trace that is cut", // a minute before a loop
		ill:    spell{engine: one, long: 5 * time.Minute, begins: func() { d.write(d.trace()[:5000]) }},
		well:   spell{engine: one, long: 51 * time.Minute, begins: func() { d.write(d.trace()) }},
		alerts: []string{"ReplaydWorkloadStopped a"},
	}, {
		name:   "answers 500",
		ill:    spell{engine: fails, long: 8 * time.Minute},
		well:   spell{engine: one, long: 27 * time.Minute},
		alerts: []string{"ReplaydTargetDown a", "ReplaydTargetDown b"},
	}}
}

func lists(adapters ...string) sim.Options {
	o := of(100*time.Millisecond, 20*time.Millisecond)
	o.Adapters, o.ChunkTokens = adapters, 8
	return o
}

// trace returns a trace with the same beginning and more rows.
func (d *day) trace() string { return spaced(d.rows) }

// spaced returns rows that are due every 2 s.
func spaced(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"timestamp": %d, "input_length": %d, "output_length": 16}`+"\n", i*2000, 20+i)
	}
	return b.String()
}

// write overwrites the trace in place: the same file with other content.
func (d *day) write(text string) {
	d.t.Helper()
	if err := os.WriteFile(d.path, []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

// looks checks that each page balances, and that each workload has requests in each hour.
func (d *day) looks(at time.Duration, p outside.Page) {
	d.t.Helper()
	d.wellFor = 0
	for _, fault := range p.Balance() {
		d.t.Errorf("%v: %s", at, fault)
	}
	hour := int(at / time.Hour)
	if hour == d.hour {
		return
	}
	d.hour = hour
	for _, name := range []string{"a", "b"} {
		now := p.Sum("replayd_requests_expected_total", name)
		if now <= d.expected[name] {
			d.t.Errorf("%v: workload %s had no request in an hour, want its loops to go on", at, name)
		}
		d.expected[name] = now
	}
}

// looksWell also checks that both workloads are up, some time after the last fault.
func (d *day) looksWell(at time.Duration, p outside.Page) {
	d.t.Helper()
	scrapes := d.wellFor + 1
	d.looks(at, p)
	d.wellFor = scrapes
	if up := p.Sum("replayd_workload_up"); up != 2 && time.Duration(scrapes)*sampled > soon {
		d.t.Errorf("%v: %v of 2 workloads are up", at, up)
	}
}
