package cli

import (
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// A notTaken names flags of AIPerf that run does not take, and says why, or what does the same. Switches have no value.
type notTaken struct{ why, values, switches string }

// notTakenFlags lists every flag of AIPerf 0.5 and 0.13 that is neither run's own nor an alias (aiperf 0.13.0,
// config/flags/cli_config.py).
var notTakenFlags = []notTaken{
	{why: "the warm-up is counted in requests: --warmup-request-count", values: "num-warmup-sessions warmup-duration agentic-cache-warmup-duration"},
	{why: "requests in flight at the end are waited for, as long as their own limits allow (--request-timeout-seconds)", values: "benchmark-grace-period warmup-grace-period agentic-warmup-grace-period"},
	{why: "the warm-up has the run's --concurrency", values: "warmup-concurrency warmup-prefill-concurrency"},
	{why: "the warm-up goes as fast as --concurrency allows, without it one request at a time", values: "warmup-request-rate warmup-arrival-pattern"},
	{
		why:    "a configuration file for serve has ramps: stages",
		values: "request-rate-ramp-duration request-rate-series concurrency-ramp-duration prefill-concurrency-ramp-duration warmup-concurrency-ramp-duration warmup-prefill-concurrency-ramp-duration warmup-request-rate-ramp-duration",
	},
	{why: "prefill has no limit of its own: --concurrency bounds the requests in flight", values: "prefill-concurrency"},
	{why: "a file is sent in its order; the type random_pool draws from it", values: "dataset-sampling-strategy"},
	{why: "tokens are always the server's usage, if it sends one", switches: "use-server-token-count apply-chat-template"},
	{why: "max_tokens is always sent", switches: "use-legacy-max-tokens"},
	{why: "--extra-inputs min_tokens:N or ignore_eos:true does it", switches: "force-min-tokens no-force-min-tokens"},
	{why: "each conversation begins with a text of its own as it is: --isl", values: "user-context-prompt-length"},
	{why: "pages are read for the files of --artifact-dir only", switches: "no-server-metrics"},
	{why: "GPUs are read only where --gpu-telemetry says so", switches: "no-gpu-telemetry"},
	{why: "a terminal gets a bar, anything else the log", values: "ui ui-type stats-interval", switches: "no-sweep-table show-trace-timing"},
	{why: "there is one process: --shard is for several", values: "workers-max max-workers record-processors record-processor-service-count zmq-host zmq-ipc-path", switches: "zmq-dual-bind"},
	{why: "nothing is fetched: --tokenizer takes the file", values: "tokenizer-revision"},
	{why: "nothing is fetched, and no code of a tokenizer is run", switches: "tokenizer-trust-remote-code"},
	{why: "nothing is fetched: download the dataset and give it as --input-file", values: "hf-subset hf-weka-dataset dataset-filter"},
	{why: "profile_export.jsonl has a line for each request, and --save-prompts keeps the requests", values: "export-level profile-export-level", switches: "export-http-trace export-outputs-json"},
	{why: "the files have AIPerf's names, in --artifact-dir", values: "profile-export-prefix profile-export-file"},
	{why: "server metrics are in server_metrics_export.json; Prometheus scrapes them too (--web.listen-address)", values: "server-metrics-formats"},
	{why: "/metrics is at --web.listen-address", values: "api-host api-port"},
	{why: "/metrics has the figures for any collector: --web.listen-address", values: "otel-url otel-resource-attributes gen-ai-provider"},
	{
		why:    "nothing is uploaded: the files are in --artifact-dir",
		values: "mlflow-tracking-uri mlflow-experiment mlflow-run-name mlflow-tag mlflow-parent-run-id mlflow-artifact-glob wandb-project wandb-entity wandb-run-name wandb-tag",
	},
	{why: "replayd report makes the page", switches: "auto-plot no-auto-plot plot-required"},
	{why: "a command is one run: repeat it, and replayd report compares the runs", values: "num-profile-runs profile-run-cooldown-seconds confidence-level convergence-metric convergence-stat convergence-threshold convergence-mode", switches: "profile-run-disable-warmup-after-first no-profile-run-disable-warmup-after-first"},
	{why: "--random-seed is the seed of a run; the runs of a sweep have texts of their own", switches: "set-consistent-seed no-set-consistent-seed vary-seed-per-trial no-vary-seed-per-trial parameter-sweep-same-seed no-parameter-sweep-same-seed"},
	{
		why:    "a sweep is a list: --concurrency 10,50,100",
		values: "parameter-sweep-cooldown-seconds parameter-sweep-mode sweep-type variant sweep-variant concurrency-min concurrency-max concurrency-steps isl-min isl-max isl-steps osl-min osl-max osl-steps isl-osl-pairs",
	},
	{
		why: "nothing is searched: --concurrency 10,50,100 is a sweep that names its knee, and --goodput bounds it",
		values: "search-space search-metric search-stat search-direction search-max-iterations search-initial-points search-random-seed search-planner search-percentile-pooling search-sla search-sla-tier search-recipe search-style " +
			"optuna-sampler optuna-acquisition optuna-terminator bo-constraint-mode degradation-threshold degradation-metric-tag degradation-stat",
	},
	{why: "--goodput has the bounds, such as time_to_first_token:370, and --slo-attainment-fraction or --min-goodput the share", values: "ttft-sla-ms itl-sla-ms tpot-sla-ms e2e-sla-ms error-rate-sla"},
	{why: "a run is never ended for its failures: they are counted, and the guard of serve holds requests back", values: "failed-request-threshold"},
	{why: "a run has one --model", values: "model-selection-strategy"},
	{why: "a run has one --url; shards of a run can have one each", values: "url-strategy"},
	{why: "--wait-for-model-timeout asks for the models until the server lists them", values: "wait-for-model-mode wait-for-model-interval"},
	{why: "the engine is not controlled: clear its cache before the command", values: "reset-kv-cache-timeout-seconds reset-kv-cache-path", switches: "reset-kv-cache"},
	{why: "the engine is not controlled: profile it with its own tools", values: "server-profiler-timeout-seconds server-profiler-start-path server-profiler-stop-path", switches: "server-profiler"},
	{why: "only HTTP/1.1 over TCP is spoken", values: "transport transport-type request-content-type"},
	{why: "a lane keeps its connection, and opens one before it is needed", values: "connection-reuse-strategy"},
	{why: "the network is part of a user's wait; TTFT is measured from the write, with kernel timestamps", values: "network-latency-mean network-latency-ping-interval", switches: "network-latency-automatic"},
	{why: "a configuration file is for serve", values: "config scenario", switches: "unsafe-override"},
	{why: "texts are made of words that are one token each: --words", values: "prompt-corpus random-corpus-style"},
	{why: "--sequence-distribution has pairs of lengths with their shares", values: "random-range-ratio"},
	{why: "--shared-system-prompt-length shares one prefix; replayd trace synth makes trees of them", values: "prompt-prefix-pool-size prefix-prompt-pool-size num-prefix-prompts prompt-prefix-length prefix-prompt-length"},
	{why: "a system prompt of your own stands in the messages of --input-file", values: "system-prompt system-prompt-file"},
	{why: "replayd trace synth scales lengths, into a file", values: "synthesis-output-len-multiplier"},
	{why: "delays are those of the trace; --synthesis-speedup-ratio scales all times", values: "max-idle-gap-cap-seconds trace-idle-gap-cap-seconds system-idle-gap-cap-seconds", switches: "use-think-time-only"},
	{why: "--fixed-schedule sends each row at its time, and a turn after the previous turn has ended", switches: "open-loop-replay no-open-loop-replay open-loop-strict burst-phase-starts"},
	{why: "hash_ids define the shared prefixes, and are always used", switches: "omit-kv-hints"},
	{why: "--max-context leaves out or cuts single requests, not whole sessions", values: "max-context-length"},
	{why: "replayd trace slice --sample draws whole sessions, into a file", values: "trace-session-sample-ratio"},
	{why: "--request-count beyond the file repeats it, with other texts", switches: "allow-dataset-wrap no-allow-dataset-wrap"},
	{
		why: "text only: audio, images and video are not made",
		values: "audio-batch-size batch-size-audio audio-length-mean audio-length-stddev audio-format audio-depths audio-sample-rates audio-num-channels " +
			"image-width-mean image-width-stddev image-height-mean image-height-stddev image-batch-size batch-size-image image-format image-source image-source-sampling " +
			"video-batch-size batch-size-video video-duration video-fps video-width video-height video-synth-type video-format video-codec video-audio-sample-rate video-audio-num-channels video-audio-codec video-audio-depth",
		switches: "download-video-content uuid-and-strip",
	},
	{
		why:    "chat and completions only: embeddings and rankings have no tokens to time",
		values: "prompt-batch-size batch-size-text batch-size rankings-passages-mean rankings-passages-stddev rankings-passages-prompt-token-mean rankings-passages-prompt-token-stddev rankings-query-prompt-token-mean rankings-query-prompt-token-stddev",
	},
	{why: "answers are timed, not graded", values: "accuracy-benchmark accuracy-tasks accuracy-n-shots accuracy-grader accuracy-system-prompt", switches: "accuracy-enable-cot accuracy-no-enable-cot accuracy-verbose"},
}

// refused is the value of a flag that run does not take: its reason. The flag consumes its value, so that one line
// names all faults of a command line.
type refused string

func (refused) Set(string) error { return nil }
func (refused) String() string   { return "" }
func (refused) Type() string     { return "value" }

// addNotTaken adds the flags that run does not take, hidden.
func addNotTaken(f *pflag.FlagSet) {
	for _, group := range notTakenFlags {
		for _, name := range strings.Fields(group.values + " " + group.switches) {
			short := map[string]string{"config": "f", "prompt-batch-size": "b"}[name] // AIPerf's
			flag := f.VarPF(refused(group.why), name, short, group.why)
			flag.Hidden = true
		}
		for _, name := range strings.Fields(group.switches) {
			f.Lookup(name).NoOptDefVal = "true"
		}
	}
}

// refusedFlags reports a fault for each given flag that run does not take.
func refusedFlags(given *pflag.FlagSet, fault faults) {
	given.Visit(func(f *pflag.Flag) {
		if why, no := f.Value.(refused); no {
			fault("--"+f.Name, errors.New("is not taken: "+string(why)))
		}
	})
}

// aiperfLevels maps AIPerf's levels of the log to replayd's.
var aiperfLevels = map[string]string{
	"trace": "debug", "debug": "debug", "info": "info", "notice": "info", "success": "info", "warning": "warn", "error": "error", "critical": "error",
}

// A logLevel sets --log.level by AIPerf's name of a level. A switch has a level of its own.
type logLevel struct {
	flags  *pflag.FlagSet
	always string
}

// addLogLevels adds AIPerf's flags of the log. They are not aliases: replayd's own defaults hold with them.
func addLogLevels(f *pflag.FlagSet) {
	for _, l := range []struct{ name, short, always string }{
		{"log-level", "", ""}, {"verbose", "v", "debug"}, {"extra-verbose", "", "trace"}, // -vv is -v twice, with the same effect
	} {
		flag := f.VarPF(logLevel{f, l.always}, l.name, l.short, "as --log.level")
		flag.Hidden, flag.Annotations = true, map[string][]string{group: {string(AIPerf)}}
		if l.always != "" {
			flag.NoOptDefVal = "true"
		}
	}
}

func (l logLevel) Set(text string) error {
	if l.always != "" {
		text = l.always
	}
	level := aiperfLevels[strings.ToLower(text)]
	if level == "" {
		return errors.New(`want trace, debug, info, notice, success, warning, error or critical, got "` + text + `"`)
	}
	return l.flags.Set("log.level", level)
}

func (logLevel) String() string { return "" }
func (logLevel) Type() string   { return "level" }
