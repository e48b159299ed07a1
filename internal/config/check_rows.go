package config

import (
	"replayd/internal/fault"
	"replayd/internal/scalar"
	"replayd/internal/schedule"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

// Given reports whether synthetic rows are configured.
func (s Synthetic) Given() bool { return s.InputTokens != 0 || s.Lengths != "" }

// Made returns the generator options of the synthetic rows.
func (w *Workload) Made() (synth.Synthetic, error) {
	s := w.Synthetic
	made := synth.Synthetic{
		System: s.SystemTokens, Turns: synth.Normal{Mean: s.Turns, Stddev: s.TurnsStddev},
		Delay: s.TurnDelay, DelayStddev: s.TurnDelayStddev, Users: w.Users, Seed: w.Prompt.Seed,
	}
	if w.Arrival == schedule.Users { // for other arrivals only the plan uses the rate
		made.Rate = w.Rate
	}
	if s.Lengths == "" {
		made.Input, made.Output = synth.Normal{Mean: s.InputTokens, Stddev: s.InputStddev}, synth.Normal{Mean: s.OutputTokens, Stddev: s.OutputStddev}
		return made, made.Check().Err()
	}
	pairs, err := synth.ParsePairs(s.Lengths)
	if err != nil {
		return made, err
	}
	made.Pairs = pairs
	return made, made.Check().Err()
}

// Given reports whether a dataset is configured.
func (d Dataset) Given() bool { return d.Format != "" || d.Path != "" }

func (w *Workload) checkRows(at string, f *fault.List) {
	switch made, texts := w.Synthetic.Given(), w.Dataset.Given(); {
	case w.Trace.Path == "" && !made && !texts:
		f.Add(at+".trace.path", "want the path of a trace, or synthetic.input_tokens, or a dataset, got none")
	case made && (w.Trace.Path != "" || texts):
		f.Add(at+".synthetic", "want only one of a trace, synthetic rows and a dataset")
	}
	f.If(w.Warmup.Requests > 0 && w.Repeat.Mode == schedule.Cron, at+".warmup.requests",
		"want none for mode cron: they would be sent when the process starts, and a pass would begin hours later")
	w.Trace.check(at+".trace", f)
	w.Synthetic.check(at+".synthetic", w, f)
	if d := w.Dataset; d.Given() {
		f.OneOf(at+".dataset.format", d.Format, "sharegpt", "single_turn", "multi_turn", "random_pool", "bundled")
		if d.Path == "" && d.Format != "bundled" && d.Format != "sharegpt" { // the reader explains how to get ShareGPT
			f.Add(at+".dataset.path", "want a file, got none")
		}
		f.If(d.Path != "" && d.Format == "bundled", at+".dataset.path", "want none for format bundled, got %q", d.Path)
		f.If(d.Turns && d.Format != "sharegpt", at+".dataset.turns", "needs format sharegpt, got format %q", d.Format)
	}
	f.If((w.Synthetic.Given() || w.Dataset.Given()) && w.Trace.Path == "" && (w.Trace.From != 0 || w.Trace.To != 0),
		at+".trace.from", "want no part of a trace where there is none, got %v to %v", w.Trace.From, w.Trace.To)
	if w.Timed() && w.Trace.Path == "" && (w.Synthetic.Given() || w.Dataset.Given()) {
		f.Add(at+".arrival", "want constant, poisson, gamma, concurrency, sessions or users for rows that have no times, got %q", w.Arrival)
	}
	if w.Burstiness == 0 && w.Arrival != schedule.Gamma { // to a plan 0 is none, and the default of the file is 1
		f.Add(at+".burstiness", "needs arrival gamma, got arrival %s", w.Arrival)
	}
	if w.Shard == (schedule.Shard{}) { // the zero value is unset for a plan, but the file's default is 1
		f.Add(at+".shard.of", "want an integer ≥ 1, got 0")
	}
	plan := w.Plan()
	*f = append(*f, plan.Check().Under(at)...)
}

func (t *Trace) check(at string, f *fault.List) {
	f.OneOf(at+".format", t.Format, trace.Readable...)
	named, is := trace.Format(t.Format), t.Columns.Given()
	f.If(is && named != trace.Auto && named != trace.Named, at+".columns", "want format %s or %s, got %s", trace.Auto, trace.Named, named)
	*f = append(*f, t.Columns.Check().Under(at+".columns")...)
	if b := t.BlockTokens; b != scalar.AutoValue && (b < 1 || b > trace.MaxTokens) {
		f.Add(at+".block_tokens", "want 1 to %d or auto, got %d", trace.MaxTokens, int(b))
	}
	*f = append(*f, t.LengthLimits.Check().Under(at)...)
}

func (s *Synthetic) check(at string, w *Workload, f *fault.List) {
	before := len(*f)
	number := func(key string, v, most float64) {
		f.If(!(v >= 0 && v <= most), at+key, "want 0 to %.0f, got %v", most, v)
	}
	const tokens = 1 << 24
	number(".input_tokens", s.InputTokens, tokens)
	number(".input_stddev", s.InputStddev, tokens)
	number(".output_tokens", s.OutputTokens, tokens)
	number(".output_stddev", s.OutputStddev, tokens)
	number(".turns", s.Turns, 1000)
	number(".turns_stddev", s.TurnsStddev, 1000)
	f.AtLeast(at+".system_tokens", s.SystemTokens, 0)
	f.AtLeast(at+".requests", s.Requests, 0)
	f.NotNegative(at+".turn_delay", s.TurnDelay)
	f.NotNegative(at+".turn_delay_stddev", s.TurnDelayStddev)
	f.If(s.Lengths != "" && (s.InputTokens != 0 || s.InputStddev != 0 || s.OutputTokens != 0 || s.OutputStddev != 0),
		at+".lengths", "want either lengths, or input_tokens, output_tokens and their deviations, got both")
	if s.Lengths != "" {
		if _, err := synth.ParsePairs(s.Lengths); err != nil {
			f.Add(at+".lengths", "%s", fault.Of(err).Line())
		}
	}
	if _, err := w.Made(); err != nil && s.Given() && len(*f) == before && w.Users <= synth.MaxUsers { // faults that involve several keys
		f.Add(at, "%s", fault.Of(err).Line())
	}
	if !s.Given() && *s != (Synthetic{}) {
		f.Add(at+".input_tokens", "want an integer ≥ 1, or lengths, got none")
	}
	f.If(s.Given() && s.Requests == 0 && w.ByRate() && w.Rows == 0 && w.Duration == 0,
		at+".requests", "want how many requests a loop has for arrival %s, got none", w.Arrival)
}

// Plan returns the options for package schedule.
func (w *Workload) Plan() schedule.Options {
	o := schedule.Options{
		Pattern: w.Pattern, TurnDelay: &w.TurnDelay, Repeat: w.Repeat, Shard: w.Shard,
		From: w.Trace.From, To: w.Trace.To, Seed: w.Prompt.Seed,
	}
	if !w.Closed() {
		o.Duration = w.Duration
	}
	if !w.Timed() {
		o.Rows = w.Rows
	}
	return o
}
