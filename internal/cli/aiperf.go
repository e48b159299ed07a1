package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"replayd/internal/config"
	"replayd/internal/openai"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

// unlimited is a number of lanes so large that no request waits for a lane. A lane opens a connection only when it is
// needed.
const unlimited = 1 << 16

// longPatience is how long AIPerf 0.5 waits for a request.
const longPatience = 6 * time.Hour

// peerDefaults replaces replayd's defaults with those of the other programs: a server at port 8000, the same texts in
// each run, no dropped requests, and no timeout but a long one on the whole request.
func (o *Flags) peerDefaults(who Spelling) {
	unless := func(flag string, set func()) {
		if !o.given.Changed(flag) {
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
	unless("timeout-total", func() { t.Timeouts.Total = longPatience })
	if who != VLLM {
		unless("artifact-dir", func() { o.artifacts = "artifacts" })
	}
	if who != TraceReplay {
		unless("arrival", func() { w.Arrival = "concurrency" })
		w.KeepLane = true
	}
	if who == AIPerf { // run streams without --streaming, profile does not
		unless("stream", func() { t.Stream = o.Aliases.streaming || !o.Profile && !o.given.Changed("streaming") })
	} else {
		o.Gaps = true // their table shows them
	}
}

// takeAIPerf translates aiperf's flags.
func (o *Flags) takeAIPerf(path string) {
	a, t, w := &o.Aliases, &o.Target, &o.Workload
	o.takeEndpoint()
	o.takeRows(path)
	o.takeTiming()
	w.Warmup.Requests = max(w.Warmup.Requests, a.warmupCount)
	o.wrong.AtLeast("--warmup-request-count", a.warmupCount, 0)
	switch {
	case !(a.cancelPercent >= 0 && a.cancelPercent <= 100):
		o.wrong.Add("--request-cancellation-rate", "want 0 to 100 percent, got %v", a.cancelPercent)
	case a.cancelPercent > 0:
		w.Cancel.Ratio, w.Cancel.After = a.cancelPercent/100, time.Duration(a.cancelDelay)
	case a.cancelDelay > 0:
		o.wrong.Add("--request-cancellation-delay", "want --request-cancellation-rate too: without it nothing is cancelled")
	}
	if a.requestTimeout > 0 {
		t.Timeouts.Total = time.Duration(a.requestTimeout)
	}
	o.wrong.If(o.given.Changed("request-timeout-seconds") && a.requestTimeout == 0,
		"--request-timeout-seconds", "want seconds > 0, got 0")
	o.wrong.If(o.given.Changed("slice-duration") && a.Slice == 0, "--slice-duration", "want seconds > 0, got 0")
	if o.given.Changed("slo-attainment-fraction") {
		o.Least = a.attainment
	}
	o.takeCacheBust()
	if o.given.Changed("connection-reuse-strategy") {
		o.wrong.OneOf("--connection-reuse-strategy", a.reuse, "pooled", "never")
		if a.reuse == "never" {
			t.Connections = openai.ConnectionsEach
		}
	}
	o.takeTurnDelays()
	o.wrong.If(a.noSchedule && a.fixedSchedule, "--no-fixed-schedule", "contradicts --fixed-schedule")
	t.ExtraBody = o.extraBody()
	o.takeHeaders()
}

// takeCacheBust translates the places of AIPerf's marker (aiperf 0.13.0, timing/strategies/cache_bust.py). A marker in front of a
// conversation's first text leaves nothing to share with other conversations; so does a salt of its own.
func (o *Flags) takeCacheBust() {
	switch target := strings.ToLower(o.Aliases.cacheBust); target {
	case "none":
	case "system_prefix", "first_turn_prefix":
		o.wrong.If(o.given.Changed("salt"), "--cache-bust", "contradicts --salt: both make prompts unique")
		o.wrong.If(target == "first_turn_prefix" && o.Workload.Synthetic.SystemTokens > 0,
			"--cache-bust", "want system_prefix: behind a shared system prompt each conversation has texts of its own already")
		o.wrong.If(o.Workload.Dataset.Path != "",
			"--cache-bust", "want prompts by length: the texts of a file are sent as they are")
		o.Workload.Prompt.Salt = synth.SaltSession
	case "system_suffix", "first_turn_suffix", "warmup_isolation_system", "warmup_isolation_first_turn":
		o.wrong.Add("--cache-bust", "want none, system_prefix or first_turn_prefix, got %s: "+
			"a marker inside or behind a text is not made", target)
	default:
		o.wrong.Add("--cache-bust", "want none, system_prefix or first_turn_prefix, got %q", o.Aliases.cacheBust)
	}
}

// takeEndpoint sets the API and the endpoint's path.
func (o *Flags) takeEndpoint() {
	a, t := &o.Aliases, &o.Target
	if a.endpoint != "" {
		t.Path = a.endpoint
	}
	switch {
	case a.endpointType != "chat" && a.endpointType != "completions":
		o.wrong.Add("--endpoint-type", "want chat or completions, got %q", a.endpointType)
	case o.given.Changed("endpoint-type"):
		t.API = openai.API(a.endpointType)
	}
}

// traceTypes maps AIPerf's types of trace files to replayd's formats.
var traceTypes = map[string]string{
	"": "auto", "mooncake_trace": "mooncake", "burst_gpt_trace": "burstgpt", "bailian_trace": "bailian", "weka_trace": "weka",
	"raw_payload": "bodies",
}

// textTypes are AIPerf's types of text files.
var textTypes = []string{"single_turn", "multi_turn", "random_pool", "sharegpt"}

// takeRows determines the source of the rows: a trace, texts, or synthetic lengths.
func (o *Flags) takeRows(path string) {
	a, w := &o.Aliases, &o.Workload
	named := o.given.Changed("format") || w.Trace.Columns.Given()
	if a.inputFile != "" && a.datasetType == "" && a.publicDataset == "" && !named {
		a.datasetType = typeOf(a.inputFile)
	}
	switch format, isTrace := traceTypes[a.datasetType]; {
	case path != "" && a.inputFile != "":
		o.wrong.Add("--input-file", "want it or TRACE, got both, %q and %q", a.inputFile, path)
	case path != "":
		w.Trace.Path = path
		o.wrong.If(a.datasetType != "", "--custom-dataset-type", "want --input-file in place of TRACE")
		o.wrong.If(a.publicDataset != "", "--public-dataset", "want --input-file in place of TRACE")
	case a.publicDataset != "":
		o.wrong.If(a.publicDataset != "sharegpt",
			"--public-dataset", "want sharegpt: others are not read, got %q", a.publicDataset)
		w.Dataset = config.Dataset{Format: "sharegpt", Path: a.inputFile}
	case a.inputFile != "" && isTrace:
		w.Trace.Path = a.inputFile
		if named {
			flag := "--format"
			if w.Trace.Columns.Given() {
				flag = "--columns"
			}
			o.wrong.If(a.datasetType != "" && w.Trace.Format != format, flag, "contradicts --custom-dataset-type %s", a.datasetType)
		} else {
			w.Trace.Format = format
		}
		o.asAIPerf()
	case a.inputFile != "":
		o.wrong.If(named, "--format", "contradicts --custom-dataset-type %s: texts have no format of a trace", a.datasetType)
		if !slices.Contains(textTypes, a.datasetType) {
			o.wrong.Add("--custom-dataset-type",
				"want mooncake_trace, burst_gpt_trace, bailian_trace, weka_trace, raw_payload, %s, got %q",
				strings.Join(textTypes, ", "), a.datasetType)
			w.Trace.Path = a.inputFile // one fault is enough
			break
		}
		w.Dataset = config.Dataset{Format: a.datasetType, Path: a.inputFile}
		if a.datasetType == "multi_turn" && !o.given.Changed("history") {
			w.Prompt.History = true // its turns have no answers
		}
	case a.datasetType != "":
		o.wrong.Add("--custom-dataset-type", "want --input-file too")
	default:
		o.takeSynthetic()
	}
	if osl := a.madeUp.OutputTokens; osl != 0 && o.given.Changed("osl") && (w.Trace.Path != "" || w.Dataset.Given()) {
		w.Prompt.Output = int(osl)
		o.wrong.If(!(osl >= 1 && osl <= trace.MaxTokens && osl == math.Trunc(osl)),
			"--osl", "want an integer from 1 to %d beside a file, got %v", trace.MaxTokens, osl)
	}
	for _, flag := range madeUp {
		if o.given.Changed(flag) && !w.Synthetic.Given() {
			o.wrong.Add("--"+flag, "needs synthetic requests: leave out TRACE or the input file")
			break // the others say the same
		}
	}
	factor := func(name string, got, least, most float64) {
		o.wrong.If(!(got >= least && got <= most),
			"--synthesis-"+name, "want a number above 0, %v to %v, got %v", least, most, got)
	}
	factor("speedup-ratio", a.rescale.Speedup, 1./synth.MaxSpeedup, synth.MaxSpeedup)
	factor("prefix-len-multiplier", a.rescale.PrefixLen, 1./synth.MaxMultiplier, synth.MaxMultiplier)
	factor("prefix-root-multiplier", float64(a.rescale.PrefixRoot), 1, synth.MaxRoots)
	factor("prompt-len-multiplier", a.rescale.PromptLen, 1./synth.MaxMultiplier, synth.MaxMultiplier)
	limit := func(name string, got int) {
		o.wrong.If(got < 0 || got > trace.MaxTokens,
			"--synthesis-"+name, "want 1 to %d, or 0 for none, got %d", trace.MaxTokens, got)
	}
	limit("max-isl", a.rescale.MaxInput)
	limit("max-osl", a.rescale.MaxOutput)
	if !reflect.DeepEqual(a.rescale, synth.RescaleOptions{Speedup: 1, PrefixLen: 1, PromptLen: 1, PrefixRoot: 1}) {
		w.Trace.Rescale = &a.rescale
		o.wrong.If(w.Trace.Path == "", "--synthesis-*", "want --input-file too: they change a trace")
	}
}

// asAIPerf plays a trace as AIPerf does: it is counted from its first row, and the turns of a session accumulate, with the
// server's own answers (aiperf 0.13.0, dataset/loader/mooncake_trace.py).
func (o *Flags) asAIPerf() {
	w := &o.Workload
	w.Trace.FromFirst = !o.given.Changed("from") && !o.given.Changed("fixed-schedule-start-offset")
	if w.Trace.Format != "mooncake" && w.Trace.Format != "auto" || w.Trace.Columns.Given() || o.given.Changed("deltas") {
		return
	}
	w.Trace.Deltas = true
	if !o.given.Changed("history") {
		w.Prompt.History = true
	}
}

// madeUp are the flags of synthetic requests.
var madeUp = []string{
	"isl", "isl-stddev", "osl-stddev", "sequence-distribution", "shared-system-prompt-length", "num-dataset-entries",
	"session-turns-mean", "session-turns-stddev", "session-turn-delay-mean", "session-turn-delay-stddev",
}

func (o *Flags) takeSynthetic() {
	s := o.Aliases.madeUp
	if !(s.InputTokens >= 1) {
		o.wrong.Add("--isl", "want a number ≥ 1, got %v", s.InputTokens)
		s.InputTokens = 1 // one fault is enough
	}
	o.takeShares(s.Lengths)
	o.wrong.If(s.OutputStddev > 0 && s.OutputTokens == 0, "--osl-stddev", "want --osl too")
	if s.Requests < 0 || o.given.Changed("num-dataset-entries") && s.Requests == 0 {
		o.wrong.Add("--num-dataset-entries", "want an integer ≥ 1, got %d", s.Requests)
	} else if s.Requests > 0 && (s.Turns != 1 || s.TurnsStddev > 0 || o.given.Changed("user-centric-rate")) {
		o.wrong.Add("--num-dataset-entries", "needs single-turn requests: each conversation has texts of its own")
	}
	s.TurnDelay = time.Duration(o.Aliases.turnDelay * float64(time.Millisecond))
	s.TurnDelayStddev = time.Duration(o.Aliases.turnDelayStddev * float64(time.Millisecond))
	if s.Lengths != "" && !o.given.Changed("isl") {
		s.InputTokens = 0
	}
	o.Workload.Synthetic = s
}

// takeShares refuses shares that are not percent of all requests, as AIPerf does.
func (o *Flags) takeShares(lengths string) {
	pairs, err := synth.ParsePairs(lengths)
	total := 0.0
	for _, p := range pairs {
		total += p.Weight
	}
	o.wrong.If(lengths != "" && err == nil && math.Abs(total-100) > 1e-4,
		"--sequence-distribution", "want shares that are 100 percent together, got %v", total)
}

// If no flag gives the number of requests, AIPerf 0.5 sends FewRequests, or in a closed loop FewRounds times the
// concurrency if that is more (user_config.py, validate_timing_mode). AIPerf does so with a file too; replayd sends a
// file once.
const (
	FewRequests = 10
	FewRounds   = 2
)

// extraBody reads --extra-inputs: NAME:VALUE, where VALUE is JSON or else text, or a whole JSON object.
func (o *Flags) extraBody() map[string]any {
	body := map[string]any{}
	for _, in := range o.Aliases.extraInputs {
		if strings.HasPrefix(strings.TrimSpace(in), "{") {
			if err := exactly(in, &body); err != nil {
				o.fault("--extra-inputs", fmt.Errorf("want NAME:VALUE or a JSON object, got one that is none: %w", err))
			}
			continue
		}
		name, text, ok := strings.Cut(in, ":")
		if !ok || name == "" {
			o.wrong.Add("--extra-inputs", "want NAME:VALUE or a JSON object, got one without a colon or a name")
			continue
		}
		var value any
		if exactly(text, &value) != nil {
			value = text
		}
		if _, twice := body[name]; twice {
			o.wrong.Add("--extra-inputs", "want %s once, got it twice", name)
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
