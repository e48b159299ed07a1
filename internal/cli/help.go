package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"replayd/internal/terminal"
)

// helpColumns is the width of all help texts.
const helpColumns = 80

// group is the annotation of a flag that names its group in the help.
const group = "group"

// AliasNote is the annotation of a command that says what its alias does.
const AliasNote = "alias"

// SetHelp gives a command and all commands below it the help of this package.
func SetHelp(root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) { fmt.Fprint(c.OutOrStdout(), help(c)) })
	root.SetUsageFunc(func(c *cobra.Command) error {
		_, err := fmt.Fprint(c.OutOrStderr(), help(c))
		return err
	})
}

// help is the help text of a command: what it does, how it is called, two examples, its commands or its flags, and then the rest of its
// description.
func help(c *cobra.Command) string {
	out := &terminal.Table{Columns: helpColumns}
	about, notes, _ := strings.Cut(c.Long, "\n\n")
	if about == "" {
		about = c.Short + "."
	}
	out.Wrapped("", strings.ReplaceAll(about, "\n", " "), 0)
	fmt.Fprintf(out, "\nUsage:\n  %s\n", c.UseLine())
	if len(c.Aliases) > 0 {
		fmt.Fprintf(out, "  %s (%s)\n", c.Parent().CommandPath()+" "+strings.Join(c.Aliases, ", "), c.Annotations[AliasNote])
	}
	if c.HasExample() {
		fmt.Fprintf(out, "\nExamples:\n%s\n", c.Example)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintln(out, "\nCommands:")
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				out.Wrapped(fmt.Sprintf("  %-14s", sub.Name()), sub.Short, 16)
			}
		}
	}
	titles, flags := Groups(c)
	for _, title := range titles {
		fmt.Fprintf(out, "\n%s:\n%s", title, flags[title].FlagUsagesWrapped(helpColumns))
	}
	if notes != "" {
		fmt.Fprintf(out, "\n%s\n", notes)
	}
	if c.HasAvailableSubCommands() {
		fmt.Fprintf(out, "\n\"%s COMMAND --help\" says more of a command.\n", c.CommandPath())
	}
	return out.String()
}

// General is the title of the flags that every command has.
const General = "Every command"

// Groups are the visible flags of a command under the titles of their groups, in the order of definition.
func Groups(c *cobra.Command) (titles []string, flags map[string]*pflag.FlagSet) {
	flags = map[string]*pflag.FlagSet{}
	add := func(title string, f *pflag.Flag) {
		if flags[title] == nil {
			titles = append(titles, title)
			flags[title] = pflag.NewFlagSet(title, pflag.ContinueOnError)
			flags[title].SortFlags = false
		}
		flags[title].AddFlag(f)
	}
	own := c.LocalNonPersistentFlags()
	c.Flags().VisitAll(func(f *pflag.Flag) { // own has another order
		switch titles := f.Annotations[group]; {
		case f.Hidden || f.Name == "help" || own.Lookup(f.Name) == nil:
		case len(titles) > 0:
			add(titles[0], f)
		default:
			add("Flags", f)
		}
	})
	add(General, c.Flags().Lookup("help"))
	for _, set := range []*pflag.FlagSet{c.PersistentFlags(), c.InheritedFlags()} {
		set.VisitAll(func(f *pflag.Flag) { add(General, f) })
	}
	return titles, flags
}
