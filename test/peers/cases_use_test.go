//go:build peers

package peers_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// steady is an engine that computes one prompt at a time, 8 ms each at 1,000 tokens. So requests end one by one, and do
// not all start again at one instant. The number of requests in flight does not slow them.
var steady = []string{"--prefill-rate", "125000", "--decode-rate", "700", "--batch-cost", "0", "--chunk-tokens", "25", "--slots", "1000", "--cache-tokens", "0"}

// sliceSpan is the length of a slice. near is how far a request may be from its row's time.
const (
	sliceSpan = 2500 * time.Millisecond
	near      = 50 * time.Millisecond
)

// concurrencies are the values of the loop.
var concurrencies = []int{10, 50, 100, 200, 500}

// useCases has the five command lines of the guide to AIPerf 0.5.
var useCases = []peer{
	{
		name:   "a hundred at once",
		typed:  "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --endpoint-type chat --streaming --concurrency 100 --request-count 1000 --isl 1000 --osl 500 --tokenizer Qwen/Qwen3-0.6B",
		engine: steady,
		alone:  true,
		judge: func(t *testing.T, _ string, s seen) {
			s.count(t, 1000)
			s.streamed(t, true)
			most, share := crowd(s.measured())
			t.Logf("in flight in the middle: %s", shares(share))
			if most != 100 {
				t.Errorf("want 100 at once at most, got %d", most)
			}
			// A lane looks free from the time its answer has left the engine until its next request arrives. On a busy machine two or
			// three lanes may look free at once.
			if near := share[100] + share[99]; share[100] < 0.8 || near < 0.95 {
				t.Errorf("want 100 at once in the middle, 99 for as long as one follows another, got %s", shares(share))
			}
			chunks := 0
			for _, r := range s.measured() {
				if r.PromptTokens != 1000 || r.MaxTokens != 500 {
					t.Fatalf("want 1000 tokens in and a limit of 500, got %+v", r)
				}
				chunks += 1 + (r.OutputTokens+23)/25
			}
			t.Logf("CPU of the command: %v, %v a request, with %d chunks of each", s.cpu, s.cpu/1000, chunks/1000)
			if n := distinct(s.measured()); n != 1000 {
				t.Errorf("want 1000 prompts of their own, got %d", n)
			}
			s.says(t, "Time to First Token (ms) │", "Request Throughput (requests/sec) │", "Request Count (requests) │ 1,000.00", "Success Rate: 100%")
		},
	},
	{
		name:  "five concurrencies",
		typed: `aiperf profile --model qwen3-0.6b --url "$ENDPOINT_URL" --endpoint-type chat --streaming --concurrency $c --request-count 1000 --isl 1000 --osl 500 --tokenizer Qwen/Qwen3-0.6B --artifact-dir "artifacts/pareto-c$c"`,
		cut:   []string{"--request-count 1000", "--request-count 600", "--osl 500", "--osl 100"},
		// An answer takes longer the more requests are in flight;
		// otherwise the first ends before the five hundredth is sent.
		engine: []string{"--ttft", "100ms", "--decode-rate", "2000", "--batch-cost", "0.03", "--chunk-tokens", "25", "--slots", "1000", "--cache-tokens", "0"},
		alone:  true,
		judge: func(t *testing.T, dir string, s seen) {
			s.count(t, len(concurrencies)*600)
			s.streamed(t, true)
			for i, c := range concurrencies {
				all := s.measured()
				part := all[min(len(all)-1, i*600):min(len(all), (i+1)*600)]
				// On a busy machine the first of 500 has ended before the last is sent.
				if most, _ := crowd(part); most > c || most <= slices.Max(append(concurrencies[:i:i], 1)) {
					t.Errorf("run %d: want %d at once at most, and more than in the runs before, got %d", i, c, most)
				}
				if n := distinct(part); n != len(part) {
					t.Errorf("run %d: want %d prompts of their own, got %d", i, len(part), n)
				}
				if lines := export(t, filepath.Join(dir, fmt.Sprint("artifacts/pareto-c", c))); len(lines) != 600 {
					t.Errorf("pareto-c%d: want 600 requests, got %d", c, len(lines))
				}
			}
			for _, r := range s.measured() {
				if r.PromptTokens != 1000 || r.MaxTokens != 100 {
					t.Fatalf("want 1000 tokens in and a limit of 100, got %+v", r)
				}
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
		files:  conversation("mooncake_trace.jsonl", 12*time.Second),
		engine: remembering,
		judge: func(t *testing.T, dir string, s seen) {
			rows := fileRows(t, dir, "mooncake_trace.jsonl")
			s.rows(t, rows)
			s.streamed(t, true)
			s.oneByOne(t, rows)
			s.prefixes(t, rows)
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
			// By the engine's log an answer of n tokens takes 200 + 1.5·(n−1) ms, and hardly more.
			quick, slow := 0, 0
			for _, r := range s.measured() {
				switch took := time.Duration(r.End - r.Arrival); {
				case took < 600*time.Millisecond:
					quick++
				case took > 648*time.Millisecond:
					slow++
				}
			}
			all := len(s.measured())
			if quick == 0 || slow == 0 {
				t.Errorf("want some within the bounds and some not, got %d and %d of %d", quick, slow, all)
			}
			got := artifact[map[string]json.RawMessage](t, dir, "artifacts/profile_export_aiperf.json")
			var good struct{ Avg float64 }
			if err := json.Unmarshal(got["good_request_count"], &good); err != nil || int(good.Avg) < quick || int(good.Avg) > all-slow {
				t.Errorf("want good_request_count from %d to %d of %d, got %s", quick, all-slow, all, got["good_request_count"])
			}
			s.says(t, "Goodput (requests/sec) │", fmt.Sprintf("Goodput: %d of %d requests", int(good.Avg), all))
		},
	},
	{
		name:   "slices",
		typed:  "aiperf profile --model qwen3-0.6b --url $ENDPOINT_URL --endpoint-type chat --streaming --input-file mooncake_trace_5min_5x.jsonl --custom-dataset-type mooncake_trace --fixed-schedule --tokenizer Qwen/Qwen3-0.6B --slice-duration 10",
		cut:    []string{"--slice-duration 10", "--slice-duration 2.5"},
		files:  fiveTimes,
		engine: fast,
		judge: func(t *testing.T, dir string, s seen) {
			likeTheFile("mooncake_trace_5min_5x.jsonl", true)(t, dir, s)
			has(t, dir, "artifacts/profile_export_aiperf_timeslices.csv")
			got := artifact[struct {
				Timeslices []struct {
					Count struct{ Avg float64 } `json:"request_count"`
				}
			}](t, dir, "artifacts/profile_export_aiperf_timeslices.json")
			all := s.measured()
			if want := int((all[len(all)-1].Arrival - all[0].Arrival) / int64(sliceSpan)); len(got.Timeslices) < want || len(got.Timeslices) > want+2 {
				t.Errorf("want %d slices or one more, got %d", want, len(got.Timeslices))
			}
			for i, slice := range got.Timeslices {
				least, most := 0, 0 // by the engine's log: a request near a border may be on either side
				for _, r := range all {
					at := time.Duration(r.Arrival-all[0].Arrival) - time.Duration(i)*sliceSpan
					if at >= near && at < sliceSpan-near {
						least++
					}
					if at >= -near && at < sliceSpan+near {
						most++
					}
				}
				if n := int(slice.Count.Avg); n < least || n > most {
					t.Errorf("slice %d: want %d to %d requests, got %d", i, least, most, n)
				}
			}
			s.says(t, "TREND ANALYSIS", "TTFT Range:", "Throughput Range:", "First slice TTFT:")
		},
	},
}
