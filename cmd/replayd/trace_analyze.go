package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"replayd/internal/file"
	"replayd/internal/terminal"
	"replayd/internal/trace"
	"replayd/internal/trace/analysis"
)

func newTraceAnalyze(w *world) *cobra.Command {
	var output string
	var caches []int
	c := withTrace(w, &cobra.Command{
		Use: "analyze FILE", Short: "Print lengths, arrivals, prefixes and the hit ratio by cache size",
		Example: "  replayd trace analyze conversation_trace.jsonl\n" +
			"  replayd trace analyze trace.jsonl --output-file analysis.json",
		PreRunE: func(*cobra.Command, []string) error {
			for _, n := range caches {
				if n < 1 {
					return wrongInput(fmt.Errorf("--cache-blocks: want 1 or more, got %d", n))
				}
			}
			return nil
		},
	}, func(ctx context.Context, f *trace.File) error {
		a, err := analysis.Analyze(ctx, f, caches)
		if err != nil {
			return err
		}
		return writeAnalysis(w, a, output)
	})
	c.Flags().StringVar(&output, "output-file", "", "write JSON, with AIPerf's names, to this file; -: to stdout, without tables")
	c.Flags().IntSliceVar(&caches, "cache-blocks", nil, "sizes of the caches in blocks, such as 8192,16384; empty: a dozen")
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "block-size" { // AIPerf's name
			name = "block-tokens"
		}
		return pflag.NormalizedName(name)
	})
	return c
}

// writeAnalysis writes all requested outputs. If the JSON goes to stdout, the tables are not printed.
func writeAnalysis(w *world, a analysis.Analysis, output string) error {
	if output == "-" {
		return a.WriteJSON(w.data)
	}
	shown := a
	shown.Stats.Path = terminal.Name(a.Stats.Path)
	if err := shown.WriteTable(w.out, w.columns); err != nil {
		return err
	}
	if output == "" {
		return nil
	}
	if err := save("--output-file", output, a.WriteJSON); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w.out, "\nAnalysis report saved to %s\n", terminal.Name(output))
	return err
}

// save writes a file whole and creates its folder if needed.
func save(flag, path string, write func(io.Writer) error) error {
	if err := file.MkdirAll(filepath.Dir(path)); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if err := file.Replace(path, write); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}
