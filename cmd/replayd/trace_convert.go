package main

import "github.com/spf13/cobra"

func newTraceConvert(w *world) *cobra.Command {
	var in traceFlags
	var out traceOutput
	c := &cobra.Command{
		Use: "convert FILE", Short: "Write a trace in another format",
		Example: "  replayd trace convert azure.csv -o azure.jsonl\n" +
			"  replayd trace convert FOLDER -o sessions.jsonl",
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
			return out.write(c.Context(), w, f, rows.Next)
		},
	}
	in.add(c)
	out.add(c, "to")
	return c
}
