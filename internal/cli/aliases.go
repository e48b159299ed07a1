package cli

import (
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"replayd/internal/config"
)

// A Spelling is the program whose flags a command line uses. It decides the defaults.
type Spelling string

// Spellings.
const (
	Own         Spelling = "replayd"
	AIPerf      Spelling = "aiperf"      // `aiperf profile`, 0.5
	TraceReplay Spelling = "tracereplay" // trace_replay.py
)

// aliases are the flags of other load generators that run accepts, with their original meaning. docs/how-to/from-aiperf.md and
// docs/how-to/from-tracereplay.md describe each flag.
type aliases struct {
	endpointType, endpoint string
	streaming              bool
	inputFile, datasetType string
	madeUp                 config.Synthetic // synthetic requests; the delays are in turnDelay and turnDelayStddev
	rescale                config.Rescale
	randomSeed             uint64
	fixedSchedule          bool
	requestRate            string
	rateMode               string
	smoothness             float64
	requestCount           int
	sessions               int
	benchmarkDuration      secondsValue
	warmupCount            int
	userRate               float64
	users                  int
	turnDelay              float64 // milliseconds
	turnDelayStddev        float64
	cancelPercent          float64
	cancelDelay            secondsValue
	Slice                  secondsValue
	serverMetrics          []string
	gpuTelemetry           []string
	publicDataset          string
	extraInputs, headers   []string
	apiKey                 string
	requestTimeout         secondsValue
	waitForModel           secondsValue
	attainment             float64
	noSchedule             bool
	delayRatio             float64
	delayCap               secondsValue
	noDelays               bool
	cacheBust              string
	startFrom, startTo     float64 // shares of a session's requests
	startOffset, endOffset int     // milliseconds
	autoOffset             bool

	backend, host          string
	port                   int
	tracePath, traceMode   string
	datasetName            string
	datasetPath            string
	savePrompts, saveExcel bool
	resultDir              string
}

