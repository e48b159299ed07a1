package main

import (
	"github.com/spf13/cobra"

	"replayd/internal/trace"
)

func newTraceConvert(w *world) *cobra.Command {
	var in traceFlags
	var out traceOutput
	c := &cobra.Command{
		Use: "convert FILE", Short: "Write a trace in another format",
		Example: "  replayd trace convert azure.csv -o azure.jsonl\n" +
			"  zcat BurstGPT_1.csv.gz | replayd trace convert - > burstgpt.jsonl",
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := in.openNoisy(c, w, args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			rows, err := f.Rows(0)
			if err != nil {
				return err
			}
			return out.write(c.Context(), w, out.choose(trace.Mooncake), writerOptions(f), rows.Next)
		},
	}
	in.add(c)
	out.add(c, "to", "azure for a name that ends in .csv, else mooncake")
	return c
}
