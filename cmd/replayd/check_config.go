package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"replayd/internal/config"
	"replayd/internal/daemon"
)

func newCheckConfig(w *world) *cobra.Command {
	var noFiles bool
	c := &cobra.Command{
		Use: "check-config FILE", Short: "Print every error of a configuration at once, with its line; exit 0 or 2",
		Long: `check-config prints every error for which serve and a reload would refuse a configuration, each with
its line, and exits with 0 or 2. It reads each trace and dataset once, opens the files of keys and
certificates, and connects to nothing.`,
		Example: `  replayd check-config replayd.yaml
  replayd check-config replayd.yaml --no-files`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := loadConfig(w, args[0], nil)
			if !noFiles {
				err = daemon.Check(cmd.Context(), c, w.log, err)
			}
			if s := stopped(cmd.Context()); s != nil && err != nil {
				return &exitError{s.code(), err}
			}
			if err != nil {
				return wrongInput(err)
			}
			var names []string
			for _, w := range c.Workloads {
				names = append(names, w.Name)
			}
			_, err = fmt.Fprintf(w.out, "%s: ok, %s, %s: %s\n", args[0], plural(len(c.Targets), "target"), plural(len(names), "workload"), strings.Join(names, ", "))
			return err
		},
	}
	c.Flags().BoolVar(&noFiles, "no-files", false, "check the configuration alone: the files that it names may be elsewhere")
	return c
}

func loadConfig(w *world, path string, c *cobra.Command) (config.Config, error) {
	ignored := func(name string) { w.log.Debug("not a key of the configuration, left alone", "variable", name) }
	if c == nil {
		return config.Load(path, w.env, nil, ignored)
	}
	return config.Load(path, w.env, c.Flags(), ignored)
}

// plural counts things.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
