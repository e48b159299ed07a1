package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"replayd/internal/replay"
	"replayd/internal/scalar"
	"replayd/internal/schedule"
)

func TestSpellingDecidesDefaults(t *testing.T) {
	type want struct {
		who      Spelling
		url      string
		stream   bool
		arrival  string
		lanes    int
		salt     string
		maxWait  time.Duration
		total    time.Duration
		table    string
		folder   string
		rows     int
		duration time.Duration
	}
	const none = time.Duration(0)
	for line, w := range map[string]want{
		"trace.jsonl --url http://h:1":                                    {Own, "http://h:1", true, "exact", 256, "loop", 10 * time.Second, 10 * time.Minute, "replayd", "", 0, none},
		"trace.jsonl --url http://h:1 --concurrency 7 --requests 30":      {Own, "http://h:1", true, "concurrency", 7, "loop", 10 * time.Second, 10 * time.Minute, "replayd", "", 30, none},
		"trace.jsonl --url h:1 --arrival poisson --rate 2 --duration 10s": {Own, "http://h:1", true, "poisson", 256, "loop", 10 * time.Second, 10 * time.Minute, "replayd", "", 0, 10 * time.Second},
		"-m x --isl 10":            {AIPerf, "http://localhost:8000", true, "concurrency", 1, "none", none, longPatience, "aiperf", "artifacts", 10, none},
		"--isl 10 --concurrency 8": {AIPerf, "http://localhost:8000", true, "concurrency", 8, "none", none, longPatience, "aiperf", "artifacts", 16, none},
		"--synthetic-input-tokens-mean 10 --num-requests 4 --output-artifact-dir x": {AIPerf, "http://localhost:8000", true, "concurrency", 1, "none", none, longPatience, "aiperf", "x", 4, none},
		"--isl 10 --cache-bust system_prefix":                                       {AIPerf, "http://localhost:8000", true, "concurrency", 1, "session", none, longPatience, "aiperf", "artifacts", 10, none},
		"--isl 10 --num-sessions 4":                                                 {AIPerf, "http://localhost:8000", true, "concurrency", 1, "none", none, longPatience, "aiperf", "artifacts", 4, none},
		"--conversation-num 4 --conversation-turn-mean 3 --isl 10":                  {AIPerf, "http://localhost:8000", true, "concurrency", 1, "none", none, longPatience, "aiperf", "artifacts", 12, none},
		"--isl 10 --streaming --benchmark-duration 5":                               {AIPerf, "http://localhost:8000", true, "concurrency", 1, "none", none, longPatience, "aiperf", "artifacts", 0, 5 * time.Second},
		"--input-file t.jsonl --synthesis-speedup-ratio 2":                          {AIPerf, "http://localhost:8000", true, "exact", unlimited, "none", none, longPatience, "aiperf", "artifacts", 0, none},

		// A trace is sent at its own times with --fixed-schedule or a speedup, else as fast as --concurrency allows.
		"--input-file t.jsonl":                                 {AIPerf, "http://localhost:8000", true, "concurrency", 1, "none", none, longPatience, "aiperf", "artifacts", 0, none},
		"t.jsonl --streaming --fixed-schedule":                 {AIPerf, "http://localhost:8000", true, "exact", unlimited, "none", none, longPatience, "aiperf", "artifacts", 0, none},
		"t.jsonl --streaming --fixed-schedule --concurrency 9": {AIPerf, "http://localhost:8000", true, "exact", 9, "none", none, longPatience, "aiperf", "artifacts", 0, none},
		"--request-rate 5 --request-count 20 --concurrency 3":  {AIPerf, "http://localhost:8000", true, "poisson", 3, "none", none, longPatience, "aiperf", "artifacts", 20, none},
		"--request-rate 5 --arrival-smoothness 2":              {AIPerf, "http://localhost:8000", true, "gamma", unlimited, "none", none, longPatience, "aiperf", "artifacts", 10, none},
		"--request-rate inf":                                   {AIPerf, "http://localhost:8000", true, "concurrency", unlimited, "none", none, longPatience, "aiperf", "artifacts", 10, none},
		"--user-centric-rate 1 --num-users 15":                 {AIPerf, "http://localhost:8000", true, "users", unlimited, "none", none, longPatience, "aiperf", "artifacts", 10, none},
		"--trace-path t.jsonl":                                 {TraceReplay, "http://localhost:8000", true, "exact", unlimited, "none", none, longPatience, "tracereplay", "artifacts", 0, none},
		"--trace-path t.jsonl --host ::1 --port 9 --salt loop": {TraceReplay, "http://[::1]:9", true, "exact", unlimited, "loop", none, longPatience, "tracereplay", "artifacts", 0, none},
		"--isl 10 --streaming=false":                           {AIPerf, "http://localhost:8000", false, "concurrency", 1, "none", none, longPatience, "aiperf", "artifacts", 10, none},
		"--isl 10 --stream=false":                              {AIPerf, "http://localhost:8000", false, "concurrency", 1, "none", none, longPatience, "aiperf", "artifacts", 10, none},
		"--isl 10 --rate 3 --requests 4":                       {AIPerf, "http://localhost:8000", true, "poisson", unlimited, "none", none, longPatience, "aiperf", "artifacts", 4, none},
		"--isl 10 --num-prompts 4 --max-concurrency 2":         {AIPerf, "http://localhost:8000", true, "concurrency", 2, "none", none, longPatience, "aiperf", "artifacts", 4, none},

		// Names of vllm bench serve.
		"--url h:1 --num-prompts 50":                          {VLLM, "http://h:1", true, "concurrency", 50, "none", none, longPatience, "tracereplay", "", 50, none},
		"--base-url http://h:1 --random-input-len 9":          {VLLM, "http://h:1", true, "concurrency", 1000, "none", none, longPatience, "tracereplay", "", 1000, none},
		"--backend vllm --request-rate 2 --num-prompts 5":     {VLLM, "http://127.0.0.1:8000", true, "poisson", unlimited, "none", none, longPatience, "tracereplay", "", 5, none},
		"--request-rate 2 --burstiness 2 --max-concurrency 3": {VLLM, "http://127.0.0.1:8000", true, "gamma", 3, "none", none, longPatience, "tracereplay", "", 1000, none},
		"--port 9 --dataset-name random --save-result":        {VLLM, "http://127.0.0.1:9", true, "concurrency", 1000, "none", none, longPatience, "tracereplay", "artifacts", 1000, none},
		"--ignore-eos --save-result --result-dir r":           {VLLM, "http://127.0.0.1:8000", true, "concurrency", 1000, "none", none, longPatience, "tracereplay", "r", 1000, none},
		"t.jsonl --base-url h:1 --num-prompts 5":              {Own, "http://h:1", true, "exact", 256, "loop", 10 * time.Second, 10 * time.Minute, "replayd", "", 5, none},
		"t.jsonl --host h --port 9 --backend vllm":            {TraceReplay, "http://h:9", true, "exact", unlimited, "none", none, longPatience, "tracereplay", "artifacts", 0, none},
		"t.jsonl --url h:1 --save-result":                     {Own, "http://h:1", true, "exact", 256, "loop", 10 * time.Second, 10 * time.Minute, "replayd", "", 0, none},
	} {
		r, err := ordered(t, line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		target, l := r.Config.Targets[0], r.Config.Workloads[0]
		got := want{
			r.Who, target.URL, target.Stream, string(l.Arrival), l.Lanes, string(l.Prompt.Salt), l.MaxWait, target.Timeouts.Total,
			r.Table, r.Artifacts, l.Rows, l.Duration,
		}
		if got != w {
			t.Errorf("%s:\nwant %+v\ngot  %+v", line, w, got)
		}
	}
}

// Contradictory or meaningless flags are refused by name.
func TestPeersFlagsThatAreRefused(t *testing.T) {
	for line, want := range map[string]string{
		"t.jsonl --fixed-schedule --user-centric-rate 1 --num-users 2": "--user-centric-rate: contradicts --fixed-schedule",
		"t.jsonl --fixed-schedule --request-rate 1":                    "--request-rate: contradicts --fixed-schedule",
		"t.jsonl --fixed-schedule --arrival spread":                    "--arrival: contradicts --fixed-schedule",
		"--request-rate 1 --arrival constant":                          "--arrival: contradicts --request-rate",
		"--request-rate 1 --user-centric-rate 1 --num-users 2":         "--user-centric-rate: contradicts --request-rate",
		"--fixed-schedule":                                                       "--fixed-schedule: want --input-file too",
		"--request-rate -1":                                                      `--request-rate: want requests per second above 0, or inf, got "-1"`,
		"--user-centric-rate -2 --num-users 2":                                   "--user-centric-rate: want requests per second above 0, got -2",
		"--isl 5 --num-sessions 4 --request-count 3":                             "--num-sessions: contradicts --request-count",
		"--isl 5 --per-chunk-usage --stream=false":                               "--per-chunk-usage: needs streamed answers",
		"--request-rate 2 --lanes 0":                                             "--lanes: want",
		"--isl 5 --arrival exact":                                                `--arrival: want constant, poisson`,
		"--isl 5 --server-metrics=":                                              "--server-metrics: want an http or https address",
		"--isl 5 --metrics-map my_queue":                                         `--metrics-map: want FAMILY=NAME, got "my_queue": want a quantity of`,
		"--isl 5 --gpu-telemetry=":                                               "--gpu-telemetry: want an http or https address",
		"--isl 5 --slo-attainment-fraction 2":                                    "--slo-attainment-fraction: want 0 to 1, got 2",
		"--input-file t.jsonl --synthesis-max-isl -1":                            "--synthesis-max-isl: want 1 to 16777216, or 0 for none, got -1",
		"--isl 5 --goodput ttft:x,y":                                             "\n--goodput: want NAME:VALUE such as ttft:500ms, got \"y\"",
		"--isl 5 --num-sessions 0":                                               "--num-sessions: want an integer from 1 to",
		"--isl 5 --num-sessions 4 --session-turns-mean 3.5":                      "--num-sessions: needs conversations of one length",
		"--isl 5 --num-sessions 4 --session-turns-stddev 1":                      "--num-sessions: needs conversations of one length",
		"t.jsonl --num-sessions 4 --streaming":                                   "--num-sessions: needs conversations of one length",
		"--isl 5 --cache-bust system_prefix --salt loop":                         "--cache-bust: contradicts --salt",
		"--isl 5 --cache-bust first_turn_suffix":                                 "--cache-bust: want none, system_prefix or first_turn_prefix, got first_turn_suffix: a marker inside",
		"--isl 5 --cache-bust me":                                                `--cache-bust: want none, system_prefix or first_turn_prefix, got "me"`,
		"--isl 5 --cache-bust first_turn_prefix --shared-system-prompt-length 5": "--cache-bust: want system_prefix",
		"--isl 5 --conversation-turn-delay-ratio -1":                             "--conversation-turn-delay-ratio: want 0 to 1000, got -1",
		"--num-users 3":                                                          "--num-users: want --user-centric-rate too",
		"--user-centric-rate 1":                                                  "--num-users: want an integer ≥ 1",
		"--isl 5 --request-count 0":                                              "--request-count: want an integer ≥ 1, got 0",
		"a.jsonl --input-file b.jsonl":                                           "--input-file: want it or TRACE, got both",
		"a.jsonl --custom-dataset-type multi_turn":                               "--custom-dataset-type: want --input-file in place of TRACE",
		"a.jsonl --public-dataset sharegpt":                                      "--public-dataset: want --input-file in place of TRACE",
		"a.jsonl --trace-path b.jsonl":                                           "--trace-path: want it or TRACE, got both",
		"--trace-path b.jsonl --streaming":                                       "want the flags of one of them",
		"--trace-path b.jsonl --trace-mode text":                                 `--trace-mode: want trace or benchmark, got "text"`,
		"--trace-path b.jsonl --backend tgi":                                     "--backend: want vllm",
		"--trace-path b.jsonl --url h:1 --port 3":                                "--port: contradicts --url",
		"--trace-path b.jsonl --dataset-name sonnet --trace-mode benchmark":      "--dataset-name: dataset sonnet: is lines of one poem",
		"--isl 5 --endpoint-type embeddings":                                     `--endpoint-type: want chat or completions`,
		"--isl 5 --endpoint /v1/completions --endpoint-type chat": "--endpoint: ends in /completions, " +
			"which is api completions, and api is chat",
		"--isl 5 --endpoint /x --endpoint-path /y":                             "--endpoint: want only one of it and --endpoint-path",
		"--isl 5 --api chat --endpoint-type chat":                              "--endpoint-type: want only one of it and --api",
		"--isl 5 --input-file t.jsonl":                                         "--isl: needs synthetic requests",
		"--isl 5 --request-cancellation-rate 120":                              "--request-cancellation-rate: want 0 to 100",
		"--isl 5 --request-cancellation-delay 1":                               "--request-cancellation-delay: want --request-cancellation-rate too",
		"--isl 5 --random-output-len 4":                                        "--isl is a flag of aiperf and --random-output-len is a flag of vllm bench serve: want the flags of one of them",
		"t.jsonl --random-input-len 4":                                         `TRACE: want --dataset-path in place of "t.jsonl"`,
		"--random-input-len 0":                                                 "--random-input-len: want a number ≥ 1, got 0",
		"--num-requests 0 --isl 5":                                             "--num-requests: want an integer ≥ 1, got 0",
		"--isl 5 --rate 3 --request-rate 4":                                    "--request-rate: want only one of it and --rate",
		"--isl 5 --seed 3 --random-seed 4":                                     "--random-seed: want only one of it and --seed",
		"--isl 5 --extra-inputs n:1 n:2":                                       "--extra-inputs: want n once, got it twice",
		"--url h:1 --num-prompts 5 --goodput ttft:500 tpoot:50":                "--goodput: tpoot: want one of",
		"--url h:1 --num-prompts 5 --random-range-ratio 0.5":                   "--random-range-ratio: is not taken: --sequence-distribution has pairs",
		"--url h:1 --ramp-up-strategy linear":                                  "--ramp-up-strategy: is a flag of vllm bench serve: a configuration file for serve has ramps",
		"--dataset-name sonnet --dataset-path x":                               "--dataset-name: dataset sonnet: is lines of one poem",
		"--url h:1 --num-prompts 0":                                            "--num-prompts: want an integer ≥ 1, got 0",
		"--dataset-name sharegpt":                                              "--dataset-path: want the file of sharegpt: nothing is downloaded",
		"--backend tgi --num-prompts 3":                                        "--backend: want openai or vllm (completions) or openai-chat (chat)",
		"--target http://h --max-seconds 3":                                    "--target: is a flag of guidellm: --url has the address\n--max-seconds: is a flag of guidellm",
		"--sequence-distribution 256,128:40;512,256:50":                        "--sequence-distribution: want shares that are 100 percent together, got 90",
		"--input-file t.jsonl --custom-dataset-type single_turn --format vllm": "--format: contradicts --custom-dataset-type single_turn",
		"--isl 5 --benchmark-grace-period 3":                                   "--benchmark-grace-period: want --benchmark-duration too",
		"--isl 5 --benchmark-duration 3 --benchmark-grace-period x":            "--benchmark-grace-period: want seconds",
		`--isl 5 --goodput "ttfb_x:3"`:                                         "--goodput: ttfb_x: want one of",
		`--isl 5 --goodput "time_to_first_token:-3"`:                           "--goodput: time_to_first_token: want a time from 0 to",
		"--isl 5 --synthesis-speedup-ratio 2":                                  "--synthesis-*: want --input-file too",
		"t.jsonl --synthesis-prompt-len-multiplier -1":                         "--synthesis-prompt-len-multiplier: want a number above 0",
		"--isl -5":                                            "--isl: want",
		`--isl 5 --sequence-distribution "1,2"`:               "--sequence-distribution",
		"t.jsonl --url h:1 --concurrency 4 --lanes 5":         "--lanes: contradicts --concurrency",
		"t.jsonl --url h:1 --concurrency 4,x":                 "--concurrency: want an integer",
		"t.jsonl --url h:1 --arrival exact --concurrency 4,5": "--concurrency: want one number with arrival exact",
		"t.jsonl --url h:1 --percentiles 101":                 "--percentiles: want numbers above 0 and below 100",
		"t.jsonl --url h:1 --table xml":                       "--table: want replayd, aiperf or tracereplay",
		"t.jsonl --url h:1 --rate 3":                          "--rate: needs arrival",
		"t.jsonl --url h:1 --gpus -1":                         "--gpus: want an integer ≥ 0",
		"t.jsonl --url h:1 --result-dir x":                    "--result-dir: want --save-result or --save-prompts too",
		"t.jsonl --url h:1 --warmup 3 --start next:1m":        "--warmup: contradicts --start",
		"--isl 0":                             "--isl: want a number ≥ 1, got 0",
		"--isl 5 --osl-stddev 2":              "--osl-stddev: want --osl too",
		"--isl 5 --benchmark-duration 0":      "--benchmark-duration: want seconds > 0, got 0",
		"--isl 5 --slice-duration 0":          "--slice-duration: want seconds > 0, got 0",
		"--isl 5 --request-timeout-seconds 0": "--request-timeout-seconds: want seconds > 0, got 0",
		"--isl 5 --arrival-pattern constant":  "--arrival-pattern: want --request-rate too",
		"--isl 5 --arrival-smoothness 2":      "--arrival-smoothness: want --request-rate too",
		"--request-rate 2 --arrival-pattern constant --arrival-smoothness 2":                     `--arrival-smoothness: needs --arrival-pattern gamma, got "constant"`,
		"--input-file t.jsonl --session-turns-mean 3":                                            "--session-turns-mean: needs synthetic requests",
		"--input-file t.jsonl --output-tokens-mean 3.5":                                          "--output-tokens-mean: want an integer from 1 to 16777216 beside a file, got 3.5",
		"--input-file t.jsonl --osl-stddev 3":                                                    "--osl-stddev: needs synthetic requests",
		"--input-file t.jsonl --num-dataset-entries 3":                                           "--num-dataset-entries: needs synthetic requests",
		"--isl 5 --session-turns-mean 2 --num-dataset-entries 3":                                 "--num-dataset-entries: needs single-turn requests",
		"--isl 5 --num-dataset-entries 0":                                                        "--num-dataset-entries: want an integer ≥ 1, got 0",
		"--input-file t.jsonl --fixed-schedule-start-offset 3":                                   "--fixed-schedule-start-offset: want --fixed-schedule too",
		"t.jsonl --fixed-schedule --fixed-schedule-start-offset 3 --fixed-schedule-end-offset 2": "--fixed-schedule-end-offset: want milliseconds, and the end behind the start, got 3 to 2",
		"--input-file t.jsonl --custom-dataset-type mooncake":                                    "--custom-dataset-type: want mooncake_trace, burst_gpt_trace, bailian_trace, weka_trace, raw_payload, single_turn, multi_turn, random_pool, sharegpt, got",
		"--isl 5 --gpu-telemetry dash":                                                           "--gpu-telemetry: want pynvml or addresses",
		"--isl 5 --api-key k --http.config.file none.yml":                                        "--api-key: contradicts --http.config.file",
		"--trace-path b.jsonl --trace-mode benchmark":                                            "--dataset-path: want the file of sharegpt: nothing is downloaded",
		"--trace-path b.jsonl --trace-mode benchmark --dataset-name bundled":                     "--tokenizer: want",
	} {
		_, err := ordered(t, line)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\nwant %q\ngot  %v", line, want, err)
		}
	}
}

