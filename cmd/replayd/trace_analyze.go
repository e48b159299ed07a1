package main

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"replayd/internal/file"
	"replayd/internal/terminal"
	"replayd/internal/trace/analysis"
)

// analyzeFlags say how to analyze a trace, and where to write the analysis besides the terminal.
type analyzeFlags struct {
	file   traceFlags
	output string
	caches []int
}

func newTraceAnalyze(w *world) *cobra.Command {
	var o analyzeFlags
	c := &cobra.Command{
		Use: "analyze FILE", Short: "Print lengths, arrivals, prefixes and the hit ratio by cache size",
		Example: "  replayd trace analyze conversation_trace.jsonl\n" +
			"  replayd trace analyze trace.jsonl --output-file analysis.json",
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			for _, n := range o.caches {
				if n < 1 {
					return wrongInput(fmt.Errorf("--cache-blocks: want 1 or more, got %d", n))
				}
			}
			f, err := o.file.open(c, w, args[0])
			if err != nil {
				return wrongInput(err)
			}
			defer f.Close()
			a, err := analysis.Analyze(c.Context(), f, o.caches)
			if err != nil {
				return err
			}
			return o.write(w, a)
		},
	}
	o.file.add(c)
	c.Flags().StringVar(&o.output, "output-file", "", "write JSON, with AIPerf's names, to this file; -: to stdout, without tables")
	c.Flags().IntSliceVar(&o.caches, "cache-blocks", nil, "sizes of the caches in blocks, such as 8192,16384; empty: a dozen")
	c.Flags().SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		if name == "block-size" { // AIPerf's name
			name = "block-tokens"
		}
		return pflag.NormalizedName(name)
	})
	return c
}

// write writes all requested outputs. If the JSON goes to stdout, the table is not printed.
func (o *analyzeFlags) write(w *world, a analysis.Analysis) error {
	if o.output == "-" {
		return a.WriteJSON(w.data)
	}
	shown := a
	shown.Stats.Path = terminal.Name(a.Stats.Path)
	if err := shown.WriteTable(w.out, w.columns); err != nil {
		return err
	}
	if o.output == "" {
		return nil
	}
	if err := save("--output-file", o.output, a.WriteJSON); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w.out, "\nAnalysis report saved to %s\n", terminal.Name(o.output))
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
