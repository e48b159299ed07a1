//go:build faults

package faults_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"replayd/internal/sim"

	"replayd/test/outside"
)

// Limits of a row, in tokens. Longer rows are clipped. Every clipped prompt is one block of the trace.
const (
	loopInput  = 512
	loopOutput = 16
	loopEvery  = 30 * time.Second
)

// A loopRow is a line of the trace, parsed by this test and not by replayd's reader.
type loopRow struct {
	Input  int   `json:"input_length"`
	Output int   `json:"output_length"`
	Hashes []int `json:"hash_ids"`
}

// The conversation trace at 120 times its speed, with clipped rows, again and again. Each loop has each row once, with
// its clipped length. The counters after a loop are those of all loops so far, and no two loops have the same text.
func TestLoops(t *testing.T) {
	loops := outside.Knob(t, "FAULTS_LOOPS", 2, strconv.Atoi)
	s := newStage(t, "--ttft", "5ms", "--itl", "1ms", "--chunk-tokens", "5")
	path := filepath.Join(s.Dir, "trace.jsonl")
	outside.Conversation(t, path, 0)
	rows, torn := outside.Lines[loopRow](t, path)
	if torn || len(rows) == 0 {
		t.Fatalf("%s: want whole rows", path)
	}
	for i := range rows {
		rows[i].Input, rows[i].Output = min(rows[i].Input, loopInput), min(rows[i].Output, loopOutput)
	}
	s.Write(t, fmt.Sprintf(`targets: [{name: sim, url: "http://%s"}]
workloads:
- name: w
  trace: {path: %q, max_input: %d, max_output: %d, over_limit: clip}
  speed: 120
  repeat: {every: %v, align: start}
  lanes: 2048
  max_wait: 0s
`, s.Engine, path, loopInput, loopOutput, loopEvery))
	steal := outside.StealTime()
	daemon, _ := s.Serve(t)
	missed := map[int]int{} // missed rows by the end of a loop, if the end was seen in time
	for n := 1; n <= loops; n++ {
		if of, ok := s.afterLoop(t, rows, n); ok {
			missed[n] = of
		}
	}
	if len(missed) == 0 {
		t.Errorf("want a scrape between the end of a loop and the next one, none of %d came in time", loops)
	}
	t.Logf("%d rows, %d loops, %d of them seen between their end and the next one", len(rows), loops, len(missed))

	// In a pause the counters equal the engine's log, to the token.
	outside.Post(t, s.URL()+"/-/pause?workload=w", http.StatusOK)
	at := outside.See(t, s.URL(), "a pause with nothing in flight", 10*time.Second, func(p outside.Page) bool {
		return p.Sum("replayd_paused") == 1 && p.Sum("replayd_requests_in_flight")+p.Sum("replayd_requests_waiting") == 0
	})
	var log []sim.LogEntry
	outside.Until(t, 10*time.Second, func() error { // the engine writes an entry after the answer
		log = s.loopLog(t)
		if want := at.Sum("replayd_requests_total", "w"); want != float64(len(log)) {
			return fmt.Errorf("want an entry for each of %v requests, the engine's log has %d", want, len(log))
		}
		return nil
	})
	prompt, output := 0, 0
	for i := range log {
		prompt, output = prompt+log[i].PromptTokens, output+log[i].OutputTokens
	}
	isCount(t, at, "replayd_requests_total", len(log), "ok")
	isCount(t, at, "replayd_tokens_total", prompt, "prompt")
	isCount(t, at, "replayd_tokens_total", output, "output")
	isCount(t, at, "replayd_length_mismatch_total", 0)
	_, dropped := at.Ended("w")
	starved := int(at.Sum("replayd_requests_dropped_total", "w", "missed"))
	isCount(t, at, "replayd_requests_dropped_total", int(dropped)-starved, "paused")
	daemon.Term(t, 40*time.Second)
	judgeLoops(t, rows, loops, missed, log)
	if starved > 0 {
		t.Logf("the host did not let the daemon run: %d rows were missed and counted as that; %v were steal", starved, outside.StealTime()-steal)
	}
}

// afterLoop waits until loop n, from 1, has ended and compares the counters with n times the rows. It returns how many
// rows the daemon missed because of the host, and false if the next loop had begun by then.
func (s *stage) afterLoop(t *testing.T, rows []loopRow, n int) (missed int, seen bool) {
	t.Helper()
	at := outside.See(t, s.URL(), fmt.Sprint("the end of loop ", n), 2*loopEvery, func(p outside.Page) bool {
		for _, fault := range p.Balance() {
			t.Error(fault)
		}
		return p.Sum("replayd_loops_completed_total", "w") >= float64(n)
	})
	expected := len(rows) * n
	if got := at.Sum("replayd_requests_expected_total", "w"); got != float64(expected) {
		if got < float64(expected) {
			t.Errorf("loop %d: want %d expected, got %v", n, expected, got)
		}
		return 0, false
	}
	missed = int(at.Sum("replayd_requests_dropped_total", "w", "missed"))
	prompt, output := 0, 0
	for _, r := range rows {
		prompt, output = prompt+n*r.Input, output+n*r.Output
	}
	isCount(t, at, "replayd_loops_completed_total", n)
	isCount(t, at, "replayd_requests_total", expected-missed)
	isCount(t, at, "replayd_requests_total", expected-missed, "ok")
	isCount(t, at, "replayd_goodput_requests_total", expected-missed)
	isCount(t, at, "replayd_requests_dropped_total", missed)
	isCount(t, at, "replayd_retries_total", 0)
	if missed == 0 { // otherwise the engine's log shows which rows are left
		isCount(t, at, "replayd_tokens_total", prompt, "prompt")
		isCount(t, at, "replayd_tokens_total", output, "output")
	}
	return missed, true
}

// isCount compares a counter of the workload with a number.
func isCount(t *testing.T, p outside.Page, name string, want int, label ...string) {
	t.Helper()
	if got := p.Sum(name, append(label, "w")...); got != float64(want) {
		t.Errorf("%s%q: want %d, got %v", name, label, want, got)
	}
}

// loopLog returns the engine's log of the workload.
func (s *stage) loopLog(t *testing.T) (log []sim.LogEntry) {
	t.Helper()
	all, _ := outside.Lines[sim.LogEntry](t, s.Log)
	for _, e := range all {
		if len(e.ID) > 2 && e.ID[:2] == "w/" { // the others are replayd's own, such as the probe
			log = append(log, e)
		}
	}
	return log
}