func TestInWords(t *testing.T) {
	for line, want := range map[string]string{
		"run --server-metrics http://a/m b:9090 trace.jsonl -m x": "run --server-metrics http://a/m --server-metrics b:9090 trace.jsonl -m x",
		"report --paths a b --theme dark":                         "report --paths a --paths b --theme dark",
		"report --paths=a b":                                      "report --paths=a b",
		"run --server-metrics":                                    "run --server-metrics",
		"run -- --paths a b":                                      "run -- --paths a b",
		"run a b --gpu-telemetry n1:9400 n2:9400":                 "run a b --gpu-telemetry n1:9400 --gpu-telemetry n2:9400",
		"run --extra-inputs a:1 b:2 t.jsonl -H X:y Z:w -m x":      "run --extra-inputs a:1 --extra-inputs b:2 t.jsonl -H X:y -H Z:w -m x",
	} {
		if got := strings.Join(InWords(strings.Fields(line)), " "); got != want {
			t.Errorf("%s: want %s, got %s", line, want, got)
		}
	}
}

func TestTypedHidesSecrets(t *testing.T) {
	for line, want := range map[string]string{
		"run --header Authorization:x --header=X:y --isl 5":  "replayd run --header … --header=… --isl 5",
		"run -H A:x B:y -HC:z --isl 5":                       "replayd run -H … … -H… --isl 5",
		"run --extra-inputs key:x top_p:1 t.jsonl --url h:1": "replayd run --extra-inputs … … t.jsonl --url h:1",
		"run --endpoint-path /d?a=1&sig=x --url h:1?api-key=x": "replayd run --endpoint-path /d?a=1&sig=xxxxx " +
			"--url h:1?api-key=xxxxx",
		"run --api-key -x t.jsonl":                             "replayd run --api-key … t.jsonl",
		"run t.jsonl --api-key=x --server-metrics a:1 b:2 --o": "replayd run t.jsonl --api-key=… --server-metrics a:1 b:2 --o",
	} {
		if got := Typed(strings.Fields(line)); got != want {
			t.Errorf("%s: want %s, got %s", line, want, got)
		}
	}
}

