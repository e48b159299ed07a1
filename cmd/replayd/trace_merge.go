package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"replayd/internal/trace"
)

// maxMerged is the most files that are open at once.
const maxMerged = 256

func newTraceMerge(w *world) *cobra.Command {
	var in traceFlags
	var out traceOutput
	var share bool
	c := &cobra.Command{
		Use: "merge FILE FILE…", Short: "Write several traces as one, by their times",
		Long: `Write several traces as one, by their times: each begins at 0.

Rows of different files share no prefix and no session without --share-ids.`,
		Example: "  replayd trace merge conversation.jsonl toolagent.jsonl -o both.jsonl",
		Args:    usage(cobra.RangeArgs(2, maxMerged)),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if i := slices.Index(args, "-"); i >= 0 && slices.Contains(args[i+1:], "-") {
				return wrongInput(errors.New("want standard input (-) once, got it twice"))
			}
			var files []*trace.File
			defer func() {
				for _, f := range files {
					err = errors.Join(err, f.Close())
				}
			}()
			format := trace.Mooncake
			for i, path := range args {
				f, err := in.openNoisy(c, w, path)
				if err != nil {
					return err
				}
				switch files = append(files, f); {
				case i == 0:
					format = f.Stats.Format
				case f.Stats.Format != format:
					format = trace.Mooncake
				}
			}
			next, err := trace.Merge(files, share)
			if err != nil {
				return wrongInput(err)
			}
			return out.write(c.Context(), w, out.choose(format), writerOptions(files...), next)
		},
	}
	in.add(c)
	out.add(c, "output-format", "that of all the traces, else mooncake")
	c.Flags().BoolVar(&share, "share-ids", false, "equal ids and sessions of different files are the same")
	return c
}
