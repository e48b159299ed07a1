package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"replayd/internal/config"
	"replayd/internal/scalar"
	"replayd/internal/synth"
)

// A Spelling is the program whose flags a command line uses. It decides the defaults.
type Spelling string

// Spellings.
const (
	Own         Spelling = "replayd"
	AIPerf      Spelling = "aiperf"      // `aiperf profile`, 0.5
	TraceReplay Spelling = "tracereplay" // trace_replay.py
	VLLM        Spelling = "vllm"        // `vllm bench serve`, 2026
)

// aliases are the flags of other load generators that run accepts, with their original meaning.
// docs/reference/command-line.md has each.
type aliases struct {
	endpointType, endpoint string
	streaming              bool
	inputFile, datasetType string
	madeUp                 config.Synthetic // synthetic requests; the delays are in turnDelay and turnDelayStddev
	rescale                synth.RescaleOptions
	fixedSchedule          bool
	requestRate            string
	rateMode               string
	smoothness             float64
	requestCount           int
	sessions               int
	warmupCount            int
	userRate               float64
	users                  int
	turnDelay              float64 // milliseconds
	turnDelayStddev        float64
	cancelPercent          float64
	cancelDelay            secondsValue
	Slice                  secondsValue
	serverMetrics          Lines
	gpuTelemetry           Lines
	publicDataset          string
	extraInputs, headers   Lines
	apiKey                 string
	requestTimeout         secondsValue
	attainment             float64
	noSchedule             bool
	noDelays               bool
	cacheBust              string
	reuse                  string
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

	grace       string // seconds, or inf
	ignoreEOS   bool
	servedModel string
}

// defaultAliases returns the aliases with their programs' defaults.
func defaultAliases() aliases {
	return aliases{
		endpointType: "chat", madeUp: config.Synthetic{InputTokens: 550, Turns: 1}, rateMode: "poisson", smoothness: 1,
		rescale: synth.RescaleOptions{Speedup: 1, PrefixLen: 1, PromptLen: 1, PrefixRoot: 1}, cacheBust: "none", reuse: "pooled",
		startFrom: 0.25, startTo: 0.75, host: "localhost", port: 8000, traceMode: "trace", datasetName: "sharegpt", grace: "30",
	}
}