// AIPerf's flags set the corresponding fields of replayd.
func TestPeersFlagsArrive(t *testing.T) {
	r, err := ordered(t, `--streaming --url h:1/gw --endpoint /v1/chat/completions --endpoint-type chat --extra-inputs ignore_eos:true "name:abc" -H X-A:b --api-key k
		--request-cancellation-rate 20 --request-cancellation-delay 0.5 --session-turns-mean 3 --session-turn-delay-mean 250 --random-seed 7
		--shared-system-prompt-length 100 --server-metrics http://s1:9090/metrics s2:9090/metrics --gpu-telemetry n:9400/metrics --warmup-request-count 4
		--goodput "time_to_first_token:370 request_latency:648"`)
	if err != nil {
		t.Fatal(err)
	}
	w, target := r.Config.Workloads[0], r.Config.Targets[0]
	if target.URL != "http://h:1/gw" || target.Path != "/v1/chat/completions" ||
		target.ExtraBody["ignore_eos"] != any(true) || target.ExtraBody["name"] != "abc" || w.Request.Headers["X-A"] != "b" {
		t.Errorf("target: got %+v %+v", target, w.Request)
	}
	if w.Cancel != (replay.Cancel{Ratio: 0.2, After: 500 * time.Millisecond}) || w.Warmup.Requests != 4 || w.Prompt.Seed != 7 {
		t.Errorf("workload: got %+v", w)
	}
	if s := w.Synthetic; s.InputTokens != 550 || s.Turns != 3 || s.SystemTokens != 100 || s.TurnDelay != 250*time.Millisecond {
		t.Errorf("synthetic: got %+v", s)
	}
	var pages []string
	for _, t := range r.Config.Targets[1:3] {
		pages = append(pages, t.Metrics.URL)
	}
	if want := []string{"http://s1:9090/metrics", "http://s2:9090/metrics"}; !slices.Equal(pages, want) {
		t.Errorf("pages: want %q, got %q", want, pages)
	}
	if a := target.HTTP.Authorization; a == nil || a.Type != "Bearer" || a.Credentials != "k" {
		t.Errorf("key: want it as a bearer's, got %+v", a)
	}
	if len(r.Config.GPUs) != 1 || r.Config.GPUs[0].DCGMExporter != "http://n:9400/metrics" {
		t.Errorf("gpus: got %+v", r.Config.GPUs)
	}
	if got := r.SLO.String(); got != "ttft:370ms,e2e:648ms" {
		t.Errorf("goodput: got %s", got)
	}
}

