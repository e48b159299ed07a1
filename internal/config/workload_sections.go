package config

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"replayd/internal/synth"
	"replayd/internal/trace"
)

// Rescale holds run's --synthesis-* flags, which change the trace before the replay. 0 means no change.
type Rescale struct {
	Speedup, PrefixLen, PromptLen    float64
	PrefixRoots, MaxInput, MaxOutput int
}

// Synthetic configures rows with random lengths. It is unused if InputTokens and Lengths are both empty.
type Synthetic struct {
	InputTokens     float64  `koanf:"input_tokens"` // mean
	InputStddev     float64  `koanf:"input_stddev"`
	OutputTokens    float64  `koanf:"output_tokens"` // mean; 0: requests have no output limit
	OutputStddev    float64  `koanf:"output_stddev"`
	Lengths         string   `koanf:"lengths"` // length pairs with their shares, instead of the four fields above
	SystemTokens    int      `koanf:"system_tokens"`
	Turns           float64  `koanf:"turns"` // mean turns of a conversation
	TurnsStddev     float64  `koanf:"turns_stddev"`
	TurnDelay       Duration `koanf:"turn_delay"` // mean delay after the answer
	TurnDelayStddev Duration `koanf:"turn_delay_stddev"`
	Requests        int      `koanf:"requests"` // rows per loop; 0: endless
}

// Dataset configures the texts to send. If there is a trace too, the trace gives the lengths.
type Dataset struct {
	Path   string `koanf:"path"`
	Format string `koanf:"format"` // empty: no dataset
	Turns  bool   `koanf:"turns"`  // for sharegpt: send whole conversations
}

// Stage is a part of a plan with its own rate: the rate changes linearly from the previous stage's to Rate during Over,
// and stays there for Hold.
type Stage struct {
	Rate float64  `koanf:"rate"`
	Over Duration `koanf:"over"`
	Hold Duration `koanf:"hold"`
}

// Warmup configures the requests before the plan begins; they are not counted.
type Warmup struct {
	Requests int `koanf:"requests"`
}

// Cancel configures the early cancellation of requests.
type Cancel struct {
	Ratio float64  `koanf:"ratio"` // share of all requests, 0 to 1
	After Duration `koanf:"after"` // delay after the request was written
}

// ByRate reports whether the times of an arrival come from a rate and not from the trace.
func ByRate(arrival string) bool {
	return slices.Contains([]string{"constant", "poisson", "gamma", "users"}, arrival)
}

// Closed reports whether an arrival is a closed loop: the next request depends on the ends of others.
func Closed(arrival string) bool { return arrival == "concurrency" || arrival == "sessions" }

// Timed reports whether an arrival uses the trace's own times.
func Timed(arrival string) bool { return arrival == "exact" || arrival == "spread" }

// Given reports whether synthetic rows are configured.
func (s Synthetic) Given() bool { return s.InputTokens != 0 || s.Lengths != "" }

// Made returns the generator options of the synthetic rows.
func (w *Workload) Made() (synth.Synthetic, error) {
	s := w.Synthetic
	made := synth.Synthetic{
		System: s.SystemTokens, Turns: synth.Normal{Mean: s.Turns, Stddev: s.TurnsStddev},
		Delay: time.Duration(s.TurnDelay), DelayStddev: time.Duration(s.TurnDelayStddev), Users: w.Users, Seed: w.Prompt.Seed,
	}
	if w.Arrival == "users" { // for other arrivals only the plan uses the rate
		made.Rate = w.Rate
	}
	if s.Lengths == "" {
		made.Input, made.Output = synth.Normal{Mean: s.InputTokens, Stddev: s.InputStddev}, synth.Normal{Mean: s.OutputTokens, Stddev: s.OutputStddev}
		return made, made.Check()
	}
	pairs, err := synth.ParsePairs(s.Lengths)
	if err != nil {
		return made, err
	}
	made.Pairs = pairs
	return made, made.Check()
}

// Given reports whether a dataset is configured.
func (d Dataset) Given() bool { return d.Format != "" || d.Path != "" }