// ofAIPerf returns the flags of AIPerf that run takes.
func (o *Flags) ofAIPerf() Table {
	a, s, w := &o.Aliases, &o.Aliases.madeUp, &o.Workload
	return Table{
		{string(AIPerf), "workloads[0]", []Row{
			{"endpoint-type", "targets[0].api", &a.endpointType, "chat or completions"},
			{"endpoint", "targets[0].endpoint_path", &a.endpoint, "path of the endpoint, such as " +
				"/v1/chat/completions, as --endpoint-path"},
			{"streaming", "targets[0].stream", &a.streaming, "stream the answers; without it one JSON answer: no TTFT, no ITL"},
			{"input-file", "trace.path dataset.path", &a.inputFile, "file of requests, of the type that --custom-dataset-type " +
				"names"},
			{"custom-dataset-type", "trace.format dataset.format", &a.datasetType, "mooncake_trace, burst_gpt_trace, " +
				"bailian_trace, weka_trace, single_turn, multi_turn or random_pool; empty: by the file"},
			{"public-dataset", "", &a.publicDataset, "sharegpt: with --input-file, the file that was downloaded"},
			{"fixed-schedule", "arrival", &a.fixedSchedule, "send at the file's timestamps; without it in the file's order, " +
				"as fast as --concurrency allows"},
			{"fixed-schedule-start-offset", "trace.from", &a.startOffset, "leave out rows before it, in milliseconds of the " +
				"file"},
			{"fixed-schedule-end-offset", "trace.to", &a.endOffset, "leave out rows after it, in milliseconds of the file"},
			{"fixed-schedule-auto-offset", "", &a.autoOffset, "count from the file's first row, as is always done"},
			{"isl", "synthetic.input_tokens synthetic", &s.InputTokens, "mean input length in tokens, of made-up requests"},
			{"isl-stddev", "synthetic.input_stddev", &s.InputStddev, "its standard deviation"},
			{"osl", "synthetic.output_tokens", &s.OutputTokens, "mean output length in tokens; 0: no limit is sent"},
			{"osl-stddev", "synthetic.output_stddev", &s.OutputStddev, "its standard deviation"},
			{"sequence-distribution", "synthetic.lengths", &s.Lengths, `pairs of lengths with their shares in percent, ` +
				`such as "256,128:40;512,256:60"`},
			{"shared-system-prompt-length", "synthetic.system_tokens", &s.SystemTokens, "tokens of a system prompt that all " +
				"requests share"},
			{"num-dataset-entries", "", &s.Requests, "different prompts to make up, which then come round again; 0: " +
				"each request has its own"},
			{"request-rate", "rate", &a.requestRate, "requests per second, or inf; at most --concurrency at once, " +
				"where that is given"},
			{"arrival-pattern", "", &a.rateMode, "of --request-rate: poisson, constant or gamma"},
			{"arrival-smoothness", "burstiness", &a.smoothness, "of gamma: 1 is poisson, less comes in bursts"},
			{"request-count", "rows synthetic.requests", &a.requestCount, "requests to send; a shorter file repeats. 0: " +
				"the file's; without a file 10, or twice --concurrency if more"},
			{"num-sessions", "", &a.sessions, "conversations to send, all of the same number of turns"},
			{"benchmark-duration", "duration", (*secondsValue)(&o.Duration), "send for so many seconds"},
			{"benchmark-grace-period", "", &a.grace, "seconds after --benchmark-duration until requests in flight are cut, or inf; " +
				"cut ones count in no latency"},
			{"warmup-request-count", "warmup.requests", &a.warmupCount, "requests to send first, that count in no figure"},
			{"user-centric-rate", "", &a.userRate, "requests per second of all users: each waits --num-users / rate seconds " +
				"between turns"},
			{"num-users", "users", &a.users, "users of --user-centric-rate"},
			{"session-turns-mean", "synthetic.turns", &s.Turns, "mean turns of a conversation"},
			{"session-turns-stddev", "synthetic.turns_stddev", &s.TurnsStddev, "its standard deviation"},
			{"session-turn-delay-mean", "synthetic.turn_delay", &a.turnDelay, "mean pause before the next turn, " +
				"in milliseconds"},
			{"session-turn-delay-stddev", "synthetic.turn_delay_stddev", &a.turnDelayStddev, "its standard deviation, " +
				"in milliseconds"},
			{"request-cancellation-rate", "cancel.ratio", &a.cancelPercent, "percent of the requests to cancel"},
			{"request-cancellation-delay", "cancel.after", &a.cancelDelay, "seconds from when a request was sent to its " +
				"cancellation"},
			{"random-seed", "prompt.seed", &w.Prompt.Seed, "seed of everything that is drawn"},
			{"synthesis-speedup-ratio", "", &a.rescale.Speedup, "replay so many times as fast"},
			{"synthesis-prefix-len-multiplier", "", &a.rescale.PrefixLen, "length of shared prefixes, times this"},
			{"synthesis-prefix-root-multiplier", "", &a.rescale.PrefixRoot, "number of independent prefix trees, times this"},
			{"synthesis-prompt-len-multiplier", "", &a.rescale.PromptLen, "length of the parts that are not shared, times this"},
			{"synthesis-max-isl", "", &a.rescale.MaxInput, "leave out rows with more input tokens"},
			{"synthesis-max-osl", "", &a.rescale.MaxOutput, "cut output lengths to so many tokens"},
			{"slice-duration", "", &a.Slice, "seconds of a time slice of the report"},
			{"server-metrics", "", &a.serverMetrics, "metrics pages to summarize beside the server's own, one or several"},
			{"gpu-telemetry", "gpus[0].dcgm_exporter gpus[0].nvidia_smi", &a.gpuTelemetry, "pages of dcgm-exporters to " +
				"summarize, one or several"},
			{"extra-inputs", "targets[0].extra_body", &a.extraInputs, "NAME:VALUE or a JSON object for the body of each " +
				"request, one or several"},
			{"header,H", "request.headers", &a.headers, "NAME:VALUE, sent with each request; Authorization, " +
				"Cookie and keys are shown nowhere"},
			{"api-key", "", &a.apiKey, "sent as Authorization: Bearer; --http.config.file can take it from a file"},
			{"request-timeout-seconds", "targets[0].timeouts.total", &a.requestTimeout, "limit on a whole request, in seconds"},
			{"wait-for-model-timeout", "", (*secondsValue)(&o.Wait), "longest wait until the server lists its models, " +
				"in seconds"},
			{"slo-attainment-fraction", "slo.objective", &a.attainment, "least share of the expected requests that meets " +
				"--goodput, 0 to 1; else exit 3"},
			{"conversation-turn-delay-ratio", "turn_delay.scale", &w.TurnDelay.Scale, "as --turn-delay-scale"},
			{"inter-turn-delay-cap-seconds", "turn_delay.max", (*secondsValue)(&w.TurnDelay.Max), "longest delay between " +
				"turns, in seconds; 0: no delay"},
			{"ignore-trace-delays", "", &a.noDelays, "no delay between turns; without effect with --fixed-schedule"},
			{"cache-bust", "", &a.cacheBust, "system_prefix or first_turn_prefix: no text is shared between conversations, " +
				"as --salt session; or none"},
			{"connection-reuse-strategy", "", &a.reuse, "pooled: as --connections kept; never: as --connections each"},
			{"trajectory-start-min-ratio", "start_within", &a.startFrom, "of weka_trace: the first sessions begin at this " +
				"share of their requests or later"},
			{"trajectory-start-max-ratio", "", &a.startTo, "… and at this share or earlier; " +
				"without both flags they begin at the first request"},
			{"no-fixed-schedule", "", &a.noSchedule, "as without --fixed-schedule: in the file's order"},
		}},
	}
}

