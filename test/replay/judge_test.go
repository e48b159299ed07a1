//go:build replay

package replay_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"replayd/internal/sim"
	"replayd/internal/trace"

	"replayd/test/machine"
	"replayd/test/outside"
)

// A record has the fields of replayd's records that the test reads.
type record struct {
	ID      string `json:"id"`
	Loop    int    `json:"loop"`
	Row     int    `json:"row"`
	Outcome string `json:"outcome"`
	Due     int64  `json:"due_ns"`
	End     int64  `json:"end_ns"`
	Prompt  int    `json:"usage_prompt_tokens"`
	Output  int    `json:"usage_output_tokens"`
}

// Every row of the trace arrives exactly once, with the lengths of the trace, and on a quiet machine in the order of its instants. The
// engine's log and replayd's counters agree.
func TestEveryRowOnce(t *testing.T) {
	to := outside.Knob(t, "REPLAY_TO", 2*time.Minute, time.ParseDuration)
	speed := outside.Knob(t, "REPLAY_SPEED", 5, number)
	path, stats := conversation(t, to)
	dir := t.TempDir()
	// Prefill and decode take fixed times, and the prefix cache has the default size. This test is about the client,
	// and an engine with nine million blocks stops for 100 ms now and then to collect its garbage.
	engine, listen := startEngine(t, dir, "--slots", "8192", "--ttft", "100ms", "--itl", "5ms"), outside.Address(t)
	config := filepath.Join(dir, "replayd.yaml")
	write := fmt.Sprintf(`
targets: [{name: sim, url: "http://%s"}]
workloads:
  - {name: judge, trace: {path: %q}, speed: %v, repeat: {mode: once}, lanes: 2048, max_wait: 1m}
records: {path: %q}
`, engine.address, path, speed, filepath.Join(dir, "records.jsonl"))
	if err := os.WriteFile(config, []byte(write), 0o644); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	daemon := start(t, dir, "serve", "serve", "--config", config, "--web.listen-address", listen)
	daemon.Ready(t, http.DefaultClient, "http://"+listen+"/-/ready")

	rows := read(t, path)
	length := time.Duration(float64(stats.Span) / speed)
	final := watch(t, "http://"+listen, stats.Requests, length+2*time.Minute)
	t.Logf("%d rows, %v of trace at speed %v in %v", len(rows), stats.Span, speed, time.Since(began).Round(time.Second))
	daemon.Term(t)

	// Compare the engine's log with the trace.
	log := engine.log(t)
	arrived := map[int]sim.LogEntry{}
	for _, e := range log {
		_, _, row := outside.Place(t, e.ID)
		if _, twice := arrived[row]; twice {
			t.Errorf("row %d arrived twice", row)
		}
		arrived[row] = e
		if want := rows[row]; e.PromptTokens != want.InputTokens || e.OutputTokens != want.OutputTokens {
			t.Errorf("row %d: want %d and %d tokens, got %d and %d", row, want.InputTokens, want.OutputTokens, e.PromptTokens, e.OutputTokens)
		}
	}
	if len(arrived) != len(rows) {
		t.Errorf("want %d rows, %d arrived", len(rows), len(arrived))
	}
	slices.SortFunc(log, func(a, b sim.LogEntry) int { return int(a.Arrival - b.Arrival) })
	latest, swapped := time.Duration(0), 0
	for _, e := range log {
		_, _, row := outside.Place(t, e.ID)
		if rows[row].Session != "" {
			continue // a turn waits for the answer to the one before
		}
		if at := rows[row].Offset; at < latest {
			swapped++
			t.Logf("row %d of %v arrived after one of %v", row, at, latest)
		} else {
			latest = at
		}
	}
	// Each row has a connection and a goroutine of its own, and on a busy machine a later one can overtake.
	if swapped > 0 && machine.Measures(t, "the order of rows that are due within milliseconds") {
		t.Errorf("%d rows were overtaken", swapped)
	}

	// Compare the records with the trace, and the counters with the log.
	records := readRecords(t, filepath.Join(dir, "records.jsonl"))
	for _, r := range records {
		if want := rows[r.Row]; r.Outcome != "ok" || r.Prompt != want.InputTokens || r.Output != want.OutputTokens {
			t.Errorf("record %s: want ok, %d and %d tokens, got %s, %d and %d", r.ID, want.InputTokens, want.OutputTokens, r.Outcome, r.Prompt, r.Output)
		}
	}
	for name, c := range map[string]struct{ got, want int }{
		"records":  {len(records), len(rows)},
		"expected": {int(final.Sum("replayd_requests_expected_total")), len(rows)},
		"ok":       {int(final.Sum("replayd_requests_total", "ok")), len(log)},
		"all":      {int(final.Sum("replayd_requests_total")), len(log)},
		"dropped":  {int(final.Sum("replayd_requests_dropped_total")), 0},
		"mismatch": {int(final.Sum("replayd_length_mismatch_total")), 0},
		"prompt":   {int(final.Sum("replayd_tokens_total", "prompt")), int(stats.Input.Sum)},
		"output":   {int(final.Sum("replayd_tokens_total", "output")), int(stats.Output.Sum)},
		"retries":  {int(final.Sum("replayd_retries_total")), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: want %d, got %d", name, c.want, c.got)
		}
	}
}

// read returns all rows of a trace.
func read(t *testing.T, path string) (rows []trace.Record) {
	t.Helper()
	f, err := trace.Open(t.Context(), path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := f.Rows(0)
	if err != nil {
		t.Fatal(err)
	}
	for {
		rec, err := r.Next()
		if errors.Is(err, io.EOF) {
			return rows
		}
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, rec)
	}
}
