package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Headings hold the flags of a command as its help shows them: in groups, each in the order of definition.
type Headings []heading

type heading struct {
	title string
	flags *pflag.FlagSet
}

// Under begins a group; flags that are defined on what it returns belong to it.
func (h *Headings) Under(title string) *pflag.FlagSet {
	f := pflag.NewFlagSet(title, pflag.ContinueOnError)
	f.SortFlags = false
	*h = append(*h, heading{title, f})
	return f
}

// Attach gives c the flags of all groups and a help that shows them so.
func (h Headings) Attach(c *cobra.Command) {
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
