//go:build faults

package faults_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/sim"

	"replayd/test/outside"
)

// A nameRecord has the fields of a record that the test checks.
type nameRecord struct {
	ID      string `json:"id"`
	Outcome string `json:"outcome"`
	Error   string `json:"error"`
	Planned int64  `json:"planned_ns"`
}

// The name of a target is looked up for each new connection. If the name moves to another
// address, new connections follow at once, whatever the time to live. A kept connection
// continues as long as it is used, until its server ends it, which costs no request. A name
// that vanishes, or a name server that fails, gives the outcome connect until the name is back.
func TestNames(t *testing.T) {
	s := newStageAlone(t)
	port, at, logs, engines := twoEngines(t, s.Dir)
	names := newNameServer(t, at[0])
	// "new" rests for longer than its connections are kept; "kept" does not.
	traces := map[string]string{}
	for name, gap := range map[string]int{"new": 250, "kept": 50} {
		var rows strings.Builder
		for at := 0; at < 600_000; at += gap {
			fmt.Fprintf(&rows, `{"timestamp": %d, "input_length": 20, "output_length": 4}`+"\n", at)
		}
		traces[name] = outside.Write(t, s.Dir, name+".trace.jsonl", rows.String())
	}
	text := fmt.Sprintf("records: {path: %q}\n", s.Records)
	for i, key := range []string{"targets", "workloads"} {
		text += key + ":\n"
		for name, idle := range map[string]string{"new": "50ms", "kept": "1m"} {
			if i == 0 {
				text += fmt.Sprintf("- {name: %s, url: \"http://engine.faults.test:%s\", model: sim, idle: %s, metrics: {interval: 0s}, timeouts: {connect: 1m}}\n", name, port, idle)
			} else {
				text += fmt.Sprintf("- {name: %s, target: %s, trace: {path: %q}, repeat: {mode: once}, lanes: 4, max_wait: 0s, prompt: {calibrate: false}}\n", name, name, traces[name])
			}
		}
	}
	s.Write(t, text)
	daemon := s.serveWith(t, names)
	grown := func(outcome measure.Outcome, workload string, by float64) {
		t.Helper()
		was, first := 0.0, true
		outside.See(t, s.URL(), fmt.Sprintf("%v more of %s with %s", by, workload, outcome), func(p outside.Page) bool {
			for _, fault := range p.Balance() {
				t.Error(fault)
			}
			now := p.Sum("replayd_requests_total", workload, string(outcome))
			if first {
				was, first = now, false
			}
			return now >= was+by
		})
	}
	grown(measure.OK, "new", 8)
	grown(measure.OK, "kept", 8)

	names.set(at[1], nameThere)
	moved := time.Now()
	grown(measure.OK, "new", 8)
	grown(measure.OK, "kept", 8)
	stopped, _ := engines[0].Signal(t, 15) // the first engine ends as a pod does, and its kept connections with it
	engines[0].Wait(t)
	grown(measure.OK, "kept", 8)
	grown(measure.OK, "new", 8)

	for _, code := range []byte{nameGone, nameBroken} {
		names.set(netip.Addr{}, code)
		grown(measure.ConnectFailed, "new", 8)
		names.set(at[1], nameThere)
		grown(measure.OK, "new", 8)
	}
	asked := names.questions()
	outside.Post(t, s.URL()+"/-/pause", http.StatusOK)
	daemon.Term(t)
	t.Logf("%d questions", asked)
	engines[1].Term(t) // its log is whole now, as that of the first
	judgeNames(t, s.Records, logs, moved, stopped)
}

// judgeNames compares the records with the logs of the engines: each request that ended ok is in one log once, and the
// others are in none.
func judgeNames(t *testing.T, records string, logs [2]string, moved, stopped time.Time) {
	t.Helper()
	where := map[string]int{}
	for i, path := range logs {
		all, _ := outside.Lines[sim.LogEntry](t, path)
		for _, e := range all {
			if !strings.HasPrefix(e.ID, "new/") && !strings.HasPrefix(e.ID, "kept/") {
				continue
			}
			if _, ok := where[e.ID]; ok || e.Outcome != sim.OK {
				t.Errorf("%s: want it once and ok in the engines' logs, got it %s, and before: %v", e.ID, e.Outcome, ok)
			}
			where[e.ID] = i
		}
	}
	all, _ := outside.Lines[nameRecord](t, records)
	count := map[string]int{}
	for _, r := range all {
		engine, sent := where[r.ID]
		workload, _, _ := outside.Place(t, r.ID)
		planned := time.Unix(0, r.Planned)
		count[fmt.Sprint(workload, " ", r.Outcome, " at ", engine, " ", sent)]++
		switch r.Outcome {
		case string(measure.OK):
			// A connection is opened at most half a second before its request, and the host may be slow.
			if !sent || workload == "new" && engine == 0 && planned.After(moved.Add(2*time.Second)) || engine == 0 && planned.After(stopped.Add(2*time.Second)) {
				t.Errorf("%s, planned %v after the name moved: it went to engine %d (%v)", r.ID, planned.Sub(moved), engine, sent)
			}
		case string(measure.ConnectFailed):
			if sent || workload != "new" || !strings.Contains(r.Error, "engine.faults.test") {
				t.Errorf("%s: want connect for its name only, and that no engine has seen it, got %q (%v)", r.ID, r.Error, sent)
			}
		default:
			t.Errorf("%s: want ok or connect, got %s: %s", r.ID, r.Outcome, r.Error)
		}
		delete(where, r.ID)
	}
	for id := range where {
		t.Errorf("%s: no record of what an engine has seen", id)
	}
	t.Logf("%d records: %v", len(all), count)
}
