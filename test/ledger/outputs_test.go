//go:build real

package ledger_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// A ledger is the ledger in files and pages.
type ledger struct {
	Began    int64              `json:"began_ns"`
	Workload string             `json:"workload"`
	Expected float64            `json:"expected"`
	InFlight float64            `json:"in_flight"`
	Waiting  float64            `json:"waiting"`
	Outcomes map[string]float64 `json:"outcomes"`
	Dropped  map[string]float64 `json:"dropped"`
	Filtered float64            `json:"filtered"`
	Good     float64            `json:"good"`
	Eligible float64            `json:"eligible"`
	Unjudged float64            `json:"not_judged"`
	Sessions struct {
		Begun    float64            `json:"begun"`
		Outcomes map[string]float64 `json:"outcomes"`
		Good     float64            `json:"good"`
	} `json:"sessions"`
}

func (l ledger) account() account {
	a := account{
		expected: l.Expected, good: l.Good, eligible: l.Eligible, unjudged: l.Unjudged,
		"in flight": l.InFlight, "waiting": l.Waiting, "filtered": l.Filtered,
	}
	for outcome, n := range l.Outcomes {
		a[outcome] = n
	}
	for reason, n := range l.Dropped {
		a["dropped "+reason] = n
	}
	a[begun], a[goods] = l.Sessions.Begun, l.Sessions.Good
	for outcome, n := range l.Sessions.Outcomes {
		a["sessions "+outcome] = n
	}
	a.shares()
	return a
}

// shares computes both attainments for an output without its own. No attainment counts what is not judged.
func (a account) shares() {
	a[judged] = a[expected] - a[unjudged]
	if a[judged] > 0 {
		a[overall] = a[good] / a[judged]
	}
	if a[eligible] > 0 {
		a[service] = a[good] / a[eligible]
	}
}

// lastLedger returns the last ledger line of the records.
func lastLedger(t *testing.T, records string) account {
	t.Helper()
	var last ledger
	found := false
	for line := range strings.Lines(records) {
		var l struct{ Ledger *ledger }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("records: %v: %s", err, line)
		}
		if l.Ledger != nil {
			last, found = *l.Ledger, true
		}
	}
	if !found {
		t.Error("records: want a ledger at the end, got none")
	}
	return last.account()
}

// inJSON returns the ledger of a profile_export_aiperf.json.
func inJSON(t *testing.T, text string) account {
	t.Helper()
	var file struct{ Ledger ledger }
	if err := json.Unmarshal([]byte(text), &file); err != nil {
		t.Fatal(err)
	}
	return file.Ledger.account()
}

// reported returns the output of `replayd report --json -` for files, one account per run.
func reported(t *testing.T, args ...string) (all []account) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), binary, append([]string{"report", "--json", "-"}, args...)...).Output()
	if err != nil {
		t.Fatalf("report %v: %v", args, err)
	}
	var said struct {
		Runs []struct {
			Ledger            ledger
			Attainment        *float64
			ServiceAttainment *float64 `json:"service_attainment"`
		}
	}
	if err := json.Unmarshal(out, &said); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, r := range said.Runs {
		a := r.Ledger.account()
		delete(a, overall)
		delete(a, service)
		if r.Attainment != nil {
			a[overall] = *r.Attainment
		}
		if r.ServiceAttainment != nil {
			a[service] = *r.ServiceAttainment
		}
		all = append(all, a)
	}
	return all
}

// onPage returns the account of a workload on /metrics.
func onPage(p outside.Page, workload string) account {
	a := account{
		expected: p.Sum("replayd_requests_expected_total", workload), good: p.Sum("replayd_goodput_requests_total", workload),
		eligible: p.Sum("replayd_requests_eligible_total", workload),
		unjudged: p.Sum("replayd_requests_not_judged_total", workload),
		begun:    p.Sum("replayd_sessions_begun_total", workload), goods: p.Sum("replayd_sessions_good_total", workload),
		"in flight": p.Sum("replayd_requests_in_flight", workload), "waiting": p.Sum("replayd_requests_waiting", workload),
	}
	byLabel := func(family, label, prefix string) {
		for _, m := range p[family].GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			name := prefix + labels[label]
			if name == "dropped filtered" {
				name = "filtered"
			}
			if labels["workload"] == workload && m.GetCounter().GetValue() > 0 {
				a[name] += m.GetCounter().GetValue()
			}
		}
	}
	byLabel("replayd_requests_total", "outcome", "")
	byLabel("replayd_requests_dropped_total", "reason", "dropped ")
	byLabel("replayd_sessions_total", "outcome", "sessions ")
	a.shares()
	return a
}

// inPrometheus reads the raw counters of a namespace.
func inPrometheus(t *testing.T, p outside.Prometheus, run string, at time.Time) account {
	t.Helper()
	a := account{}
	one := func(name, series string) {
		result, err := p.Query(t.Context(), `sum({__name__="`+series+`",namespace="`+run+`"})`, at)
		if err != nil || len(result) != 1 {
			t.Fatalf("%s of %s: %v, %v", series, run, result, err)
		}
		a[name] = result[0].Value.Number()
	}
	one(expected, "replayd_requests_expected_total")
	one(good, "replayd_goodput_requests_total")
	one(eligible, "replayd_requests_eligible_total")
	one(unjudged, "replayd_requests_not_judged_total")
	if sessions, err := p.Query(t.Context(), `replayd_sessions_begun_total{namespace="`+run+`"}`, at); err == nil && len(sessions) > 0 {
		one(begun, "replayd_sessions_begun_total")
		one(goods, "replayd_sessions_good_total")
	}
	for _, c := range []struct{ label, series, prefix string }{
		{"outcome", "replayd_requests_total", ""}, {"reason", "replayd_requests_dropped_total", "dropped "}, {"outcome", "replayd_sessions_total", "sessions "},
	} {
		label := c.label
		result, err := p.Query(t.Context(), `sum by (`+label+`) ({__name__="`+c.series+`",namespace="`+run+`"}) > 0`, at)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range result {
			name := c.prefix + s.Metric[label]
			if name == "dropped filtered" {
				name = "filtered"
			}
			a[name] = s.Value.Number()
		}
	}
	a.shares()
	return a
}