// sets returns the aliases by the program that they come from.
func (a *aliases) sets() map[Spelling]*pflag.FlagSet {
	sets := map[Spelling]*pflag.FlagSet{}
	f := pflag.NewFlagSet(string(AIPerf), pflag.ContinueOnError)
	f.SortFlags, sets[AIPerf] = false, f
	f.StringVar(&a.endpointType, "endpoint-type", "chat", "chat or completions")
	f.StringVar(&a.endpoint, "endpoint", "", "path of the API, such as /v1/chat/completions")
	f.BoolVar(&a.streaming, "streaming", false, "stream the answers; without it one JSON answer: no TTFT, no ITL")
	f.StringVar(&a.inputFile, "input-file", "", "file of requests, of the type that --custom-dataset-type names")
	f.StringVar(&a.datasetType, "custom-dataset-type", "", "mooncake_trace, burst_gpt_trace, bailian_trace, weka_trace, single_turn, multi_turn or random_pool; empty: by the file")
	f.StringVar(&a.publicDataset, "public-dataset", "", "sharegpt: with --input-file, the file that was downloaded")
	f.BoolVar(&a.fixedSchedule, "fixed-schedule", false, "send at the file's timestamps; without it in the file's order, as fast as --concurrency allows")
	f.IntVar(&a.startOffset, "fixed-schedule-start-offset", 0, "leave out rows before it, in milliseconds of the file")
	f.IntVar(&a.endOffset, "fixed-schedule-end-offset", 0, "leave out rows after it, in milliseconds of the file")
	f.BoolVar(&a.autoOffset, "fixed-schedule-auto-offset", false, "count from the file's first row, as is always done")
	f.Float64Var(&a.madeUp.InputTokens, "isl", 550, "mean input length in tokens, of made-up requests")
	f.Float64Var(&a.madeUp.InputStddev, "isl-stddev", 0, "its standard deviation")
	f.Float64Var(&a.madeUp.OutputTokens, "osl", 0, "mean output length in tokens; 0: no limit is sent")
	f.Float64Var(&a.madeUp.OutputStddev, "osl-stddev", 0, "its standard deviation")
	f.StringVar(&a.madeUp.Lengths, "sequence-distribution", "", `pairs of lengths with their shares in percent, such as "256,128:40;512,256:60"`)
	f.IntVar(&a.madeUp.SystemTokens, "shared-system-prompt-length", 0, "tokens of a system prompt that all requests share")
	f.IntVar(&a.madeUp.Requests, "num-dataset-entries", 0, "different prompts to make up, which then come round again; 0: each request has its own")
	f.StringVar(&a.requestRate, "request-rate", "", "requests per second, or inf; at most --concurrency at once, where that is given")
	f.StringVar(&a.rateMode, "arrival-pattern", "poisson", "of --request-rate: poisson, constant or gamma")
	f.Float64Var(&a.smoothness, "arrival-smoothness", 1, "of gamma: 1 is poisson, less comes in bursts")
	f.IntVar(&a.requestCount, "request-count", 0, "requests to send; a shorter file repeats. 0: the file's; without a file 10, or twice --concurrency if more")
	f.IntVar(&a.sessions, "num-sessions", 0, "conversations to send, all of the same number of turns")
	f.Var(&a.benchmarkDuration, "benchmark-duration", "send for so many seconds")
	f.IntVar(&a.warmupCount, "warmup-request-count", 0, "requests to send first, that count in no figure")
	f.Float64Var(&a.userRate, "user-centric-rate", 0, "requests per second of all users: each waits --num-users / rate seconds between turns")
	f.IntVar(&a.users, "num-users", 0, "users of --user-centric-rate")
	f.Float64Var(&a.madeUp.Turns, "session-turns-mean", 1, "mean turns of a conversation")
	f.Float64Var(&a.madeUp.TurnsStddev, "session-turns-stddev", 0, "its standard deviation")
	f.Float64Var(&a.turnDelay, "session-turn-delay-mean", 0, "mean pause before the next turn, in milliseconds")
	f.Float64Var(&a.turnDelayStddev, "session-turn-delay-stddev", 0, "its standard deviation, in milliseconds")
	f.Float64Var(&a.cancelPercent, "request-cancellation-rate", 0, "percent of the requests to cancel")
	f.Var(&a.cancelDelay, "request-cancellation-delay", "seconds from when a request was sent to its cancellation")
	f.Uint64Var(&a.randomSeed, "random-seed", 42, "seed of everything that is drawn")
	f.Float64Var(&a.rescale.Speedup, "synthesis-speedup-ratio", 1, "replay so many times as fast")
	f.Float64Var(&a.rescale.PrefixLen, "synthesis-prefix-len-multiplier", 1, "length of shared prefixes, times this")
	f.IntVar(&a.rescale.PrefixRoots, "synthesis-prefix-root-multiplier", 1, "number of independent prefix trees, times this")
	f.Float64Var(&a.rescale.PromptLen, "synthesis-prompt-len-multiplier", 1, "length of the parts that are not shared, times this")
	f.IntVar(&a.rescale.MaxInput, "synthesis-max-isl", 0, "leave out rows with more input tokens")
	f.IntVar(&a.rescale.MaxOutput, "synthesis-max-osl", 0, "cut output lengths to so many tokens")
	f.Var(&a.Slice, "slice-duration", "seconds of a time slice of the report")
	f.StringArrayVar(&a.serverMetrics, "server-metrics", nil, "metrics pages to summarize beside the server's own, one or several")
	f.StringArrayVar(&a.gpuTelemetry, "gpu-telemetry", nil, "pages of dcgm-exporters to summarize, one or several")
	f.StringArrayVar(&a.extraInputs, "extra-inputs", nil, "NAME:VALUE or a JSON object for the body of each request, one or several")
	f.StringArrayVarP(&a.headers, "header", "H", nil, "NAME:VALUE, sent with each request; Authorization, Cookie and keys are shown nowhere")
	f.StringVar(&a.apiKey, "api-key", "", "sent as Authorization: Bearer; --http.config.file can take it from a file")
	f.Var(&a.requestTimeout, "request-timeout-seconds", "limit on a whole request, in seconds")
	f.Var(&a.waitForModel, "wait-for-model-timeout", "longest wait until the server lists its models, in seconds")
	f.Float64Var(&a.attainment, "slo-attainment-fraction", 0, "least share of the expected requests that meets --goodput, 0 to 1; else exit 3")
	f.Float64Var(&a.delayRatio, "conversation-turn-delay-ratio", 1, "as --turn-delay-scale")
	f.Var(&a.delayCap, "inter-turn-delay-cap-seconds", "longest delay between turns, in seconds; 0: no delay")
	f.BoolVar(&a.noDelays, "ignore-trace-delays", false, "no delay between turns; without effect with --fixed-schedule")
	f.StringVar(&a.cacheBust, "cache-bust", "none", "system_prefix or first_turn_prefix: no text is shared between conversations, as --salt session; or none")
	f.Float64Var(&a.startFrom, "trajectory-start-min-ratio", 0.25, "of weka_trace: the first sessions begin at this share of their requests or later")
	f.Float64Var(&a.startTo, "trajectory-start-max-ratio", 0.75, "… and at this share or earlier; without both flags they begin at the first request")
	f.BoolVar(&a.noSchedule, "no-fixed-schedule", false, "as without --fixed-schedule: in the file's order")
	addNotTaken(f)

	f = pflag.NewFlagSet(string(TraceReplay), pflag.ContinueOnError)
	f.SortFlags, sets[TraceReplay] = false, f
	f.StringVar(&a.backend, "backend", "", "vllm, sglang, lmdeploy, openai-chat (chat) or openai (completions)")
	f.StringVar(&a.host, "host", "localhost", "the server's name or address")
	f.IntVar(&a.port, "port", 8000, "its port")
	f.StringVar(&a.tracePath, "trace-path", "", "the trace")
	f.StringVar(&a.traceMode, "trace-mode", "trace", "trace: prompts by length and hash_ids; benchmark: lengths of the trace, texts of a dataset")
	f.StringVar(&a.datasetName, "dataset-name", "sharegpt", "of benchmark: sharegpt, custom (a prompt a line), or bundled, a small set that needs no file")
	f.StringVar(&a.datasetPath, "dataset-path", "", "its file")
	f.BoolVar(&a.savePrompts, "save-prompts", false, "write the requests, with their instants, to a trace")
	f.BoolVar(&a.saveExcel, "save-result", false, "write the figures to a spreadsheet")
	f.StringVar(&a.resultDir, "result-dir", "", "where both go; empty: the artifact directory")
	return sets
}

