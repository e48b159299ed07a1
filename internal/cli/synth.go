package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"replayd/internal/fault"
	"replayd/internal/spelling"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

// Synth are the flags of trace synth. Their keys are those of the faults of synth.RescaleOptions and synth.Draft.
type Synth struct {
	File   trace.Options // how FILE is read
	Scale  synth.RescaleOptions
	Draft  synth.Draft
	Output string

	arrival, pairs, tree string
}

// NewSynth returns the flags of trace synth with their defaults.
func NewSynth() *Synth {
	o := &Synth{
		File: trace.Options{Format: trace.Auto}, Draft: synth.Draft{Seed: 42}, Output: "-", arrival: "poisson", tree: "1/1/1",
		Scale: synth.RescaleOptions{Speedup: 1, PrefixLen: 1, PrefixRoot: 1, PromptLen: 1},
	}
	o.Draft.Rows.Input.Mean, o.Draft.Rows.Turns.Mean = 550, 1
	return o
}

// Titles of flags that want a FILE, or none.
const (
	rescale   = "Rescale FILE (AIPerf's names, such as --synthesis-max-isl, are taken too)"
	fromRates = "From rates and lengths"
)

// Table returns the flags.
func (o *Synth) Table() Table {
	z, d, s := &o.Scale, &o.Draft, &o.Draft.Rows
	return Table{
		{"Both", "", []Row{
			{"format", "", (*string)(&o.File.Format), spelling.Or(trace.Readable)},
			{"columns", "", Columns(&o.File.Columns), columnsUsage},
			{"block-tokens", "block_tokens", &o.File.BlockTokens, "tokens in a block of hash_ids; 0: detected, " +
				"and 512 where the trace is made up"},
			{"strict", "", &o.File.Strict, "refuse rows with more or fewer hash_ids than blocks, and other units; else warn"},
			{"seed", "seed", &d.Seed, "seed; the same seed makes the same trace"},
			{"output,o", "", &o.Output, "file to write, in Mooncake's format, or as sessions with parents; -: stdout"},
		}},
		{"Flags", "", []Row{
			{"shared-prefix", "", &o.File.SharedPrefix, "weka: the tools and system prompts of all sessions begin with the " +
				"same blocks"},
		}},
		{rescale, "", []Row{
			{"speedup", "speedup", &z.Speedup, "divide all times by this, 0.001 to 1000; turn delays stay"},
			{"prefix-len-multiplier", "prefix_len", &z.PrefixLen, "multiply the length of shared prefixes, 0.01 to 100"},
			{"prefix-root-multiplier", "prefix_root", &z.PrefixRoot, "copies of the prefix tree, which share nothing; " +
				"each row or session is in one"},
			{"prompt-len-multiplier", "prompt_len", &z.PromptLen, "multiply the length of unshared prompt parts, 0.01 to 100"},
			{"max-isl", "max_input", &z.MaxInput, "drop rows with longer prompts, in tokens; 0: none"},
			{"max-osl", "max_output", &z.MaxOutput, "cut longer outputs, in tokens; 0: none"},
		}},
		{fromRates, "", []Row{
			{"rate", "rate", &d.Rate, "requests per second; with turns: conversations per second"},
			{"duration", "span", &d.Span, "length of the trace, such as 10m"},
			{"arrival", "even", &o.arrival, "poisson or constant"},
			{"isl", "input input.mean", &s.Input.Mean, "mean tokens of a message"},
			{"isl-stddev", "input.stddev", &s.Input.Stddev, "standard deviation of --isl"},
			{"osl", "output output.mean", &s.Output.Mean, "mean output tokens; 0: none in the rows"},
			{"osl-stddev", "output.stddev", &s.Output.Stddev, "standard deviation of --osl"},
			{"sequence-distribution", "pairs", &o.pairs, "lengths as pairs with shares, such as 256|10,128:40;512,256:60; " +
				"replaces the four above"},
			{"shared-system-prompt-length", "system", &s.System, "tokens of a system prompt that all rows share, beside --isl"},
			{"session-turns-mean", "turns turns.mean", &s.Turns.Mean, "mean turns of a conversation; each has all earlier " +
				"turns in its prompt"},
			{"session-turns-stddev", "turns.stddev", &s.Turns.Stddev, "standard deviation of --session-turns-mean"},
			{"turn-delay", "delay", &s.Delay, "mean time between an answer and the next turn, such as 2s"},
			{"turn-delay-stddev", "delay_stddev", &s.DelayStddev, "standard deviation of --turn-delay"},
			{"shared", "tree.shared", &d.Tree.Shared, "share of the first message's tokens that comes from the prefix tree, " +
				"0 to 1"},
			{"tree", "tree tree.roots tree.branching tree.depth", &o.tree, "the prefix tree: ROOTS/BRANCHING/DEPTH"},
		}},
	}
}

// Add adds the flags to c.
func (o *Synth) Add(c *cobra.Command) {
	o.Table().Add(c)
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		name = strings.TrimPrefix(name, "synthesis-")
		ours := map[string]string{"speedup-ratio": "speedup", "random-seed": "seed", "seq-dist": "sequence-distribution"}
		return pflag.NormalizedName(cmp.Or(ours[name], name))
	})
}

// Check reports flags that contradict each other, and invalid values.
func (o *Synth) Check(flags *pflag.FlagSet, args []string) error {
	var wrong fault.List
	flags.Visit(func(f *pflag.Flag) {
		in := func(title string) bool { return slices.Contains(f.Annotations[group], title) }
		switch {
		case in(rescale) && len(args) == 0:
			wrong.Add("--"+f.Name, "want a FILE to change, got none")
		case in(rescale) && f.Value.String() == "0" && f.DefValue == "1":
			wrong.Add("--"+f.Name, "want more than 0, got 0")
		case in(fromRates) && len(args) > 0:
			wrong.Add("--"+f.Name, "makes a trace up, want no FILE beside it, got %s", args[0])
		}
	})
	if len(args) > 0 || len(wrong) > 0 {
		return wrong.Err()
	}
	wrong.If(!flags.Changed("rate"), "--rate", "want requests per second, or a FILE to change, got neither")
	wrong.If(o.arrival != "poisson" && o.arrival != "constant", "--arrival", "want poisson or constant, got %q", o.arrival)
	d := &o.Draft
	d.Even = o.arrival == "constant"
	d.BlockTokens = cmp.Or(o.File.BlockTokens, 512)
	if o.pairs != "" {
		pairs, err := synth.ParsePairs(o.pairs)
		wrong = append(wrong, under("--sequence-distribution", err)...)
		if d.Rows.Pairs = pairs; !flags.Changed("isl") {
			d.Rows.Input.Mean = 0
		}
	}
	if d.Tree.Shared == 0 && !flags.Changed("tree") {
		return wrong.Err()
	}
	t, rest := &d.Tree, ""
	if n, _ := fmt.Sscanf(o.tree+" .", "%d/%d/%d %s", &t.Roots, &t.Branching, &t.Depth, &rest); n != 4 || rest != "." {
		wrong.Add("--tree", "want ROOTS/BRANCHING/DEPTH, such as 8/2/3, got %q", o.tree)
	}
	return wrong.Err()
}