// ofTraceReplay returns the flags of trace_replay.py.
func (a *aliases) ofTraceReplay() Table {
	return Table{
		{string(TraceReplay), "workloads[0]", []Row{
			{"backend", "", &a.backend, "vllm, sglang, lmdeploy, openai-chat (chat) or openai (completions)"},
			{"host", "targets[0].url", &a.host, "the server's name or address"},
			{"port", "", &a.port, "its port"},
			{"trace-path", "trace.path", &a.tracePath, "the trace"},
			{"trace-mode", "", &a.traceMode, "trace: prompts by length and hash_ids; benchmark: lengths of the trace, " +
				"texts of a dataset"},
			{"dataset-name", "dataset.format", &a.datasetName, "of benchmark: sharegpt, custom (a prompt a line), or bundled, " +
				"a small set that needs no file"},
			{"dataset-path", "dataset.path", &a.datasetPath, "its file"},
			{"save-prompts", "", &a.savePrompts, "write the requests, with their instants, to a trace"},
			{"save-result", "", &a.saveExcel, "write the figures to a spreadsheet"},
			{"result-dir", "", &a.resultDir, "where both go; empty: the artifact directory"},
		}},
	}
}

// ofVLLM returns the flags that only vllm bench serve has.
func (a *aliases) ofVLLM() Table {
	return Table{
		{string(VLLM), "workloads[0]", []Row{
			{"ignore-eos", "", &a.ignoreEOS, "as --output exact, as it is with --dataset-name random anyway"},
			{"served-model-name", "targets[0].model", &a.servedModel, "name of the model in requests, in place of --model"},
		}},
	}
}

// shared are flags that vllm bench serve has in common with AIPerf.
var shared = []string{"endpoint", "request-rate", "header", "extra-inputs", "warmup-request-count", "wait-for-model-timeout"}

// spelled returns the program whose flags were given. Flags of two programs contradict each other, except for the flags
// of saving. Names of vllm bench serve that run's own flags have too decide only where there is no TRACE.
func (o *Flags) spelled(path string) (Spelling, error) {
	first, own := map[string]string{}, true // of the programs that have a flag, the first such flag
	vllm := false                           // a name of vLLM's alone was typed
	o.given.Visit(func(f *pflag.Flag) {
		typed := cmp.Or(o.typed[f.Name], f.Name)
		title := ""
		if titles := f.Annotations[group]; len(titles) > 0 {
			title = titles[0]
		}
		v, other := f.Value.(*foreign)
		has := ""
		switch _, level := f.Value.(logLevel); {
		case level || isSaving(f.Name):
		case other && (v.mark == '+' || v.accepted || v.who != "aiperf" && v.mark == 0):
		case other && v.mark == '>':
			has = "v"
		case other:
			has = "a"
		case VLLMNames[typed] == f.Name && title != string(AIPerf):
			vllm = true
		case VLLMNames[typed] == f.Name && !slices.Contains(shared, f.Name), title == string(VLLM):
			has = "v"
		case title == string(AIPerf) && slices.Contains(shared, f.Name):
			vllm = vllm || typed != f.Name
			has = "av"
		case title == string(AIPerf):
			has = "a"
		case title == string(TraceReplay) && strings.HasPrefix(f.Name, "trace-"):
			has = "t"
		case title == string(TraceReplay):
			has = "tv"
		}
		if has != "" {
			own = false
			if first[has] == "" {
				first[has] = typed
			}
		}
	})
	order := "avt" // where flags of several programs are the same
	if path == "" && vllm || first["v"] != "" {
		order = "vat"
	}
	if path != "" {
		order = "atv"
	}
	if own && (!vllm || path != "") {
		return Own, nil
	}
	names := map[rune]Spelling{'a': AIPerf, 'v': VLLM, 't': TraceReplay}
	for _, who := range order {
		fits := true
		for has := range first {
			fits = fits && strings.ContainsRune(has, who)
		}
		if fits && (!o.Profile || who == 'a') {
			return names[who], nil
		}
	}
	return "", o.mixed(first)
}

// mixed returns the error of flags of several programs.
func (o *Flags) mixed(first map[string]string) error {
	programs := map[string]string{"a": "aiperf", "t": "trace_replay.py", "v": "vllm bench serve", "av": "vllm bench serve", "tv": "trace_replay.py and vllm bench serve"}
	var all []string
	for _, has := range slices.Sorted(maps.Keys(first)) {
		if has != "av" {
			all = append(all, fmt.Sprintf("--%s is a flag of %s", first[has], programs[has]))
		}
	}
	if o.Profile {
		return fmt.Errorf("profile has the flags of aiperf, but %s: want replayd run, or flags of aiperf alone", strings.Join(all, " and "))
	}
	return fmt.Errorf("%s: want the flags of one of them", strings.Join(all, " and "))
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
	d, err := scalar.ParseDuration(text)
	if err != nil || d < 0 {
		return fmt.Errorf("want seconds such as 10 or 0.5, or a duration such as 10s, got %q", text)
	}
	*s = secondsValue(d)
	return nil
}

func (s *secondsValue) String() string { return time.Duration(*s).String() }
func (*secondsValue) Type() string     { return "seconds" }