// spelled returns the program whose flags were given. Flags of two programs contradict each other, except for the flags
// of saving.
func spelled(given *pflag.FlagSet, sets map[Spelling]*pflag.FlagSet) (Spelling, error) {
	first := map[Spelling]string{}
	given.Visit(func(f *pflag.Flag) {
		for who, set := range sets {
			if set.Lookup(f.Name) != nil && first[who] == "" && !isSaving(f.Name) {
				first[who] = f.Name
			}
		}
	})
	a, t := first[AIPerf], first[TraceReplay]
	switch {
	case a != "" && t != "":
		return "", fmt.Errorf("--%s is a flag of aiperf and --%s one of trace_replay.py: want the flags of one of them", a, t)
	case a != "":
		return AIPerf, nil
	case t != "":
		return TraceReplay, nil
	}
	return Own, nil
}

// isSaving reports whether a flag of trace_replay.py can be used with any spelling.
func isSaving(name string) bool {
	return name == "save-prompts" || name == "save-result" || name == "result-dir"
}

// secondsValue is a duration that can be given as a number of seconds, as in other load generators.
type secondsValue time.Duration

func (s *secondsValue) Set(text string) error {
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		if !(n >= 0 && n < 1e9) {
			return fmt.Errorf("want seconds ≥ 0, got %q", text)
		}
		*s = secondsValue(n * float64(time.Second))
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("want seconds such as 10 or 0.5, or a duration such as 10s, got %q", text)
	}
	*s = secondsValue(d)
	return nil
}

func (s *secondsValue) String() string { return time.Duration(*s).String() }
func (*secondsValue) Type() string     { return "seconds" }
