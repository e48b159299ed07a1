//go:build real

package ledger_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"replayd/test/outside"
)

// A request holds the fields of a record that an account needs.
type request struct {
	ID      string
	Phase   string
	Outcome string
	Session string
	TTFT    *int64 `json:"ttft_ns"`
	TTFAT   *int64 `json:"ttfat_ns"`
	TPOT    *int64 `json:"tpot_ns"`
	E2E     *int64 `json:"e2e_ns"`
	Output  int    `json:"usage_output_tokens"`

	TPOTMost *int64 `json:"tpot_most_ns"`
}

// An account is the ledger of a run, by name: expected, sent, ok, good, eligible, not judged, an outcome, "dropped
// REASON", and both attainments.
type account map[string]float64

// Names in every account.
const (
	expected = "expected"
	good     = "good"
	eligible = "eligible"
	unjudged = "not judged"
	judged   = "expected and judged"
	overall  = "attainment"
	service  = "service attainment"
	begun    = "sessions begun"
	goods    = "sessions good"
)

// requests reads the records of a run, without the lines of the ledger.
func requests(t *testing.T, paths ...string) (all []request) {
	t.Helper()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, `{"ledger"`) {
				continue
			}
			var r request
			if err := json.Unmarshal([]byte(line), &r); err != nil {
				t.Fatalf("%s: %v: %s", path, err, line)
			}
			all = append(all, r)
		}
	}
	return all
}

// account computes the account from the requests that have a record. Expected requests without one were never sent.
// Only a ledger counts rows that this busy machine missed; all outputs must have the number of one, the page.
func (c *run) account(t *testing.T, all []request, page account) account {
	t.Helper()
	a := account{expected: float64(c.expected), unjudged: 0}
	finished, bounds := 0, c.bounds(t)
	for _, r := range all {
		finished++
		a[r.Outcome]++
		switch isGood, judged := judge(r, bounds); {
		case !judged: // neither good nor eligible
			a[unjudged]++
			continue
		case isGood:
			a[good]++
		}
		if r.Outcome != "cancelled" && r.Outcome != "aborted" {
			a[eligible]++
		}
	}
	never := c.expected - finished
	if missed := page["dropped missed"]; missed > 0 && c.drops != "missed" {
		a["dropped missed"] = missed
		never -= int(missed)
	}
	if never > 0 {
		a["dropped "+c.drops] = float64(never)
		if c.drops == "overload" && !c.chosen || c.drops == "session_failed" {
			a[eligible] += float64(never)
		}
	}
	if c.filtered > 0 {
		a["filtered"] = float64(c.filtered)
	}
	a.shares()
	c.ofSessions(all, a)
	return a
}

// ofSessions counts the sessions of a run whose sessions have equally many turns. One with a request that did not end ok has failed. One
// of which requests are missing otherwise was cut.
func (c *run) ofSessions(all []request, a account) {
	if c.sessions == 0 {
		return
	}
	ok, failed := map[string]int{}, map[string]bool{}
	for _, r := range all {
		if r.Outcome == "ok" {
			ok[r.Session]++
		} else {
			failed[r.Session] = true
		}
	}
	a[begun] = float64(c.sessions)
	for i := range c.sessions {
		switch name := fmt.Sprintf("s%d", i); {
		case failed[name]:
			a["sessions failed"]++
		case ok[name] == c.expected/c.sessions:
			a["sessions ok"]++
			a[goods]++
		default:
			a["sessions cut"]++
		}
	}
}

// received returns the number of requests that an engine received, without probes.
func received(t *testing.T, e engine) (n int) {
	t.Helper()
	entries, _ := outside.Lines[struct{ ID string }](t, e.log)
	for _, entry := range entries {
		if entry.ID != "" && entry.ID != "replayd/probe" && !strings.Contains(entry.ID, "/warmup/") {
			n++
		}
	}
	return n
}

// differs lists the names that an output lacks or has with another
// number than the account. An output that rounds has a tolerance.
func differs(want, got account, rounds float64) (faults []string) {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		v, said := got[name]
		if !said || v-want[name] > rounds || want[name]-v > rounds {
			faults = append(faults, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, known := want[name]; !known && got[name] != 0 {
			faults = append(faults, name+" (which is in no account)")
		}
	}
	return faults
}

// read returns a file of a run.
func read(t *testing.T, parts ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(parts...))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
