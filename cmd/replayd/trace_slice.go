package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"replayd/internal/cli"
	"replayd/internal/trace"
)

func newTraceSlice(w *world) *cobra.Command {
	var out traceOutput
	var part trace.Selection
	var rows string
	c := withTrace(w, &cobra.Command{
		Use: "slice FILE", Short: "Write a part of a trace: a time, some rows, a sample",
		Example: "  replayd trace slice trace.jsonl --from 10m --to 15m -o part.jsonl\n" +
			"  replayd trace slice BurstGPT_1.csv --sample 0.1 --seed 1 -o tenth.jsonl",
		PreRunE: func(*cobra.Command, []string) (err error) {
			part.FirstRow, part.ToRow, err = rowRange(rows)
			return wrongInput(err)
		},
	}, func(ctx context.Context, f *trace.File) error {
		warn(w.err, f.Stats.Warnings)
		next, err := part.Rows(f)
		if errors.Is(err, trace.ErrChanged) { // meanwhile, so that the flags are not wrong
			return err
		}
		if err != nil {
			return wrongInput(err)
		}
		return out.write(ctx, w, f, next)
	})
	out.add(c, "output-format")
	c.Flags().Var(cli.Duration(&part.From), "from", "drop rows that are due before this time of the trace, such as 10m")
	c.Flags().Var(cli.Duration(&part.To), "to", "drop rows that are due at this time or later; 0: none")
	c.Flags().StringVar(&rows, "rows", "", "rows to keep, FIRST:END, from 0, such as 100:200 or :50")
	c.Flags().Float64Var(&part.Sample, "sample", 1, "share of conversations to keep, such as 0.1; none is split")
	c.Flags().Uint64Var(&part.Seed, "seed", 42, "seed of the sample")
	c.Flags().BoolVar(&part.KeepTimes, "keep-times", false, "keep the timestamps; else the first row is due at 0")
	return c
}

// rowRange parses FIRST:END. Either number may be left out.
func rowRange(text string) (first, end int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	from, to, ok := strings.Cut(text, ":")
	if ok && from != "" {
		first, err = strconv.Atoi(from)
	}
	if ok && err == nil && to != "" {
		end, err = strconv.Atoi(to)
	}
	if !ok || err != nil || first < 0 || to != "" && end <= first {
		return 0, 0, fmt.Errorf("--rows: want FIRST:END with 0 ≤ FIRST < END, got %q", text)
	}
	return first, end, nil
}
