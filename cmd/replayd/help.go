package main

import (
	"fmt"

	"github.com/spf13/cobra"
)

// newHelp is cobra's own help command, but that of a command that does not exist is wrong usage.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND]", Short: "Help about any command",
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err == nil && len(rest) > 0 {
				err = fmt.Errorf("unknown command %q for %q", rest[0], about.CommandPath())
			}
			if err != nil {
				return wrongInput(fmt.Errorf("%w (usage: %s)", err, c.UseLine()))
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}