// TestHistoryOfMultiTurn: the turns of a multi_turn file have no answers, so the server's are used unless a flag says otherwise.
func TestHistoryOfMultiTurn(t *testing.T) {
	const line = "--url h:1 --input-file t.jsonl --custom-dataset-type multi_turn"
	for more, want := range map[string]bool{"": true, " --history=true": true, " --history=false": false} {
		r, err := ordered(t, line+more)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Config.Workloads[0].Prompt.History; got != want {
			t.Errorf("%q: want history %t, got %t", more, want, got)
		}
	}
}

// TestChangedFlagsExist: pflag says of an unknown name that it was not changed, so a renamed flag would be missed silently.
func TestChangedFlagsExist(t *testing.T) {
	c, made := &cobra.Command{Use: "run"}, &cobra.Command{Use: "synth"}
	NewFlags().Add(c)
	NewSynth().Add(made)
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`Changed\("([a-z.-]+)"\)`).FindAllStringSubmatch(string(text), -1) {
			if n++; c.Flags().Lookup(m[1]) == nil && made.Flags().Lookup(m[1]) == nil {
				t.Errorf("%s: Changed(%q): there is no such flag", path, m[1])
			}
		}
	}
	if n < 10 {
		t.Errorf("want 10 uses or more, got %d", n)
	}
}

