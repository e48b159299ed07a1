//go:build peers

package peers_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"replayd/test/outside"
)

// An exported is a line of profile_export.jsonl.
type exported struct {
	Metadata struct {
		Phase        string `json:"benchmark_phase"`
		RequestID    string `json:"x_request_id"`
		Conversation string `json:"conversation_id"`
		Turn         int    `json:"turn_index"`
		Cancelled    bool   `json:"was_cancelled"`
		Due          int64  `json:"due_ns"`
		Start        int64  `json:"request_start_ns"`
		End          int64  `json:"request_end_ns"`
	} `json:"metadata"`
	Metrics map[string]struct {
		Value json.RawMessage `json:"value"`
		Unit  string          `json:"unit"`
	} `json:"metrics"`
}

// value returns the value of a metric, or 0 if there is none.
func (e exported) value(t *testing.T, metric string) (v float64) {
	t.Helper()
	if text := e.Metrics[metric].Value; text != nil {
		if err := json.Unmarshal(text, &v); err != nil {
			t.Fatalf("%s: %s: %v", e.Metadata.RequestID, metric, err)
		}
	}
	return v
}

const exportName = "profile_export.jsonl"

func export(t *testing.T, folder string) []exported {
	t.Helper()
	all, torn := outside.Lines[exported](t, filepath.Join(folder, exportName))
	if torn {
		t.Errorf("%s: want whole lines in %s", folder, exportName)
	}
	return all
}

// folders returns the folders with the files of a run, in the order of their starts.
func folders(t *testing.T, dir string) (all []string) {
	t.Helper()
	began := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == exportName {
			folder := filepath.Dir(path)
			all = append(all, folder)
			if lines := export(t, folder); len(lines) > 0 {
				began[folder] = lines[0].Metadata.Start
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Compare(began[a], began[b]) })
	return all
}

// agrees checks that the exports of a command's runs hold exactly the requests that the engine received, with the
// lengths and times of its log.
func (s seen) agrees(t *testing.T, dir string) {
	t.Helper()
	var lines []exported
	for _, folder := range folders(t, dir) {
		lines = append(lines, export(t, folder)...)
	}
	if len(lines) != len(s.all) {
		t.Errorf("want %d requests in %s, got %d", len(s.all), exportName, len(lines))
		return
	}
	slices.SortStableFunc(lines, func(a, b exported) int {
		return cmp.Or(cmp.Compare(a.Metadata.RequestID, b.Metadata.RequestID), cmp.Compare(a.Metadata.Start, b.Metadata.Start))
	})
	all := slices.Clone(s.all)
	slices.SortStableFunc(all, func(a, b request) int { return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Arrival, b.Arrival)) })
	for i, r := range all {
		e := lines[i]
		m := e.Metadata
		in, out := e.value(t, "input_sequence_length"), e.value(t, "output_sequence_length")
		switch {
		case m.RequestID != r.ID, (m.Phase == "warmup") != r.warmup():
			t.Errorf("want %s in the export, got %s, %s", r.ID, m.RequestID, m.Phase)
		case m.Start > r.Arrival || r.Outcome == "ok" && m.End < r.Arrival:
			t.Errorf("%s: want it to arrive between its beginning and its end, %d is not between %d and %d", r.ID, r.Arrival, m.Start, m.End)
		case r.Outcome == "ok" && (int(in) != r.PromptTokens || int(out) != r.OutputTokens):
			t.Errorf("%s: want %d and %d tokens in the export, got %v and %v", r.ID, r.PromptTokens, r.OutputTokens, in, out)
		}
	}
}

// besides matches the box of server and GPU metrics.
var besides = regexp.MustCompile(`(?s)\n[^\n]*Server and GPU Metrics.*?└[^\n]*`)

// recomputed checks that an independent program computes the figures of the files and tables from the requests.
func (s seen) recomputed(t *testing.T, dir string) {
	t.Helper()
	all := folders(t, dir)
	tables := s.tables()
	for i, folder := range all {
		if len(tables) == len(all) {
			for _, name := range []string{"table_slices.txt", tables[i].name} {
				if name == "table_slices.txt" && !strings.Contains(tables[i].text, "TREND ANALYSIS") {
					continue
				}
				outside.Write(t, folder, name, tables[i].text)
			}
		} else {
			t.Errorf("want a table for each of %d runs, got %d", len(all), len(tables))
		}
		said, err := exec.CommandContext(t.Context(), "python3", "../report/recompute.py", folder).CombinedOutput()
		if errors.Is(err, exec.ErrNotFound) {
			outside.Missing(t, err, "")
		}
		text := strings.TrimSpace(string(said))
		if err != nil {
			t.Errorf("%s: %v\n%s", folder, err, text)
			continue
		}
		t.Log(text[strings.LastIndexByte(text, '\n')+1:])
	}
}

// A printed is the table of a run.
type printed struct{ name, text string }

// tables splits the output into tables. A table begins with its title.
func (s seen) tables() (all []printed) {
	for line := range strings.Lines(besides.ReplaceAllString(s.said, "")) {
		switch {
		case strings.Contains(line, "| LLM Metrics"):
			all = append(all, printed{name: "table_aiperf.txt"})
		case strings.Contains(line, " Serving Benchmark Result "):
			all = append(all, printed{name: "table_vllm.txt"})
		}
		if len(all) > 0 {
			all[len(all)-1].text += line
		}
	}
	return all
}

// artifact reads a JSON file of the run.
func artifact[T any](t *testing.T, dir, name string) (v T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return v
}

// has checks that files exist in a folder.
func has(t *testing.T, dir string, names ...string) {
	t.Helper()
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("want a file %s, got %v", name, err)
		}
	}
}
