//go:build bench && linux

package truth_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/bench/lab"
	"replayd/bench/rig"
	"replayd/test/outside"
)

// A record has the fields of replayd's records that these benchmarks read. Instants are ns since the Unix epoch.
type record struct {
	ID       string `json:"id"`
	Row      int    `json:"row"`
	Outcome  string `json:"outcome"`
	Error    string `json:"error"`
	Due      int64  `json:"due_ns"`
	Ready    int64  `json:"ready_ns"`
	Lane     int64  `json:"lane_ns"`
	Write    int64  `json:"write_ns"`
	Lateness int64  `json:"lateness_ns"`
	TTFT     int64  `json:"ttft_ns"`
	FromDue  int64  `json:"ttft_from_due_ns"`
	Chunks   int    `json:"chunks"`
	Kernel   bool   `json:"kernel_time"`
}

// readRecords expects n requests, each ok and with chunks chunks that the kernel stamped, and returns them by row.
func readRecords(t *testing.T, path string, n, chunks int) []record {
	t.Helper()
	all, err := lab.ReadLines[record](path)
	if err != nil {
		t.Fatal(err)
	}
	all = slices.DeleteFunc(all, func(r record) bool { return r.ID == "" }) // ledgers have no id
	if len(all) != n {
		t.Fatalf("want %d records, got %d", n, len(all))
	}
	for _, r := range all {
		if r.Outcome != "ok" || r.Chunks != chunks || !r.Kernel {
			t.Fatalf("%s: want %d chunks with the kernel's time and ok, got %d, %v and %s %s", r.ID, chunks, r.Chunks, r.Kernel, r.Outcome, r.Error)
		}
	}
	slices.SortFunc(all, func(a, b record) int { return cmp.Compare(a.Row, b.Row) })
	return all
}

// runRecords plays a trace to its end with replayd and further flags, and returns the path of the records.
func runRecords(t *testing.T, s rig.Server, trace string, within time.Duration, args ...string) string {
	t.Helper()
	dir := t.TempDir()
	records := filepath.Join(dir, "records.jsonl")
	args = append([]string{
		"run", outside.Write(t, dir, "trace.jsonl", trace), "--url", s.URL, "--name", "truth", "--records", records,
		"--max-wait", "0", "--log.level", "warn",
	}, args...)
	p := outside.Start(t, filepath.Join(dir, "replayd.out"), binary, args...)
	p.WaitIn(t, within)
	if p.Err != nil {
		t.Fatalf("replayd: want exit 0, got %v", p.Err)
	}
	return records
}

// matched checks that each request reached the server once and was answered completely, and that there are no others.
func matched(t *testing.T, records []record, stamps map[string]lab.Stamped, chunks int) {
	t.Helper()
	if len(stamps) != len(records) {
		t.Errorf("want %d answers, the server gave %d", len(records), len(stamps))
	}
	for _, r := range records {
		if s, ok := stamps[r.ID]; !ok || len(s.Chunks) != chunks || s.End == 0 {
			t.Fatalf("%s: want %d chunks sent, got %d, known %v, ended at %d", r.ID, chunks, len(s.Chunks), ok, s.End)
		}
	}
}

// micros formats the p50, p90 and p99 of samples.
func micros(of []lab.Sample) (cells []string) {
	for _, q := range []float64{0.5, 0.9, 0.99} {
		var values []float64
		for _, s := range of {
			values = append(values, s.Quantile(q))
		}
		cells = append(cells, lab.Number(lab.Median(values...)))
	}
	return cells
}

// traceOf returns n rows. Rows of a group are due together, and the groups have the given distance.
func traceOf(n, group, outputTokens int, apart time.Duration) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"timestamp":%d,"input_length":25,"output_length":%d}`+"\n", int64(i/group)*apart.Milliseconds(), outputTokens)
	}
	return b.String()
}
