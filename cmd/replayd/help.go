package main

import (
	"fmt"

	"github.com/prometheus/common/version"
	"github.com/spf13/cobra"

	"replayd/internal/spelling"
)

// elsewhere has our commands for those of other programs: of aiperf, vllm, guidellm and inference-perf.
var elsewhere = map[string]string{
	"plot": "replayd report makes the page", "analyze-trace": "replayd trace analyze", "synthesize": "replayd trace synth makes traces",
	"kube": "deploy/helm has a chart", "bench": "replayd run takes the flags of vllm bench serve",
	"benchmark": "replayd run, with flags as in docs/how-to/from-vllm-bench.md", "inference-perf": "replayd run, with flags as in docs/how-to/from-vllm-bench.md",
}

// unknownCommand is the error of a name that is none of a command's commands.
func unknownCommand(c *cobra.Command, name string) error {
	if does := elsewhere[name]; does != "" && !c.HasParent() {
		return fmt.Errorf("unknown command %q for %q: %s", name, c.CommandPath(), does)
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(append(names, sub.Name()), sub.Aliases...)
		}
	}
	return fmt.Errorf("unknown command %q for %q%s", name, c.CommandPath(), spelling.DidYouMean(name, "", names))
}

// noCommand refuses the arguments of a command that only groups subcommands.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return wrongInput(fmt.Errorf("%w (usage: %s)", unknownCommand(c, args[0]), c.UseLine()))
}

// newHelp is cobra's own help command, but that of a command that does not exist is wrong usage.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about any command",
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = unknownCommand(about, rest[0])
			}
			if err != nil {
				return wrongInput(fmt.Errorf("%w (usage: %s)", err, c.UseLine()))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

func newVersion(w *world) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print version, commit, Go version, platform and build tags", Args: usage(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(w.out, version.Print("replayd"))
			return err
		},
	}
}