// checkRows checks the source of the rows and their arrival.
func (w *Workload) checkRows(at string, f *Faults) {
	switch made, texts := w.Synthetic.Given(), w.Dataset.Given(); {
	case w.Trace.Path == "" && !made && !texts:
		f.add(at+".trace.path", "want the path of a trace, or synthetic.input_tokens, or a dataset, got none")
	case made && (w.Trace.Path != "" || texts):
		f.add(at+".synthetic", "want only one of a trace, synthetic rows and a dataset")
	}
	w.Trace.check(at+".trace", f)
	w.Synthetic.check(at+".synthetic", w, f)
	if d := w.Dataset; d.Given() {
		f.oneOf(at+".dataset.format", d.Format, "sharegpt", "single_turn", "multi_turn", "random_pool", "bundled")
		if d.Path == "" && d.Format != "bundled" && d.Format != "sharegpt" { // the reader explains how to get ShareGPT
			f.add(at+".dataset.path", "want a file, got none")
		}
		if d.Path != "" && d.Format == "bundled" {
			f.add(at+".dataset.path", "want none for format bundled, got %q", d.Path)
		}
		if d.Turns && d.Format != "sharegpt" {
			f.add(at+".dataset.turns", "needs format sharegpt, got format %q", d.Format)
		}
	}
	if (w.Synthetic.Given() || w.Dataset.Given()) && w.Trace.Path == "" && (w.Trace.From != 0 || w.Trace.To != 0) {
		f.add(at+".trace.from", "want no part of a trace where there is none, got %v to %v", w.Trace.From, w.Trace.To)
	}
	if Timed(w.Arrival) && w.Trace.Path == "" && (w.Synthetic.Given() || w.Dataset.Given()) {
		f.add(at+".arrival", "want constant, poisson, gamma, concurrency, sessions or users for rows that have no times, got %q", w.Arrival)
	}
	if w.Burstiness == 0 && w.Arrival != "gamma" { // to a plan 0 is none, and the default of the file is 1
		f.add(at+".burstiness", "needs arrival gamma, got arrival %s", w.Arrival)
	}
	if w.Shard == (Shard{}) { // the zero value is unset for a plan, but the file's default is 1
		f.add(at+".shard.of", "want an integer ≥ 1, got 0")
	}
	plan := w.Plan()
	for _, fault := range plan.Check() {
		f.add(at+"."+cmp.Or(PlanKeys[fault.Key], fault.Key), "%s", fault.Want)
	}
	f.atLeast(at+".warmup.requests", w.Warmup.Requests, 0)
	if r := w.Cancel.Ratio; !(r >= 0 && r <= 1) {
		f.add(at+".cancel.ratio", "want 0 to 1, got %v", r)
	}
	f.notNegative(at+".cancel.after", w.Cancel.After)
	if w.Cancel.After != 0 && w.Cancel.Ratio == 0 {
		f.add(at+".cancel.after", "needs a ratio above 0, got 0")
	}
}

func (t *Trace) check(at string, f *Faults) {
	f.oneOf(at+".format", t.Format, "auto", "mooncake", "azure", "burstgpt", "vllm", "bailian", "weka", "agentic_mooncake",
		"mooncake_delta", "request_trace", "sessions")
	if b := t.BlockTokens; b != AutoValue && (b < 1 || b > trace.MaxTokens) {
		f.add(at+".block_tokens", "want 1 to %d or auto, got %d", trace.MaxTokens, int(b))
	}
	f.atLeast(at+".max_input", t.MaxInput, 0)
	f.atLeast(at+".max_output", t.MaxOutput, 0)
	f.atLeast(at+".max_context", t.MaxContext, 0)
	f.oneOf(at+".over_limit", t.OverLimit, "filter", "clip", "send")
}

func (s *Synthetic) check(at string, w *Workload, f *Faults) {
	before := len(*f)
	number := func(key string, v, most float64) {
		if !(v >= 0 && v <= most) {
			f.add(at+key, "want 0 to %.0f, got %v", most, v)
		}
	}
	const tokens = 1 << 24
	number(".input_tokens", s.InputTokens, tokens)
	number(".input_stddev", s.InputStddev, tokens)
	number(".output_tokens", s.OutputTokens, tokens)
	number(".output_stddev", s.OutputStddev, tokens)
	number(".turns", s.Turns, 1000)
	number(".turns_stddev", s.TurnsStddev, 1000)
	f.atLeast(at+".system_tokens", s.SystemTokens, 0)
	f.atLeast(at+".requests", s.Requests, 0)
	f.notNegative(at+".turn_delay", s.TurnDelay)
	f.notNegative(at+".turn_delay_stddev", s.TurnDelayStddev)
	if s.Lengths != "" && (s.InputTokens != 0 || s.InputStddev != 0 || s.OutputTokens != 0 || s.OutputStddev != 0) {
		f.add(at+".lengths", "want either lengths, or input_tokens, output_tokens and their deviations, got both")
	}
	if s.Lengths != "" {
		if _, err := synth.ParsePairs(s.Lengths); err != nil {
			f.add(at+".lengths", "%v", err)
		}
	}
	if _, err := w.Made(); err != nil && s.Given() && len(*f) == before && w.Users <= synth.MaxUsers { // faults that involve several keys
		f.add(at, "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if !s.Given() && *s != (Synthetic{}) {
		f.add(at+".input_tokens", "want an integer ≥ 1, or lengths, got none")
	}
	if s.Given() && s.Requests == 0 && ByRate(w.Arrival) && w.Rows == 0 && w.Duration == 0 {
		f.add(at+".requests", "want how many requests a loop has for arrival %s, got none", w.Arrival)
	}
}
