//go:build peers

package peers_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// fast is an engine that keeps nobody waiting.
var fast = []string{"--ttft", "2ms", "--itl", "100us", "--chunk-tokens", "20", "--slots", "1000", "--cache-tokens", "0"}

// cases are the command lines in the order of the documents.
var cases = []peer{
	{
		name:  "exact payloads in order",
		typed: "aiperf profile --model Qwen/Qwen3-0.6B --endpoint-type chat --endpoint /v1/chat/completions --streaming --url localhost:8000 --input-file production_queries.jsonl --custom-dataset-type mooncake_trace --concurrency 2 --warmup-request-count 1",
		files: text("production_queries.jsonl", `{"text_input": "What is the capital of France?", "output_length": 20}
{"text_input": "Explain quantum computing in simple terms.", "output_length": 100}
{"text_input": "Write a Python function to calculate fibonacci numbers.", "output_length": 150}
{"text_input": "Summarize the main causes of World War II.", "output_length": 200}
{"text_input": "How do neural networks learn?", "output_length": 80}
`),
		engine: fast,
		judge: func(t *testing.T, dir string, s seen) {
			s.count(t, 5)
			s.order(t, 2)
			if most, _ := concurrency(s.measured()); most > 2 {
				t.Errorf("want at most 2 at once, got %d", most)
			}
			var limits []int
			for _, r := range byRow(t, s.measured()) {
				limits = append(limits, r.MaxTokens)
			}
			if want := []int{20, 100, 150, 200, 80}; !slices.Equal(limits, want) {
				t.Errorf("want limits %v, got %v", want, limits)
			}
			if len(s.all) != 6 || !s.all[0].warmup() || s.all[0].Body != byRow(t, s.measured())[0].Body {
				t.Errorf("want the first row once before, as warm-up, got %+v", s.all)
			}
			phases := map[string]int{}
			for _, e := range export(t, dir) {
				phases[e.Metadata.Phase]++
			}
			if phases["warmup"] != 1 || phases["profiling"] != 5 {
				t.Errorf("want 1 warmup and 5 profiling in the export, got %v", phases)
			}
			s.says(t, "Request Count", "5.00")
		},
	},
	{
		name:  "instants of a trace",
		typed: "aiperf profile --model Qwen/Qwen3-0.6B --endpoint-type chat --streaming --url localhost:8000 --input-file custom_trace.jsonl --custom-dataset-type mooncake_trace --fixed-schedule",
		files: text("custom_trace.jsonl", `{"timestamp": 0, "input_length": 1200, "output_length": 52, "hash_ids": [0, 1, 2]}
{"timestamp": 105, "input_length": 1800, "output_length": 26, "hash_ids": [0, 3, 4, 5]}
{"timestamp": 274, "input_length": 1300, "output_length": 52, "hash_ids": [1, 4, 6]}
`),
		engine: fast,
		judge: func(t *testing.T, _ string, s seen) {
			s.count(t, 3)
			s.instants(t, []float64{0, 105, 274})
			s.lengths(t, [][2]int{{1200, 52}, {1800, 26}, {1300, 52}})
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
		engine: fast,
		judge:  likeTheFile("example_trace.jsonl", false),
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
			has(t, dir, "artifacts/result.xlsx", "artifacts/prompts.jsonl")
			s.says(t, "Serving Benchmark Result", "Successful requests:", "Time to First Token", "P25 TTFT (ms):", "Median ITL (ms):", "P99 E2EL (ms):")
			if rows, _ := outside.Lines[traceRow](t, filepath.Join(dir, "artifacts/prompts.jsonl")); len(rows) != len(s.measured()) {
				t.Errorf("want %d saved requests, got %d", len(s.measured()), len(rows))
			}
		},
	},
	{
		name:   "a hundred at once",
		typed:  "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --endpoint-type chat --streaming --concurrency 100 --request-count 1000 --isl 1000 --osl 500 --tokenizer Qwen/Qwen3-0.6B",
		engine: []string{"--ttft", "50ms", "--itl", "2ms", "--chunk-tokens", "25", "--slots", "1000", "--cache-tokens", "0"},
		judge: func(t *testing.T, _ string, s seen) {
			s.count(t, 1000)
			most, steady := concurrency(s.measured())
			t.Logf("at most %d at once, %.4f of the middle at that", most, steady)
			if most != 100 {
				t.Errorf("want 100 at once at most, got %d", most)
			}
			for _, r := range s.measured() {
				if r.PromptTokens != 1000 || r.MaxTokens != 500 || !r.Stream {
					t.Fatalf("want 1000 tokens in, a limit of 500, streamed, got %+v", r)
				}
			}
			if distinct := bodies(s.measured()); distinct != 1000 {
				t.Errorf("want 1000 prompts of their own, got %d", distinct)
			}
			s.says(t, "Time to First Token", "Request Throughput", "1,000.00", "Success Rate: 100%")
		},
	},
	{
		name:   "five concurrencies",
		typed:  `aiperf profile --model qwen3-0.6b --url "$ENDPOINT_URL" --endpoint-type chat --streaming --concurrency $c --request-count 1000 --isl 1000 --osl 500 --tokenizer Qwen/Qwen3-0.6B --artifact-dir "artifacts/pareto-c$c"`,
		cut:    []string{"--request-count 1000", "--request-count 600", "--osl 500", "--osl 100"},
		engine: []string{"--ttft", "50ms", "--itl", "2ms", "--chunk-tokens", "25", "--slots", "1000", "--cache-tokens", "0"},
		judge: func(t *testing.T, dir string, s seen) {
			s.count(t, 5*600)
			for i, c := range []int{10, 50, 100, 200, 500} {
				if most, _ := concurrency(s.measured()[i*600 : (i+1)*600]); most != c {
					t.Errorf("run %d: want %d at once at most, got %d", i, c, most)
				}
				has(t, dir, "artifacts/pareto-c"+[]string{"10", "50", "100", "200", "500"}[i]+"/profile_export.jsonl")
			}
		},
	},
	{
		name:   "a trace at its times",
		typed:  "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --endpoint-type chat --streaming --input-file mooncake_trace.jsonl --custom-dataset-type mooncake_trace --fixed-schedule --tokenizer Qwen/Qwen3-0.6B",
		files:  conversation("mooncake_trace.jsonl", 9*time.Second),
		engine: fast,
		judge:  likeTheFile("mooncake_trace.jsonl", true),
	},
	{
		name:   "a trace as fast as possible",
		typed:  "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --endpoint-type chat --streaming --input-file mooncake_trace.jsonl --custom-dataset-type mooncake_trace --tokenizer Qwen/Qwen3-0.6B",
		files:  conversation("mooncake_trace.jsonl", 9*time.Second),
		engine: fast,
		judge: func(t *testing.T, dir string, s seen) {
			rows := fileRows(t, dir, "mooncake_trace.jsonl")
			s.count(t, len(rows))
			s.lengths(t, sizes(rows))
			s.order(t, 1)
			if most, _ := concurrency(s.measured()); most != 1 {
				t.Errorf("want one at a time, got %d", most)
			}
		},
	},
	{
		name:   "five minutes at five times the speed",
		typed:  "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --endpoint-type chat --streaming --input-file mooncake_trace_5min_5x.jsonl --custom-dataset-type mooncake_trace --fixed-schedule --tokenizer Qwen/Qwen3-0.6B",
		files:  fiveTimes,
		engine: fast,
		judge:  likeTheFile("mooncake_trace_5min_5x.jsonl", true),
	},
	{
		name:   "goodput",
		typed:  `aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --endpoint-type chat --streaming --input-file mooncake_trace_5min_5x.jsonl --custom-dataset-type mooncake_trace --fixed-schedule --tokenizer Qwen/Qwen3-0.6B --goodput "time_to_first_token:370 request_latency:648"`,
		files:  fiveTimes,
		engine: []string{"--ttft", "200ms", "--itl", "1500us", "--chunk-tokens", "10", "--slots", "1000", "--cache-tokens", "0"},
		judge: func(t *testing.T, dir string, s seen) {
			likeTheFile("mooncake_trace_5min_5x.jsonl", true)(t, dir, s)
			good := 0
			for _, e := range export(t, dir) {
				if e.Metrics["time_to_first_token"].Value <= 370 && e.Metrics["request_latency"].Value <= 648 {
					good++
				}
			}
			if all := len(s.measured()); good == 0 || good == all {
				t.Errorf("want some within the bounds and some not, got %d of %d", good, all)
			}
			got := artifact[map[string]json.RawMessage](t, dir, "artifacts/profile_export_aiperf.json")
			var counted struct{ Avg float64 }
			if err := json.Unmarshal(got["good_request_count"], &counted); err != nil || int(counted.Avg) != good {
				t.Errorf("want good_request_count %d, got %s", good, got["good_request_count"])
			}
			s.says(t, "Goodput")
		},
	},
	{
		name:   "slices",
		typed:  "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --endpoint-type chat --streaming --input-file mooncake_trace_5min_5x.jsonl --custom-dataset-type mooncake_trace --fixed-schedule --tokenizer Qwen/Qwen3-0.6B --slice-duration 10",
		cut:    []string{"--slice-duration 10", "--slice-duration 3"},
		files:  fiveTimes,
		engine: fast,
		judge: func(t *testing.T, dir string, s seen) {
			likeTheFile("mooncake_trace_5min_5x.jsonl", true)(t, dir, s)
			has(t, dir, "artifacts/profile_export_aiperf_timeslices.csv", "artifacts/profile_export_aiperf_timeslices.json")
			s.says(t, "TREND ANALYSIS", "TTFT Range", "First slice TTFT")
		},
	},
	{
		name:   "cancellations",
		typed:  "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --endpoint-type chat --streaming --concurrency 10 --request-count 100 --request-cancellation-rate 20 --request-cancellation-delay 0.5 --isl 800 --osl 400 --tokenizer Qwen/Qwen3-0.6B",
		engine: []string{"--ttft", "50ms", "--itl", "2ms", "--chunk-tokens", "10", "--slots", "1000", "--cache-tokens", "0"},
		judge: func(t *testing.T, dir string, s seen) {
			if n := len(s.measured()); n != 100 {
				t.Errorf("want 100 requests, the engine received %d", n)
			}
			gone := 0
			for _, r := range s.measured() {
				if took := time.Duration(r.End - r.Arrival); r.Outcome == "gone" {
					gone++
					if took < 490*time.Millisecond || took > 900*time.Millisecond {
						t.Errorf("%s: want it cancelled after 0.5 s, got %v", r.ID, took)
					}
				}
				if r.PromptTokens != 800 || r.MaxTokens != 400 {
					t.Errorf("%s: want 800 tokens in and a limit of 400, got %d and %d", r.ID, r.PromptTokens, r.MaxTokens)
				}
			}
			// Each of 100 with 20 %: fewer than 6 or more than 37 come once in 20,000 seeds, and this one is always the same.
			if gone < 6 || gone > 37 {
				t.Errorf("want about 20 cancelled, the engine saw %d go", gone)
			}
			cancelled := 0
			for _, e := range export(t, dir) {
				if e.Metadata.Cancelled {
					cancelled++
				}
			}
			if cancelled != gone {
				t.Errorf("want the %d that the engine saw go in the export, got %d", gone, cancelled)
			}
		},
	},
	{
		name:   "the server's own metrics",
		typed:  "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --endpoint-type chat --streaming --concurrency 100 --request-count 1000",
		engine: []string{"--ttft", "20ms", "--itl", "500us", "--chunk-tokens", "50", "--slots", "1000", "--cache-tokens", "0"},
		judge: func(t *testing.T, dir string, s seen) {
			s.count(t, 1000)
			for _, r := range s.measured() {
				if r.PromptTokens != 550 || r.MaxTokens != 0 {
					t.Fatalf("want AIPerf's 550 tokens in and no limit, got %+v", r)
				}
			}
			has(t, dir, "artifacts/server_metrics_export.json")
		},
	},
	{
		name:   "other pages",
		typed:  `aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --server-metrics "http://server1:9090/metrics" "http://server2:9090/metrics"`,
		cut:    []string{`"http://server1:9090/metrics"`, `"http://$ENDPOINT_URL/metrics"`, `"http://server2:9090/metrics"`, `"http://$ENDPOINT_URL/metrics?again"`},
		engine: fast,
		judge: func(t *testing.T, dir string, s seen) {
			s.count(t, 10)
			for _, r := range s.measured() {
				if r.Stream {
					t.Fatalf("want it not streamed, got %+v", r)
				}
			}
			page, err := os.ReadFile(filepath.Join(dir, "artifacts/server_metrics_export.json"))
			if err != nil || !strings.Contains(string(page), "metrics1") || !strings.Contains(string(page), "metrics2") {
				t.Errorf("want both pages in server_metrics_export.json, got %v\n%.2000s", err, page)
			}
		},
	},
	{name: "plot", typed: "aiperf plot", files: runs("artifacts"), judge: drawn(".", "")},
	{name: "plot of two runs", typed: "aiperf plot --paths ./run1 ./run2", files: runs("run1", "run2"), judge: drawn(".", "run2")},
	{name: "dashboard", typed: "aiperf plot --dashboard", files: runs("artifacts"), serves: "8050"},
	{name: "plot, dark", typed: "aiperf plot --theme dark", files: runs("artifacts"), judge: drawn(".", `data-theme="dark"`)},
	{name: "plot elsewhere", typed: "aiperf plot --output ./my_plots", files: runs("artifacts"), judge: drawn("my_plots", "")},
	{name: "dashboard again", typed: "aiperf plot --dashboard", files: runs("artifacts"), serves: "8050"},
	{name: "dashboard on a port", typed: "aiperf plot --dashboard --port 8080", files: runs("artifacts"), serves: "8080"},
	{
		name:  "analysis of a trace",
		typed: "aiperf analyze-trace mooncake_trace.jsonl --output-file analysis.json",
		files: text("mooncake_trace.jsonl", `{"timestamp": 0, "input_length": 1024, "output_length": 20, "hash_ids": [1, 2]}
{"timestamp": 1000, "input_length": 1536, "output_length": 30, "hash_ids": [1, 2, 3]}
{"timestamp": 2000, "input_length": 1024, "output_length": 25, "hash_ids": [1, 2]}
{"timestamp": 3000, "input_length": 1536, "output_length": 40, "hash_ids": [2, 3, 4]}
{"timestamp": 4000, "input_length": 1024, "output_length": 22, "hash_ids": [1, 3]}
`),
		judge: func(t *testing.T, dir string, s seen) {
			got := artifact[map[string]any](t, dir, "analysis.json")
			for name, want := range map[string]float64{
				"total_requests": 5, "unique_prefixes": 7, "num_prefix_groups": 1, "cache_hit_rate": 2. / 3, "prefix_reuse_ratio": 7. / 12,
				"min_isl": 1024, "max_isl": 1536, "avg_isl": 1228.8, "min_osl": 20, "max_osl": 40, "avg_osl": 27.4,
			} {
				if v, _ := got[name].(float64); v < want-1e-10 || v > want+1e-10 {
					t.Errorf("%s: want %.10f, got %v", name, want, got[name])
				}
			}
			// The means of AIPerf's AnalysisStats; each has std_dev, min, p25, median, p75 and max beside it.
			for name, want := range map[string]float64{
				"isl_stats": 1228.8, "osl_stats": 27.4, "context_length_stats": 921.6, "unique_prompt_length_stats": 307.2, "hit_rate_stats": 2. / 3,
			} {
				m, _ := got[name].(map[string]any)
				if v, _ := m["mean"].(float64); v < want-1e-10 || v > want+1e-10 || len(m) != 7 {
					t.Errorf("%s: want a mean of %.10f among seven figures, got %v", name, want, m)
				}
			}
		},
	},
	{
		name:   "a changed trace",
		typed:  "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --input-file mooncake_trace.jsonl --custom-dataset-type mooncake_trace --synthesis-speedup-ratio 2.0 --synthesis-prefix-len-multiplier 1.5 --tokenizer Qwen/Qwen3-0.6B",
		files:  conversation("mooncake_trace.jsonl", 6*time.Second),
		engine: fast,
		judge: func(t *testing.T, dir string, s seen) {
			rows := fileRows(t, dir, "mooncake_trace.jsonl")
			s.count(t, len(rows))
			before, after := 0, 0
			for i, r := range byRow(t, s.measured()) {
				before, after = before+rows[i].Input, after+r.PromptTokens
			}
			if after <= before {
				t.Errorf("want longer prefixes, got %d tokens of %d", after, before)
			}
		},
	},
	{
		name:   "users",
		typed:  "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --endpoint-type chat --streaming --user-centric-rate 1.0 --num-users 15 --session-turns-mean 20 --shared-system-prompt-length 1000 --tokenizer Qwen/Qwen3-0.6B",
		cut:    []string{"--user-centric-rate 1.0 --num-users 15", "--user-centric-rate 10 --num-users 15 --request-count 60"},
		engine: fast,
		judge: func(t *testing.T, dir string, s seen) {
			s.count(t, 60)
			var times []float64
			for i := range 60 {
				times = append(times, float64(i)*100)
			}
			s.instants(t, times)
			turns := map[string][]exported{}
			for _, e := range export(t, dir) {
				turns[e.Metadata.Conversation] = append(turns[e.Metadata.Conversation], e)
			}
			midway := 0
			for who, all := range turns {
				slices.SortFunc(all, func(a, b exported) int { return int(a.Metadata.Start - b.Metadata.Start) })
				if all[0].Metadata.Turn > 0 {
					midway++
				}
				for i := 1; i < len(all); i++ {
					gap := time.Duration(all[i].Metadata.Start - all[i-1].Metadata.Start)
					if all[i].Metadata.Turn != all[i-1].Metadata.Turn+1 || gap < 1450*time.Millisecond || gap > 1600*time.Millisecond {
						t.Errorf("%s: want turn after turn, 15 users / 10 a second = 1.5 s apart, got turns %d and %d after %v", who, all[i-1].Metadata.Turn, all[i].Metadata.Turn, gap)
					}
				}
			}
			if midway < 10 {
				t.Errorf("want most of 15 users in the midst of their conversations at the start, got %d", midway)
			}
			for _, r := range s.measured() {
				if r.PromptTokens < 1000+550 {
					t.Errorf("%s: want a system prompt of 1000 tokens and a message of 550 at least, got %d", r.ID, r.PromptTokens)
				}
			}
		},
	},
}

