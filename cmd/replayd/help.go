package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
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

// headings hold the flags of a command as its help shows them: in groups, each in the order of definition.
type headings []heading

type heading struct {
	title string
	flags *pflag.FlagSet
}

// under begins a group; flags that are defined on what it returns belong to it.
func (h *headings) under(title string) *pflag.FlagSet {
	f := pflag.NewFlagSet(title, pflag.ContinueOnError)
	f.SortFlags = false
	*h = append(*h, heading{title, f})
	return f
}

// attach gives c the flags of all groups and a help that shows them so.
func (h headings) attach(c *cobra.Command) {
	for _, g := range h {
		c.Flags().AddFlagSet(g.flags)
	}
	c.SetUsageFunc(func(c *cobra.Command) error {
		w := c.OutOrStderr()
		fmt.Fprintf(w, "Usage:\n  %s\n", c.UseLine())
		if c.HasExample() {
			fmt.Fprintf(w, "\nExamples:\n%s\n", c.Example)
		}
		for _, g := range h {
			fmt.Fprintf(w, "\n%s:\n%s", g.title, g.flags.FlagUsages())
		}
		rest := pflag.NewFlagSet("rest", pflag.ContinueOnError)
		rest.AddFlag(c.Flags().Lookup("help"))
		rest.AddFlagSet(c.InheritedFlags())
		_, err := fmt.Fprintf(w, "\nEvery command:\n%s", rest.FlagUsages())
		return err
	})
}
