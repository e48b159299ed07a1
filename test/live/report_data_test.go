//go:build live

package live

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/result"
)

// synthetic is a closed loop against a server that warms up and
// is saturated beyond 200 requests at once, with some failures.
func synthetic(name string, requests, concurrency int, seed uint64) result.Run {
	random := rand.New(rand.NewPCG(seed, 1))
	lognormal := func(middle, spread float64) float64 { return middle * math.Exp(spread*random.NormFloat64()) }
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).UnixNano()
	run := result.Run{Name: name, Settings: result.Settings{
		Command: "replayd run trace.jsonl --url http://localhost:8000", Model: "qwen3-0.6b", Endpoint: "chat", Concurrency: concurrency, GPUs: 8, Streamed: true,
		SLO: measure.SLO{{Quantity: measure.TTFT, Limit: 370}},
	}}
	over := max(1, float64(concurrency)/200)
	free := make([]float64, concurrency) // seconds
	for i := range requests {
		lane := 0
		for k := range free {
			if free[k] < free[lane] {
				lane = k
			}
		}
		late := math.Abs(random.NormFloat64()) * 0.2
		start := free[lane] + late/1e3
		input, output := int(lognormal(900, 1.1))+1, int(lognormal(180, 0.8))+2
		ttft := (60 + float64(concurrency)*over + float64(input)*0.04) * lognormal(1, 0.3) * (1 + 1.2*math.Exp(-start/4))
		itl := (2.6 + 0.008*float64(concurrency)) * over * lognormal(1, 0.12)
		r := result.Row{
			ID: fmt.Sprint("w/0/", i), Session: int64(i), Worker: "lane_0", Processor: "replayd", Outcome: measure.OK, Status: 200, Input: input, Output: output,
			Due: begin + int64(free[lane]*1e9), Credit: begin + int64(free[lane]*1e9), Start: begin + int64(start*1e9), Lateness: late, Second: math.NaN(),
			TTFT: ttft, Latency: ttft + itl*float64(output-1), ITL: itl,
		}
		r.First, r.End = r.Start+int64(ttft*1e6), r.Start+int64(r.Latency*1e6)
		if random.Float64() < 0.01 {
			r.Outcome, r.Status, r.Error = []measure.Outcome{measure.HTTP429, measure.TimeoutFirstToken, measure.Truncated}[random.IntN(3)], 429, `<b onclick="alert(1)">busy</b>`
			r.End, r.TTFT, r.Latency, r.ITL, r.Output = r.First, math.NaN(), math.NaN(), math.NaN(), 0
		}
		free[lane] = float64(r.End-begin) / 1e9
		run.Rows = append(run.Rows, r)
	}
	return run
}

// writeExport writes the ok requests of a run in AIPerf's format.
func writeExport(t *testing.T, dir string, run result.Run) {
	t.Helper()
	type object = map[string]any
	value := func(v float64, unit string) object { return object{"value": v, "unit": unit} }
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, result.ExportName))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, r := range run.Rows {
		if r.Outcome != measure.OK {
			continue
		}
		line := object{
			"metadata": object{
				"session_num": r.Session, "x_request_id": r.ID, "turn_index": 0, "request_start_ns": r.Start, "request_end_ns": r.End, "credit_issued_ns": r.Credit,
				"worker_id": r.Worker, "record_processor_id": r.Processor, "benchmark_phase": "profiling",
			},
			"metrics": object{
				"time_to_first_token": value(r.TTFT, "ms"), "request_latency": value(r.Latency, "ms"), "inter_token_latency": value(r.ITL, "ms"),
				"output_sequence_length": value(float64(r.Output), "tokens"), "input_sequence_length": value(float64(r.Input), "tokens"),
			},
		}
		if err := json.NewEncoder(f).Encode(line); err != nil {
			t.Fatal(err)
		}
	}
}