// A traceRow is a line of a trace.
type traceRow struct {
	Timestamp float64 `json:"timestamp"` // ms
	Input     int     `json:"input_length"`
	Output    int     `json:"output_length"`
}

func fileRows(t *testing.T, dir, name string) []traceRow {
	t.Helper()
	rows, _ := outside.Lines[traceRow](t, filepath.Join(dir, name))
	if len(rows) == 0 {
		t.Fatalf("%s is empty", name)
	}
	return rows
}

func sizes(rows []traceRow) (all [][2]int) {
	for _, r := range rows {
		all = append(all, [2]int{r.Input, r.Output})
	}
	return all
}

// likeTheFile demands each row once, at its time, with its lengths.
func likeTheFile(name string, streamed bool) func(t *testing.T, dir string, s seen) {
	return func(t *testing.T, dir string, s seen) {
		rows := fileRows(t, dir, name)
		s.count(t, len(rows))
		s.lengths(t, sizes(rows))
		var times []float64
		for _, r := range rows {
			times = append(times, r.Timestamp)
		}
		s.instants(t, times)
		for _, r := range s.measured() {
			if r.Stream != streamed {
				t.Fatalf("want streamed: %v, got %+v", streamed, r)
			}
		}
	}
}

func bodies(all []request) int {
	distinct := map[string]bool{}
	for _, r := range all {
		distinct[r.Body] = true
	}
	return len(distinct)
}

