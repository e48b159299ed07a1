package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"replayd/internal/cli"
	"replayd/internal/config"
	"replayd/internal/number"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

func newTraceSynth(w *world) *cobra.Command {
	var o synthFlags
	c := &cobra.Command{
		Use: "synth [FILE]", Short: "Write a synthetic trace: FILE rescaled, or one from rates and lengths",
		Example: "  replayd trace synth trace.jsonl --speedup 2 -o faster.jsonl\n" +
			"  replayd trace synth --rate 5 --duration 10m --isl 1000 --osl 200 -o made.jsonl",
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.check(c.Flags(), args); err != nil {
				return wrongInput(err)
			}
			rows, untimed, err := o.rows(c, w, args)
			if err != nil {
				return wrongInput(err)
			}
			return writeTo(w, o.output, func(out io.Writer) error { return o.write(w, out, rows, untimed) })
		},
	}
	o.add(c)
	return c
}

// synthFlags say how to change a trace, or how to make one up.
type synthFlags struct {
	file   traceFlags
	scale  synth.RescaleOptions
	draft  synth.Draft
	output string

	changing, making *pflag.FlagSet

	arrival, pairs, tree         string
	duration, delay, delayStddev config.Duration
}

func (o *synthFlags) add(c *cobra.Command) {
	var help cli.Headings
	f := help.Under("Rescale FILE (AIPerf's names, such as --synthesis-max-isl, are taken too)")
	f.Float64Var(&o.scale.Speedup, "speedup", 1, "divide all times by this, 0.001 to 1000; turn delays stay")
	f.Float64Var(&o.scale.PrefixLen, "prefix-len-multiplier", 1, "multiply the length of shared prefixes, 0.01 to 100")
	f.IntVar(&o.scale.PrefixRoot, "prefix-root-multiplier", 1, "copies of the prefix tree, which share nothing; each row or session is in one")
	f.Float64Var(&o.scale.PromptLen, "prompt-len-multiplier", 1, "multiply the length of unshared prompt parts, 0.01 to 100")
	f.IntVar(&o.scale.MaxInput, "max-isl", 0, "drop rows with longer prompts, in tokens; 0: none")
	f.IntVar(&o.scale.MaxOutput, "max-osl", 0, "cut longer outputs, in tokens; 0: none")
	o.changing = f

	s := &o.draft.Rows
	f = help.Under("From rates and lengths")
	f.Float64Var(&o.draft.Rate, "rate", 0, "requests per second; with turns: conversations per second")
	f.Var(cli.Duration(&o.duration), "duration", "length of the trace, such as 10m")
	f.StringVar(&o.arrival, "arrival", "poisson", "poisson or constant")
	f.Float64Var(&s.Input.Mean, "isl", 550, "mean tokens of a message")
	f.Float64Var(&s.Input.Stddev, "isl-stddev", 0, "standard deviation of --isl")
	f.Float64Var(&s.Output.Mean, "osl", 0, "mean output tokens; 0: none in the rows")
	f.Float64Var(&s.Output.Stddev, "osl-stddev", 0, "standard deviation of --osl")
	f.StringVar(&o.pairs, "sequence-distribution", "", "lengths as pairs with shares, such as 256|10,128:40;512,256:60; replaces the four above")
	f.IntVar(&s.System, "shared-system-prompt-length", 0, "tokens of a system prompt that all rows share, beside --isl")
	f.Float64Var(&s.Turns.Mean, "session-turns-mean", 1, "mean turns of a conversation; each has all earlier turns in its prompt")
	f.Float64Var(&s.Turns.Stddev, "session-turns-stddev", 0, "standard deviation of --session-turns-mean")
	f.Var(cli.Duration(&o.delay), "turn-delay", "mean time between an answer and the next turn, such as 2s")
	f.Var(cli.Duration(&o.delayStddev), "turn-delay-stddev", "standard deviation of --turn-delay")
	f.Float64Var(&o.draft.Tree.Shared, "shared", 0, "share of the first message's tokens that comes from the prefix tree, 0 to 1")
	f.StringVar(&o.tree, "tree", "1/1/1", "the prefix tree: ROOTS/BRANCHING/DEPTH")
	o.making = f

	o.file.add(c)
	f = help.Under("Both")
	for _, name := range []string{"format", "block-tokens", "strict"} {
		f.AddFlag(c.Flags().Lookup(name))
	}
	f.Lookup("block-tokens").Usage = "tokens in a block of hash_ids; 0: detected, and 512 where the trace is made up"
	f.Uint64Var(&o.draft.Seed, "seed", 42, "seed; the same seed makes the same trace")
	f.StringVarP(&o.output, "output", "o", "-", "file to write, in Mooncake's format, or as sessions with parents; -: stdout")
	help.Attach(c)
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		name = strings.TrimPrefix(name, "synthesis-")
		if ours, ok := map[string]string{"speedup-ratio": "speedup", "random-seed": "seed", "seq-dist": "sequence-distribution"}[name]; ok {
			name = ours
		}
		return pflag.NormalizedName(name)
	})
}

