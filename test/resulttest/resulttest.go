// Package resulttest provides the example run for the tests of export and report.
package resulttest

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/measure"
	"replayd/internal/result"
	"replayd/test/measuretest"
)

// Update rewrites golden files.
var Update = flag.Bool("update", false, "rewrite golden files")

// Begin is the due time of the example's first request.
var Begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// Settings are the settings of the example.
var Settings = result.Settings{
	Command: "replayd run trace.jsonl", Model: "qwen3-0.6b", Endpoint: "chat", Concurrency: 8, GPUs: 2, Slice: 10 * time.Second,
	SLO:         measure.SLO{{Quantity: measure.TTFT, Limit: 300}, {Quantity: measure.TPOT, Limit: 9.5}, {Quantity: measure.PerUser, Limit: 95}},
	Session:     measure.SessionSLO{Makespan: 10 * time.Minute},
	Percentiles: []float64{75, 99.9}, Streamed: true,
}

// Collected returns the example of package result and its file: a run of 3 warm-up requests and 120 others over 40 s.
func Collected(t *testing.T) (result.Run, []byte) {
	t.Helper()
	file, err := os.ReadFile("../result/testdata/run/" + result.ExportName)
	if err != nil {
		t.Fatal(err)
	}
	runs, err := result.ReadExport(bytes.NewReader(file), result.ExportName)
	if err != nil || len(runs) != 1 {
		t.Fatal(len(runs), err)
	}
	run := runs[0]
	run.Settings = Settings
	explained := int64(120)
	run.Cache = &result.Cache{Source: result.CacheUsage, Prompt: 2000, Cached: 500, Explained: &explained}
	run.Ledger = &measure.Ledger{
		Expected: 121, Good: 26, Eligible: 115, Filtered: 2,
		Outcomes: map[measure.Outcome]int64{measure.OK: 105, measure.HTTP4xx: 7, measure.HTTP429: 1, measure.ConnectFailed: 1, measure.Cancelled: 6},
		Dropped:  map[measure.DropReason]int64{measure.Overload: 1},
		Sessions: measure.Sessions{
			Begun: 6, InProgress: 1, Good: 2, Requests: 35, Prompt: 4000, Cached: 2400,
			Outcomes: map[measure.SessionOutcome]int64{measure.SessionOK: 3, measure.SessionNotOK: 1, measure.SessionCut: 1},
		},
	}
	run.Sessions = measuretest.Sessions()
	for _, s := range run.Sessions {
		if s.Outcome == measure.SessionOK {
			run.Ledger.Sessions.Time = run.Ledger.Sessions.Time.Add(s.Time)
		}
	}
	return run, file
}

// Run returns the example with server series and an entry in Partial.
func Run(t *testing.T) result.Run {
	t.Helper()
	run, _ := Collected(t)
	run.ServerSeries = Series()
	run.Partial = []string{"profile_export.jsonl:812: cut in mid-line"}
	return run
}

// Golden compares got with a file in testdata, or writes the file with -update.
func Golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *Update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// Series returns series of a server with two replicas and of a GPU, over the example's 40 s.
func Series() []result.ServerSeries {
	times := make([]time.Time, 5)
	for i := range times {
		times[i] = Begin.Add(time.Duration(i) * 10 * time.Second)
	}
	return []result.ServerSeries{
		{
			Source: "http://vllm-1:8000/metrics", Name: "vllm:generation_tokens_total", Help: "Tokens generated.", Unit: "tokens", Kind: result.Counter,
			Labels: map[string]string{"model_name": "qwen3-0.6b"}, Times: times, Values: []float64{100, 300, 300, 50, 90}, // the process restarted
		},
		{
			Source: "http://vllm-0:8000/metrics", Name: "vllm:generation_tokens_total", Help: "Tokens generated.", Unit: "tokens", Kind: result.Counter,
			Labels: map[string]string{"model_name": "qwen3-0.6b"}, Times: times, Values: []float64{0, 100, 400, 400, 1000},
		},
		{Source: "http://vllm-0:8000/metrics", Name: "vllm:num_requests_running", Help: "Running.", Kind: result.Gauge, Times: times, Values: []float64{0, 4, 8, 2, 1}},
		{Source: "http://vllm-0:8000/metrics", Name: "vllm:seen_once_total", Kind: result.Counter, Times: times[:1], Values: []float64{7}}, // no rate
		{
			Source: "http://dcgm:9400/metrics", Name: "gpu_power_usage", Unit: "W", Kind: result.Gauge, GPU: true, Times: times, Values: []float64{90, 300, 500, 310, 100},
			Labels: map[string]string{"gpu": "0", "uuid": "GPU-1", "model_name": "NVIDIA H200", "hostname": "node"},
		},
	}
}
