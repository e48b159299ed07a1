//go:build peers

package peers_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"

	"replayd/test/outside"
)

// cases returns the command lines in the order of the documents.
func cases() []peer { return slices.Concat(traces, useCases, guide, plots) }

// fast is an engine that delays nobody, without a prefix cache. remembering has a prefix cache.
var (
	fast        = []string{"--ttft", "2ms", "--itl", "100us", "--chunk-tokens", "20", "--slots", "1000", "--cache-tokens", "0"}
	remembering = append(slices.Clone(fast), "--cache-tokens", "2000000")
)

// queries has the texts and limits of a document's file.
var queries = []struct {
	text  string
	limit int
}{
	{"What is the capital of France?", 20},
	{"Explain quantum computing in simple terms.", 100},
	{"Write a Python function to calculate fibonacci numbers.", 150},
	{"Summarize the main causes of World War II.", 200},
	{"How do neural networks learn?", 80},
}

// traces has the command lines of the first four documents.
var traces = []peer{
	{
		name:  "exact payloads in order",
		typed: "aiperf profile --model Qwen/Qwen3-0.6B --endpoint-type chat --endpoint /v1/chat/completions --streaming --url localhost:8000 --input-file production_queries.jsonl --custom-dataset-type mooncake_trace --concurrency 2 --warmup-request-count 1",
		files: text("production_queries.jsonl", `{"text_input": "What is the capital of France?", "output_length": 20}
{"text_input": "Explain quantum computing in simple terms.", "output_length": 100}
{"text_input": "Write a Python function to calculate fibonacci numbers.", "output_length": 150}
{"text_input": "Summarize the main causes of World War II.", "output_length": 200}
{"text_input": "How do neural networks learn?", "output_length": 80}
`),
		engine: []string{"--ttft", "20ms", "--itl", "500us", "--chunk-tokens", "20"},
		reads:  true,
		judge: func(t *testing.T, dir string, s seen) {
			s.count(t, len(queries))
			s.streamed(t, true)
			s.order(t, 2)
			s.atMost(t, 2)
			for i, r := range byRow(t, s.measured()) {
				b, want := s.bodies[r.ID], queries[i]
				if len(b.Messages) != 1 || b.Messages[0] != (message{"user", want.text}) || b.MaxTokens != want.limit {
					t.Errorf("%s: want %q and a limit of %d, got %+v", r.ID, want.text, want.limit, b)
				}
			}
			if len(s.all) != 6 || !s.all[0].warmup() || s.all[0].Body != byRow(t, s.measured())[0].Body || s.all[0].End > s.all[1].Arrival {
				t.Errorf("want the first row once before, as warm-up, got %+v", s.all)
			}
			phases := map[string]int{}
			for _, e := range export(t, filepath.Join(dir, "artifacts")) {
				phases[e.Metadata.Phase]++
			}
			if phases["warmup"] != 1 || phases["profiling"] != 5 {
				t.Errorf("want 1 warmup and 5 profiling in the export, got %v", phases)
			}
			s.says(t, "Request Count (requests) │ 5.00")
		},
	},
	{
		name:  "instants of a trace",
		typed: "aiperf profile --model Qwen/Qwen3-0.6B --endpoint-type chat --streaming --url localhost:8000 --input-file custom_trace.jsonl --custom-dataset-type mooncake_trace --fixed-schedule",
		files: text("custom_trace.jsonl", `{"timestamp": 0, "input_length": 1200, "output_length": 52, "hash_ids": [0, 1, 2]}
{"timestamp": 105, "input_length": 1800, "output_length": 26, "hash_ids": [0, 3, 4, 5]}
{"timestamp": 274, "input_length": 1300, "output_length": 52, "hash_ids": [1, 4, 6]}
`),
		engine: remembering,
		judge: func(t *testing.T, dir string, s seen) {
			likeTheFile("custom_trace.jsonl", true)(t, dir, s)
			s.prefixes(t, fileRows(t, dir, "custom_trace.jsonl"))
		},
	},
	{
		name:   "ten rows of a published trace",
		typed:  "aiperf profile --model Qwen/Qwen3-0.6B --endpoint-type chat --streaming --url localhost:8000 --input-file mooncake_trace_short.jsonl --custom-dataset-type mooncake_trace --fixed-schedule",
		files:  head("mooncake_trace_short.jsonl", 10),
		engine: fast,
		judge:  likeTheFile("mooncake_trace_short.jsonl", true),
	},
	{
		name:  "an older page, not streamed",
		typed: "aiperf profile -m deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B --input-file example_trace.jsonl --custom-dataset-type mooncake_trace --fixed-schedule",
		files: text("example_trace.jsonl", `{"timestamp": 0, "input_length": 655, "output_length": 52, "hash_ids": [46, 47]}
{"timestamp": 10535, "input_length": 672, "output_length": 26, "hash_ids": [46, 47]}
{"timestamp": 27482, "input_length": 655, "output_length": 52, "hash_ids": [46, 47]}
`),
		engine: remembering,
		judge: func(t *testing.T, dir string, s seen) {
			likeTheFile("example_trace.jsonl", false)(t, dir, s)
			s.prefixes(t, fileRows(t, dir, "example_trace.jsonl"))
		},
	},
	{
		name:   "five rows, not streamed",
		typed:  "aiperf profile -m deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B --input-file mooncake_trace_short.jsonl --custom-dataset-type mooncake_trace --fixed-schedule",
		files:  head("mooncake_trace_short.jsonl", 5),
		engine: fast,
		judge:  likeTheFile("mooncake_trace_short.jsonl", false),
	},
	{
		name:   "TraceReplay",
		typed:  "python3 /trace_replay.py --model /home/models/dsv2-lite --backend vllm --trace-path /conversation_trace.jsonl --trace-mode trace --host 127.0.0.1 --port 8000 --save-result --save-prompts",
		files:  conversation("conversation_trace.jsonl", 9*time.Second),
		engine: fast,
		judge: func(t *testing.T, dir string, s seen) {
			likeTheFile("conversation_trace.jsonl", true)(t, dir, s)
			s.says(t, "Serving Benchmark Result", "Successful requests:", "Time to First Token", "P25 TTFT (ms):", "Median ITL (ms):", "P99 E2EL (ms):")
			if rows, _ := outside.Lines[traceRow](t, filepath.Join(dir, "artifacts/prompts.jsonl")); len(rows) != len(s.measured()) {
				t.Errorf("want %d saved requests, got %d", len(s.measured()), len(rows))
			}
			book, err := excelize.OpenFile(filepath.Join(dir, "artifacts/result.xlsx"))
			if err != nil {
				t.Fatal(err)
			}
			defer book.Close()
			lines, err := book.GetRows("requests")
			if err != nil || len(lines) != 1+len(s.measured()) {
				t.Errorf("want a heading and %d requests in result.xlsx, got %d: %v", len(s.measured()), len(lines), err)
			}
			for _, r := range s.measured() {
				if !slices.ContainsFunc(lines, func(line []string) bool { return slices.Contains(line, r.ID) }) {
					t.Errorf("want %s in result.xlsx", r.ID)
				}
			}
		},
	},
}

// likeTheFile checks that each row was sent once, at its time, with its lengths.
func likeTheFile(name string, streamed bool) func(t *testing.T, dir string, s seen) {
	return func(t *testing.T, dir string, s seen) {
		rows := fileRows(t, dir, name)
		s.rows(t, rows)
		s.instants(t, times(rows))
		s.streamed(t, streamed)
		if n := distinct(s.measured()); n != len(rows) && !strings.Contains(name, "example") {
			t.Errorf("want %d prompts of their own, got %d", len(rows), n)
		}
	}
}
