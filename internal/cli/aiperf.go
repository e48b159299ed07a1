package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"replayd/internal/config"
	"replayd/internal/synth"
)

// A faults function records an error in a flag.
type faults func(flag string, err error)

// unlimited is a number of lanes so large that no request waits for a lane. A lane opens a connection only when it is
// needed.
const unlimited = 1 << 16

// longPatience is how long AIPerf 0.5 waits for a request.
const longPatience = 6 * time.Hour

// peerDefaults replaces replayd's defaults with those of the other programs: a server at port 8000, the same texts in
// each run, no dropped requests, and no timeout but a long one on the whole request.
func (o *Flags) peerDefaults(who Spelling, given *pflag.FlagSet) {
	unless := func(flag string, set func()) {
		if !given.Changed(flag) {
			set()
		}
	}
	t, w := &o.Target, &o.Workload
	unless("url", func() { t.URL = "localhost:8000" })
	unless("output", func() { t.Output = "max" })
	unless("salt", func() { w.Prompt.Salt = "none" })
	unless("max-wait", func() { w.MaxWait = 0 })
	unless("lanes", func() { w.Lanes = unlimited })
	unless("over-limit", func() { w.Trace.OverLimit = "send" })
	unless("timeout-first-token", func() { t.Timeouts.FirstToken = 0 })
	unless("timeout-stall", func() { t.Timeouts.Stall = 0 })
	unless("timeout-total", func() { t.Timeouts.Total = config.Duration(longPatience) })
	unless("artifact-dir", func() { o.artifacts = "artifacts" })
	if who == AIPerf {
		unless("stream", func() { t.Stream = o.Aliases.streaming })
		unless("arrival", func() { w.Arrival = "concurrency" })
		w.KeepLane = true
	} else {
		o.Gaps = true // trace_replay.py's table shows them
	}
}

// takeAIPerf translates aiperf's flags.
func (o *Flags) takeAIPerf(path string, given *pflag.FlagSet, fault faults) {
	a, t, w := &o.Aliases, &o.Target, &o.Workload
	o.takeEndpoint(fault)
	o.takeRows(path, given, fault)
	o.takeTiming(given, fault)
	if given.Changed("random-seed") {
		w.Prompt.Seed = a.randomSeed
	}
	w.Warmup.Requests = max(w.Warmup.Requests, a.warmupCount)
	if a.warmupCount < 0 {
		fault("--warmup-request-count", fmt.Errorf("want an integer ≥ 0, got %d", a.warmupCount))
	}
	switch {
	case !(a.cancelPercent >= 0 && a.cancelPercent <= 100):
		fault("--request-cancellation-rate", fmt.Errorf("want 0 to 100 percent, got %v", a.cancelPercent))
	case a.cancelPercent > 0:
		w.Cancel = config.Cancel{Ratio: a.cancelPercent / 100, After: config.Duration(a.cancelDelay)}
	case a.cancelDelay > 0:
		fault("--request-cancellation-delay", errors.New("want --request-cancellation-rate too: without it nothing is cancelled"))
	}
	if a.requestTimeout > 0 {
		t.Timeouts.Total = config.Duration(a.requestTimeout)
	}
	if given.Changed("request-timeout-seconds") && a.requestTimeout == 0 {
		fault("--request-timeout-seconds", errors.New("want seconds > 0, got 0"))
	}
	if given.Changed("slice-duration") && a.Slice == 0 {
		fault("--slice-duration", errors.New("want seconds > 0, got 0"))
	}
	if given.Changed("wait-for-model-timeout") {
		o.Wait = config.Duration(a.waitForModel)
	}
	if given.Changed("slo-attainment-fraction") {
		if given.Changed("min-goodput") {
			fault("--slo-attainment-fraction", errors.New("want only one of it and --min-goodput"))
		}
		o.Least = a.attainment
	}
	o.takeCacheBust(given, fault)
	o.takeTurnDelays(given)
	if a.noSchedule && a.fixedSchedule {
		fault("--no-fixed-schedule", errors.New("contradicts --fixed-schedule"))
	}
	t.ExtraBody = extraBody(a.extraInputs, fault)
	o.takeHeaders(fault)
}

