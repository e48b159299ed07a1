package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"replayd/internal/cli"
	"replayd/internal/fault"
	"replayd/internal/number"
	"replayd/internal/synth"
	"replayd/internal/trace"
)

func newTraceSynth(w *world) *cobra.Command {
	o := synthCommand{cli.NewSynth()}
	c := &cobra.Command{
		Use: "synth [FILE]", Short: "Write a synthetic trace: FILE rescaled, or one from rates and lengths",
		Example: "  replayd trace synth trace.jsonl --speedup 2 -o faster.jsonl\n" +
			"  replayd trace synth --rate 5 --duration 10m --isl 1000 --osl 200 -o made.jsonl",
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			if err := o.Check(c.Flags(), args); err != nil {
				return wrongInput(err)
			}
			rows, untimed, err := o.rows(c, w, args)
			if err != nil {
				return wrongInput(err)
			}
			return writeTo(w, o.Output, func(out io.Writer) error { return o.write(w, out, rows, untimed) })
		},
	}
	o.Add(c)
	return c
}

type synthCommand struct{ *cli.Synth }

func (o *synthCommand) rows(c *cobra.Command, w *world, args []string) (rows []trace.Record, untimed bool, err error) {
	if len(args) == 0 {
		rows, err = o.Draft.Records()
		return rows, false, o.byFlag(err)
	}
	file := traceFlags{o.File}
	f, err := file.open(c, w, args[0])
	if err != nil {
		return nil, false, err
	}
	defer f.Close()
	if err := f.Each(c.Context(), func(r *trace.Record) { rows = append(rows, *r) }); err != nil {
		return nil, false, err
	}
	o.Scale.BlockTokens, o.Scale.Seed = f.Stats.BlockTokens, o.Draft.Seed
	all := len(rows)
	if rows, err = synth.Rescale(rows, o.Scale); err != nil {
		return nil, false, o.byFlag(err)
	}
	if left := all - len(rows); left > 0 {
		w.log.Info("rows over --max-isl are left out", "rows", left, "of", all, "max_isl", o.Scale.MaxInput)
	}
	if len(rows) == 0 {
		return nil, false, fmt.Errorf("--max-isl: want at least one row of that length or shorter, got %d: all %s are longer",
			o.Scale.MaxInput, number.Count(all, "row"))
	}
	return rows, !f.Stats.HasTimestamps, nil
}

func (o *synthCommand) write(w *world, out io.Writer, rows []trace.Record, untimed bool) error {
	block := cmp.Or(o.Draft.BlockTokens, o.Scale.BlockTokens)
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

// byFlag names the flags of the faults in an error. An error of a row has no key.
func (o *synthCommand) byFlag(err error) error { return fault.Of(err).Named(o.Table().NameOf).Err() }