// check reports flags that contradict each other, and invalid values.
func (o *synthFlags) check(flags *pflag.FlagSet, args []string) error {
	var errs []error
	flags.Visit(func(f *pflag.Flag) {
		switch changes, makes := o.changing.Lookup(f.Name) != nil, o.making.Lookup(f.Name) != nil; {
		case changes && len(args) == 0:
			errs = append(errs, fmt.Errorf("--%s: want a FILE to change, got none", f.Name))
		case changes && f.Value.String() == "0" && f.DefValue == "1":
			errs = append(errs, fmt.Errorf("--%s: want more than 0, got 0", f.Name))
		case makes && len(args) > 0:
			errs = append(errs, fmt.Errorf("--%s: makes a trace up, want no FILE beside it, got %s", f.Name, args[0]))
		}
	})
	if len(args) > 0 || len(errs) > 0 {
		return errors.Join(errs...)
	}
	if !flags.Changed("rate") {
		errs = append(errs, errors.New("--rate: want requests per second, or a FILE to change, got neither"))
	}
	if o.arrival != "poisson" && o.arrival != "constant" {
		errs = append(errs, fmt.Errorf("--arrival: want poisson or constant, got %q", o.arrival))
	}
	d := &o.draft
	d.Even, d.Span = o.arrival == "constant", time.Duration(o.duration)
	d.Rows.Delay, d.Rows.DelayStddev = time.Duration(o.delay), time.Duration(o.delayStddev)
	if d.BlockTokens = o.file.block; d.BlockTokens == 0 {
		d.BlockTokens = 512
	}
	if o.pairs != "" {
		pairs, err := synth.ParsePairs(o.pairs)
		if err != nil {
			errs = append(errs, fmt.Errorf("--sequence-distribution: %w", err))
		}
		if d.Rows.Pairs = pairs; !flags.Changed("isl") {
			d.Rows.Input.Mean = 0
		}
	}
	if d.Tree.Shared == 0 && !flags.Changed("tree") {
		return errors.Join(errs...)
	}
	t, rest := &d.Tree, ""
	if n, _ := fmt.Sscanf(o.tree+" .", "%d/%d/%d %s", &t.Roots, &t.Branching, &t.Depth, &rest); n != 4 || rest != "." {
		errs = append(errs, fmt.Errorf("--tree: want ROOTS/BRANCHING/DEPTH, such as 8/2/3, got %q", o.tree))
	}
	return errors.Join(errs...)
}

// rows returns the rows of the new trace.
func (o *synthFlags) rows(c *cobra.Command, w *world, args []string) (rows []trace.Record, untimed bool, err error) {
	if len(args) == 0 {
		rows, err = o.draft.Records()
		return rows, false, inFlags(err, synthFlagOf)
	}
	f, err := o.file.open(c, w, args[0])
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	in, err := f.Rows(0)
	if err != nil {
		return nil, false, err
	}
	for range f.Stats.Requests {
		r, err := in.Next()
		if err != nil {
			return nil, false, err
		}
		rows = append(rows, r)
	}
	o.scale.BlockTokens, o.scale.Seed = f.Stats.BlockTokens, o.draft.Seed
	all := len(rows)
	if rows, err = synth.Rescale(rows, o.scale); err != nil {
		return nil, false, inFlags(err, synthFlagOf)
	}
	if left := all - len(rows); left > 0 {
		w.log.Info("rows over --max-isl are left out", "rows", left, "of", all, "max_isl", o.scale.MaxInput)
	}
	if len(rows) == 0 {
		return nil, false, fmt.Errorf("--max-isl: want at least one row of that length or shorter, got %d: all %s are longer", o.scale.MaxInput, number.Count(all, "row"))
	}
	return rows, !f.Stats.HasTimestamps, nil
}

func (o *synthFlags) write(w *world, out io.Writer, rows []trace.Record, untimed bool) error {
	block := o.scale.BlockTokens
	if o.draft.BlockTokens > 0 {
		block = o.draft.BlockTokens
	}
	format := trace.Mooncake
	if slices.ContainsFunc(rows, func(r trace.Record) bool { return r.After != nil }) {
		format = trace.Sessions
	}
	to, err := trace.NewWriter(out, format, trace.WriterOptions{Untimed: untimed, BlockTokens: block})
	if err != nil {
		return err
	}
	for i := range rows {
		if err := to.Write(&rows[i]); err != nil {
			return err
		}
	}
	for _, warning := range to.Warnings() {
		w.log.Warn("not all of the trace could be written", "warning", warning)
	}
	return to.Close()
}

// synthFlagOf maps synth's names of options to flags, if they differ.
var synthFlagOf = map[string]string{
	"prefix_len": "prefix-len-multiplier", "prompt_len": "prompt-len-multiplier", "prefix_root": "prefix-root-multiplier",
	"max_input": "max-isl", "max_output": "max-osl", "block_tokens": "block-tokens",
	"input": "isl", "output": "osl", "pairs": "sequence-distribution", "system": "shared-system-prompt-length",
	"turns": "session-turns-mean", "delay": "turn-delay",
}