// takeCacheBust translates the places of AIPerf's marker (aiperf 0.13.0, timing/strategies/cache_bust.py). A marker in front of a
// conversation's first text leaves nothing to share with other conversations; so does a salt of its own.
func (o *Flags) takeCacheBust(given *pflag.FlagSet, fault faults) {
	switch target := strings.ToLower(o.Aliases.cacheBust); target {
	case "none":
	case "system_prefix", "first_turn_prefix":
		if given.Changed("salt") {
			fault("--cache-bust", errors.New("contradicts --salt: both make prompts unique"))
		}
		if target == "first_turn_prefix" && o.Workload.Synthetic.SystemTokens > 0 {
			fault("--cache-bust", errors.New("want system_prefix: behind a shared system prompt each conversation has texts of its own already"))
		}
		if o.Workload.Dataset.Path != "" {
			fault("--cache-bust", errors.New("want prompts by length: the texts of a file are sent as they are"))
		}
		o.Workload.Prompt.Salt = string(synth.SaltSession)
	case "system_suffix", "first_turn_suffix", "warmup_isolation_system", "warmup_isolation_first_turn":
		fault("--cache-bust", fmt.Errorf("want none, system_prefix or first_turn_prefix, got %s: a marker inside or behind a text is not made", target))
	default:
		fault("--cache-bust", fmt.Errorf("want none, system_prefix or first_turn_prefix, got %q", o.Aliases.cacheBust))
	}
}

// takeEndpoint sets the API, and adds the prefix of the endpoint's path to the URL.
func (o *Flags) takeEndpoint(fault faults) {
	a, t := &o.Aliases, &o.Target
	switch a.endpointType {
	case "chat", "completions":
		t.API = a.endpointType
	default:
		fault("--endpoint-type", fmt.Errorf("want chat or completions, got %q", a.endpointType))
		return
	}
	if a.endpoint == "" {
		return
	}
	paths := map[string]string{"chat": "/v1/chat/completions", "completions": "/v1/completions"}
	prefix, ok := strings.CutSuffix("/"+strings.TrimLeft(a.endpoint, "/"), paths[t.API])
	if !ok {
		fault("--endpoint", fmt.Errorf("want a path that ends in %s for --endpoint-type %s, got %q", paths[t.API], t.API, a.endpoint))
		return
	}
	t.URL = strings.TrimRight(t.URL, "/") + prefix
}

// traceTypes maps AIPerf's types of trace files to replayd's formats.
var traceTypes = map[string]string{
	"": "auto", "mooncake_trace": "mooncake", "burst_gpt_trace": "burstgpt", "bailian_trace": "bailian", "weka_trace": "weka",
}

// textTypes are AIPerf's types of text files.
var textTypes = []string{"single_turn", "multi_turn", "random_pool", "sharegpt"}

// takeRows determines the source of the rows: a trace, texts, or synthetic lengths.
func (o *Flags) takeRows(path string, given *pflag.FlagSet, fault faults) {
	a, w := &o.Aliases, &o.Workload
	if a.inputFile != "" && a.datasetType == "" && a.publicDataset == "" {
		a.datasetType = typeOf(a.inputFile)
	}
	switch format, isTrace := traceTypes[a.datasetType]; {
	case path != "" && a.inputFile != "":
		fault("--input-file", fmt.Errorf("want it or TRACE, got both, %q and %q", a.inputFile, path))
	case path != "":
		w.Trace.Path = path
	case a.publicDataset != "":
		if a.publicDataset != "sharegpt" {
			fault("--public-dataset", fmt.Errorf("want sharegpt: others are not read, got %q", a.publicDataset))
		}
		w.Dataset = config.Dataset{Format: "sharegpt", Path: a.inputFile}
	case a.inputFile != "" && isTrace:
		w.Trace.Path, w.Trace.Format = a.inputFile, format
	case a.inputFile != "":
		if !slices.Contains(textTypes, a.datasetType) {
			fault("--custom-dataset-type", fmt.Errorf("want mooncake_trace, burst_gpt_trace, bailian_trace, weka_trace, %s, got %q", strings.Join(textTypes, ", "), a.datasetType))
			w.Trace.Path = a.inputFile // one fault is enough
			break
		}
		w.Dataset = config.Dataset{Format: a.datasetType, Path: a.inputFile}
		if a.datasetType == "multi_turn" && !given.Changed("history") {
			w.Prompt.History = true // its turns have no answers
		}
	case a.datasetType != "":
		fault("--custom-dataset-type", errors.New("want --input-file too"))
	default:
		o.takeSynthetic(given, fault)
	}
	for _, flag := range madeUp {
		if given.Changed(flag) && !w.Synthetic.Given() {
			fault("--"+flag, errors.New("needs synthetic requests: remove the input file"))
			break // the others say the same
		}
	}
	w.Trace.Rescale = a.rescale
	for _, m := range []struct {
		flag        string
		got         float64
		least, most float64
	}{
		{"--synthesis-speedup-ratio", a.rescale.Speedup, 1. / synth.MaxSpeedup, synth.MaxSpeedup},
		{"--synthesis-prefix-len-multiplier", a.rescale.PrefixLen, 1. / synth.MaxMultiplier, synth.MaxMultiplier},
		{"--synthesis-prefix-root-multiplier", float64(a.rescale.PrefixRoots), 1, synth.MaxRoots},
		{"--synthesis-prompt-len-multiplier", a.rescale.PromptLen, 1. / synth.MaxMultiplier, synth.MaxMultiplier},
	} {
		if !(m.got >= m.least && m.got <= m.most) {
			fault(m.flag, fmt.Errorf("want a number above 0, %v to %v, got %v", m.least, m.most, m.got))
		}
	}
	if a.rescale == (config.Rescale{Speedup: 1, PrefixLen: 1, PromptLen: 1, PrefixRoots: 1}) {
		w.Trace.Rescale = config.Rescale{}
	} else if w.Trace.Path == "" {
		fault("--synthesis-*", errors.New("want --input-file too: they change a trace"))
	}
}