// The warm-up of a run at a rate has the concurrency that is given.
func TestWarmupLanes(t *testing.T) {
	for line, want := range map[string]int{"--isl 5 --request-rate 3 --concurrency 7": 7, "--isl 5 --request-rate 3": 0} {
		r, err := ordered(t, line)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Config.Workloads[0].WarmupLanes; got != want {
			t.Errorf("%s: want %d, got %d", line, want, got)
		}
	}
}

// With Weka's sessions, AIPerf's concurrency is a number of sessions, and its flags say where the first ones begin.
func TestSessionsOfWeka(t *testing.T) {
	for line, want := range map[string]schedule.Pattern{
		"--input-file t.json --custom-dataset-type weka_trace --concurrency 5":                                  {Arrival: "sessions", AtOnce: 5},
		"--input-file t.json --custom-dataset-type weka_trace --trajectory-start-min-ratio 0.5":                 {Arrival: "sessions", AtOnce: 1, Within: scalar.Within{0.5, 0.75}},
		"--input-file t.json --custom-dataset-type weka_trace --fixed-schedule":                                 {Arrival: "exact"},
		"--input-file t.jsonl --custom-dataset-type mooncake_trace --concurrency 5":                             {Arrival: "concurrency"},
		"t.json --url http://h:1 --sessions-at-once 7 --start-within 10-20%":                                    {Arrival: "sessions", AtOnce: 7, Within: scalar.Within{0.1, 0.2}},
		"t.json --url http://h:1 --arrival poisson --rate 0.5 --rate-of sessions":                               {Arrival: "poisson"},
		"--input-file t.json --custom-dataset-type weka_trace --concurrency 5 --trajectory-start-max-ratio 0.3": {Arrival: "sessions", AtOnce: 5, Within: scalar.Within{0.25, 0.3}},
	} {
		r, err := ordered(t, line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if got := r.Config.Workloads[0]; got.Arrival != want.Arrival || got.AtOnce != want.AtOnce || got.Within != want.Within {
			t.Errorf("%s: got %s, %d at once, %v", line, got.Arrival, got.AtOnce, got.Within)
		}
	}
	for line, want := range map[string]string{
		"--input-file t.json --custom-dataset-type weka_trace --trajectory-start-min-ratio 0.9": "--trajectory-start-min-ratio: want 0 to --trajectory-start-max-ratio, which is at most 1, got 0.9 and 0.75",
		"--isl 5 --trajectory-start-min-ratio 0.5":                                              "--trajectory-start-min-ratio: needs arrival sessions, got arrival concurrency",
		"--input-file t.json --custom-dataset-type weka_trace --concurrency 5,10":               "--concurrency: want one number with arrival sessions, got 2",
	} {
		if _, err := ordered(t, line); err == nil || err.Error() != want {
			t.Errorf("%s: got %v\nwant %s", line, err, want)
		}
	}
}

// AIPerf's flags change the delays between turns. A cap of 0 seconds means no delay there, and no limit here.
func TestTurnDelays(t *testing.T) {
	for line, want := range map[string]schedule.TurnDelay{
		"--isl 5": {Scale: 1},
		"--isl 5 --session-delay-ratio 0.5 --inter-turn-delay-cap-seconds 2.5": {Scale: 0.5, Max: 2500 * time.Millisecond},
		"--isl 5 --inter-turn-delay-cap-seconds 0":                             {Scale: 0},
		"--isl 5 --ignore-trace-delays":                                        {Scale: 0},
		"--input-file t.jsonl --fixed-schedule --ignore-trace-delays":          {Scale: 1},
		"t.jsonl --url http://h:1 --turn-delay-scale 2 --turn-delay-max 1m":    {Scale: 2, Max: time.Minute},
	} {
		r, err := ordered(t, line)
		if err != nil {
			t.Errorf("%s: %v", line, err)
		} else if got := r.Config.Workloads[0].TurnDelay; got != want {
			t.Errorf("%s: want %+v, got %+v", line, want, got)
		}
	}
}
