package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"replayd/internal/cli"
	"replayd/internal/number"
	"replayd/internal/spelling"
	"replayd/internal/terminal"
	"replayd/internal/trace"
)

func newTrace(w *world) *cobra.Command {
	c := &cobra.Command{
		Use: "trace COMMAND", Short: "Look into traces, and make traces from traces",
		Args: noCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newTraceInfo(w), newTraceValidate(w), newTraceSynth(w), newTraceConvert(w), newTraceSlice(w), newTraceAnalyze(w))
	return c
}

func newTraceInfo(w *world) *cobra.Command {
	return withTrace(w, &cobra.Command{
		Use: "info FILE", Short: "Print rates, lengths, prefix blocks and the ideal hit ratio of a trace",
		Example: "  replayd trace info conversation_trace.jsonl\n  zcat trace.gz | replayd trace info -",
	}, func(_ context.Context, f *trace.File) error {
		var text strings.Builder
		shown := f.Stats
		shown.Path = terminal.Name(f.Stats.Path)
		if err := shown.WriteTable(&text); err != nil {
			return err
		}
		_, err := io.WriteString(w.out, terminal.Fit(text.String(), w.columns))
		return err
	})
}

func newTraceValidate(w *world) *cobra.Command {
	return withTrace(w, &cobra.Command{
		Use: "validate FILE", Short: "Print every error of a trace, with line and field",
		Example: "  replayd trace validate --strict trace.jsonl",
	}, func(_ context.Context, f *trace.File) error {
		warn(w.out, f.Stats.Warnings)
		s := &f.Stats
		_, err := fmt.Fprintf(w.out, "%s: ok, %s\n", terminal.Name(s.Path), number.Count(s.Requests, "request"))
		return err
	})
}

func newTraceConvert(w *world) *cobra.Command {
	var out traceOutput
	c := withTrace(w, &cobra.Command{
		Use: "convert FILE", Short: "Write a trace in another format",
		Example: "  replayd trace convert azure.csv -o azure.jsonl\n" +
			"  replayd trace convert FOLDER -o sessions.jsonl",
	}, func(ctx context.Context, f *trace.File) error {
		warn(w.err, f.Stats.Warnings)
		rows, err := f.Rows(0)
		if err != nil {
			return err
		}
		return out.write(ctx, w, f, rows.Next)
	})
	out.add(c, "to")
	return c
}

// withTrace makes c a command that does something with one trace.
func withTrace(w *world, c *cobra.Command, do func(context.Context, *trace.File) error) *cobra.Command {
	var o traceFlags
	c.Args = usage(cobra.ExactArgs(1))
	c.RunE = func(c *cobra.Command, args []string) error {
		f, err := o.open(c, w, args[0])
		if err != nil {
			return wrongInput(err)
		}
		defer f.Close()
		return do(c.Context(), f)
	}
	o.add(c)
	return c
}

// traceFlags say how to read a trace file.
type traceFlags struct{ trace.Options }

func (o *traceFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar((*string)(&o.Format), "format", "auto", spelling.Or(trace.Readable))
	cli.AddColumns(f, &o.Columns)
	f.BoolVar(&o.SharedPrefix, "shared-prefix", false,
		"weka: the tools and system prompts of all sessions begin with the same blocks")
	f.IntVar(&o.BlockTokens, "block-tokens", 0, "tokens in a block of hash_ids; 0: detected")
	f.BoolVar(&o.Strict, "strict", false, "refuse rows with more or fewer hash_ids than blocks, and other units; else warn")
}

func (o *traceFlags) open(c *cobra.Command, w *world, path string) (*trace.File, error) {
	o.Stdin = w.in
	return trace.Open(c.Context(), path, o.Options)
}