// madeUp are the flags of synthetic requests.
var madeUp = []string{
	"isl", "isl-stddev", "osl", "osl-stddev", "sequence-distribution", "shared-system-prompt-length", "num-dataset-entries",
	"session-turns-mean", "session-turns-stddev", "session-turn-delay-mean", "session-turn-delay-stddev",
}

func (o *Flags) takeSynthetic(given *pflag.FlagSet, fault faults) {
	s := o.Aliases.madeUp
	if !(s.InputTokens >= 1) {
		fault("--isl", fmt.Errorf("want a number ≥ 1, got %v", s.InputTokens))
		s.InputTokens = 1 // one fault is enough
	}
	if s.OutputStddev > 0 && s.OutputTokens == 0 {
		fault("--osl-stddev", errors.New("want --osl too"))
	}
	if s.Requests < 0 || given.Changed("num-dataset-entries") && s.Requests == 0 {
		fault("--num-dataset-entries", fmt.Errorf("want an integer ≥ 1, got %d", s.Requests))
	} else if s.Requests > 0 && (s.Turns != 1 || s.TurnsStddev > 0 || given.Changed("user-centric-rate")) {
		fault("--num-dataset-entries", errors.New("needs single-turn requests: each conversation has texts of its own"))
	}
	s.TurnDelay = config.Duration(o.Aliases.turnDelay * float64(time.Millisecond))
	s.TurnDelayStddev = config.Duration(o.Aliases.turnDelayStddev * float64(time.Millisecond))
	if s.Lengths != "" && !given.Changed("isl") {
		s.InputTokens = 0
	}
	o.Workload.Synthetic = s
}

// If no flag gives the number of requests, AIPerf 0.5 sends FewRequests, or in a closed loop FewRounds times the
// concurrency if that is more (user_config.py, validate_timing_mode). AIPerf does so with a file too; replayd sends a
// file once.
const (
	FewRequests = 10
	FewRounds   = 2
)

// extraBody reads --extra-inputs: NAME:VALUE, where VALUE is JSON or else text, or a whole JSON object.
func extraBody(inputs []string, fault faults) map[string]any {
	body := map[string]any{}
	for _, in := range inputs {
		if strings.HasPrefix(strings.TrimSpace(in), "{") {
			if err := exactly(in, &body); err != nil {
				fault("--extra-inputs", fmt.Errorf("want NAME:VALUE or a JSON object, got one that is none: %w", err))
			}
			continue
		}
		name, text, ok := strings.Cut(in, ":")
		if !ok || name == "" {
			fault("--extra-inputs", errors.New("want NAME:VALUE or a JSON object, got one without a colon or a name"))
			continue
		}
		var value any
		if exactly(text, &value) != nil {
			value = text
		}
		body[name] = value
	}
	if len(body) == 0 {
		return nil
	}
	return body
}

// exactly decodes one JSON value and keeps numbers as they are written.
func exactly(text string, into any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("want one value, got more")
	}
	return nil
}
