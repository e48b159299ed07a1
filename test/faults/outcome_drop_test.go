//go:build faults

package faults_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"replayd/internal/measure"

	"replayd/test/outside"
)

// dropRows is the number of rows that are due at once in most workloads; dropTurns the number of sessions of two turns.
const (
	dropRows  = 50
	dropTurns = 2
)

// A drop is a workload that loses all rows, except sent ones, for one drop reason.
type drop struct {
	name   string
	reason measure.DropReason
	keys   string // of the workload
	answer script
	sent   int  // rows that are sent all the same
	turns  bool // the rows are sessions
	later  bool // all rows but the first fall due 8 s later
}

var drops = []drop{
	{name: "no-lane", reason: measure.Overload, keys: "lanes: 1, overload: drop", answer: saysAndHangs(""), sent: 1},
	{name: "max-wait", reason: measure.Overload, keys: "lanes: 1, max_wait: 500ms", answer: saysAndHangs(""), sent: 1},
	{name: "blind", reason: measure.Guarded, keys: "guard: {waiting: 1}", answer: says("")},
	{name: "minute", reason: measure.Budget, keys: "budget: {requests_per_minute: 3}", answer: streams(goodEvents), sent: 3},
	{name: "hour", reason: measure.Budget, keys: "budget: {prompt_tokens_per_hour: 70}", answer: streams(goodEvents), sent: 3},
	{name: "day", reason: measure.Budget, keys: "budget: {output_tokens_per_day: 9}", answer: streams(goodEvents), sent: 2},
	{name: "turns", reason: measure.SessionFailed, answer: says(plain("503 Unavailable", "text/plain", "")), sent: dropRows / dropTurns, turns: true},
	{name: "chat", reason: measure.Invalid, answer: says("")}, // chat messages, and the target has only completions
	{name: "long", reason: measure.Filtered, keys: "", answer: says("")},
	{name: "held", reason: measure.Shutdown, keys: "lanes: 1, max_wait: 0s", answer: saysAndHangs(""), sent: 1},
	{name: "in-a-pause", reason: measure.Paused, answer: streams(goodEvents), sent: 1, later: true},
}

// Every drop reason has a workload that loses all its rows for that reason and no other.
func TestDrops(t *testing.T) {
	for _, reason := range measure.DropReasons() {
		if reason == measure.Missed {
			continue // needs a stopped process: test/daemon
		}
		if !slices.ContainsFunc(drops, func(d drop) bool { return d.reason == reason }) {
			t.Errorf("nothing is dropped for the reason %s", reason)
		}
	}
	s := newStageAlone(t)
	targets, workloads := dropConfig(t, s.Dir)
	text := func(without measure.DropReason) string {
		of := ""
		for i, d := range drops {
			if d.reason != without {
				of += workloads[i]
			}
		}
		return fmt.Sprintf("drain: 1s\ntargets:\n%sworkloads:\n%s", targets, of)
	}
	s.Write(t, text(""))
	s.Serve(t)
	for _, d := range drops {
		if d.later {
			outside.Post(t, s.URL()+"/-/pause?workload="+d.name, http.StatusOK)
		}
	}
	for _, d := range drops {
		outside.See(t, s.URL(), d.name+" has nothing more to come", func(p outside.Page) bool {
			if d.reason == measure.Shutdown {
				return p.Sum("replayd_requests_waiting", d.name) == float64(dropRows-d.sent)
			}
			finished, _ := p.Ended(d.name)
			return finished+p.Sum("replayd_requests_in_flight", d.name)+p.Sum("replayd_requests_dropped_total", d.name) == dropRows
		})
	}
	s.Write(t, text(measure.Shutdown)) // waiting requests are dropped
	outside.Post(t, s.URL()+"/-/reload", http.StatusOK)
	s.Write(t, text("")) // the counts return with the workload
	outside.Post(t, s.URL()+"/-/reload", http.StatusOK)
	at := outside.See(t, s.URL(), "all workloads", func(p outside.Page) bool { return len(p.Workloads()) == len(drops) })
	for _, fault := range at.Balance() {
		t.Error(fault)
	}
	for _, d := range drops {
		for _, reason := range measure.DropReasons() {
			want := 0
			if reason == d.reason {
				want = dropRows - d.sent
			}
			got := at.Sum("replayd_requests_dropped_total", d.name, string(reason))
			if d.later && reason == d.reason && got == dropRows {
				continue // the pause came before the first row
			}
			if got != float64(want) {
				t.Errorf("%s: want %d dropped for the reason %s, got %v", d.name, want, reason, got)
			}
		}
	}
}

// dropConfig starts a server for each drop and returns the targets and the workloads.
func dropConfig(t *testing.T, dir string) (targets string, workloads []string) {
	t.Helper()
	for _, d := range drops {
		s := &server{answer: d.answer, always: true}
		interval := "0s"
		if d.reason == measure.Guarded {
			interval = "1s"
		}
		row, api := `"input_length": 20`, "chat"
		if d.reason == measure.Invalid {
			row, api = `"messages": [{"role": "user", "content": "x"}]`, "completions"
		}
		targets += fmt.Sprintf("- {name: %s, url: \"http://%s\", model: m, api: %s, metrics: {interval: %s}, %s}\n", d.name, s.listen(t), api, interval, endless)
		var rows strings.Builder
		for i := range dropRows {
			session, at := "", 0
			if d.later && i > 0 {
				at = 8000
			}
			if d.turns {
				session = fmt.Sprintf(`, "session_id": "s%d"`, i/dropTurns)
			}
			fmt.Fprintf(&rows, `{"timestamp": %d, %s, "output_length": 4%s}`+"\n", at, row, session)
		}
		limit := ""
		if d.reason == measure.Filtered {
			limit = ", max_input: 10"
		}
		keys := ""
		if d.keys != "" {
			keys = ", " + d.keys
		}
		workloads = append(workloads, fmt.Sprintf("- {name: %s, target: %s, trace: {path: %q%s}, repeat: {mode: once}, prompt: {calibrate: false}%s}\n", d.name, d.name,
			outside.Write(t, dir, d.name+".jsonl", rows.String()), limit, keys))
	}
	return targets, workloads
}
