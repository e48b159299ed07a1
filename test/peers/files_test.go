//go:build peers

package peers_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// A traceRow is a line of a trace.
type traceRow struct {
	Timestamp float64 `json:"timestamp"` // ms
	Input     int     `json:"input_length"`
	Output    int     `json:"output_length"`
	IDs       []int64 `json:"hash_ids"`
	Session   string  `json:"session_id"`
}

func fileRows(t *testing.T, dir, name string) []traceRow {
	t.Helper()
	rows, _ := outside.Lines[traceRow](t, filepath.Join(dir, name))
	if len(rows) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return rows
}

// times returns the times of rows since the first row.
func times(rows []traceRow) (all []time.Duration) {
	for _, r := range rows {
		all = append(all, time.Duration((r.Timestamp-rows[0].Timestamp)*float64(time.Millisecond)))
	}
	return all
}

func text(name, content string) func(*testing.T, string, string) {
	return func(t *testing.T, dir, _ string) { outside.Write(t, dir, name, content) }
}

func conversation(name string, to time.Duration) func(*testing.T, string, string) {
	return func(t *testing.T, dir, _ string) { outside.Conversation(t, filepath.Join(dir, name), to) }
}

// head is `head -n` of the trace, as in the documents.
func head(name string, rows int) func(*testing.T, string, string) {
	return func(t *testing.T, dir, _ string) {
		outside.Conversation(t, filepath.Join(dir, "whole.jsonl"), time.Minute)
		whole, err := os.ReadFile(filepath.Join(dir, "whole.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		outside.Write(t, dir, name, strings.Join(strings.SplitAfterN(string(whole), "\n", rows+1)[:rows], ""))
	}
}

// fiveTimes cuts a part of the trace and speeds it up with
// replayd's own tools: 45 s, where the document has five minutes.
func fiveTimes(t *testing.T, dir, _ string) {
	outside.Conversation(t, filepath.Join(dir, "whole.jsonl"), 2*time.Minute)
	well(t, shell(t, dir, "", "replayd trace slice whole.jsonl --to 45s | replayd trace synth - --speedup 5 > mooncake_trace_5min_5x.jsonl"))
}

// runs makes folders, each with a small run.
func runs(names ...string) func(*testing.T, string, string) {
	return func(t *testing.T, dir, address string) {
		for _, name := range names {
			well(t, shell(t, dir, address, "replayd run --url $ENDPOINT_URL --streaming --concurrency 4 --request-count 40 --isl 50 --osl 20 --artifact-dir "+name))
		}
	}
}

// well checks that a command succeeded.
func well(t *testing.T, s seen) {
	t.Helper()
	if s.code != 0 {
		t.Fatalf("want exit 0, got %d\n%s\n%s", s.code, s.said, s.warned)
	}
}