func text(name, content string) func(*testing.T, string, string) {
	return func(t *testing.T, dir, _ string) { outside.Write(t, dir, name, content) }
}

func conversation(name string, to time.Duration) func(*testing.T, string, string) {
	return func(t *testing.T, dir, _ string) { outside.Conversation(t, filepath.Join(dir, name), to) }
}

// head is `head -n` of the trace, as the documents have it.
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

// fiveTimes cuts a part of the trace and speeds it up, with replayd's own tools: a minute where the document has five.
func fiveTimes(t *testing.T, dir, _ string) {
	outside.Conversation(t, filepath.Join(dir, "whole.jsonl"), 2*time.Minute)
	shell(t, dir, "replayd trace slice whole.jsonl --to 45s | replayd trace synth - --speedup 5 > mooncake_trace_5min_5x.jsonl")
}

// runs makes folders with a small run each.
func runs(names ...string) func(*testing.T, string, string) {
	return func(t *testing.T, dir, address string) {
		for _, name := range names {
			shell(t, dir, "replayd run --url "+address+" --streaming --concurrency 4 --request-count 40 --isl 50 --osl 20 --artifact-dir "+name)
		}
	}
}

func shell(t *testing.T, dir, command string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-ec", command)
	c.Dir = dir
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	if said, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, said)
	}
}

// drawn demands an HTML report somewhere below a folder, with some text in it.
func drawn(folder, words string) func(*testing.T, string, seen) {
	return func(t *testing.T, dir string, s seen) {
		var pages []string
		err := filepath.WalkDir(filepath.Join(dir, folder), func(path string, _ os.DirEntry, err error) error {
			if strings.HasSuffix(path, ".html") {
				pages = append(pages, path)
			}
			return err
		})
		if err != nil || len(pages) != 1 {
			t.Fatalf("want one HTML report in %s, got %q: %v", folder, pages, err)
		}
		page, err := os.ReadFile(pages[0])
		if err != nil || !strings.Contains(string(page), "<svg") && !strings.Contains(string(page), "<canvas") || !strings.Contains(string(page), words) {
			t.Errorf("%s: want pictures and %q in it, got %d bytes: %v", pages[0], words, len(page), err)
		}
		if !strings.Contains(s.said+s.warned, filepath.Base(pages[0])) {
			t.Errorf("want it said where the report is, got %q %q", s.said, s.warned)
		}
	}
}
