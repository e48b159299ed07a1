package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"replayd/internal/cli"
)

const referencePage = "../../docs/reference/command-line.md"

const referenceHead = `# Command line

Every command of replayd with all of its flags, as ` + "`replayd COMMAND --help`" + ` shows them.

<!-- Written by go test ./cmd/replayd -run Reference -update. -->

Exit codes of every command:

| code | meaning |
|---|---|
| 0 | done |
| 1 | failed at run time; ` + "`run`" + `: also if the server was not ready or not reached, or no request ended ok |
| 2 | wrong usage, configuration or input; nothing was sent |
| 3 | ` + "`run`" + `: done, and ` + "`--slo`, `--min-goodput` or `--slo-attainment-fraction`" + ` was missed |
| 129, 130, 143 | ended by SIGHUP (but for ` + "`serve`" + ` and nohup), SIGINT or SIGTERM; ` + "`run`" + ` has written its report, unless a part is stuck |
| 141 | the reader of stdout went away; ` + "`run`" + ` ends with its own code |

` + "`serve --exit-when-done`" + ` has those of ` + "`run`" + `: [a daemon that ends](../how-to/ci-gate.md#a-daemon-that-ends).
`

// The page has every command with its flags. Flags of AIPerf that are refused are in internal/cli/foreign_flags.txt.
func TestReferenceOfTheCommandLine(t *testing.T) {
	got := reference(t)
	if *update {
		if err := os.WriteFile(referencePage, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("docs/reference/command-line.md and the commands (-page +commands); -update rewrites the page:\n%s", diff)
	}
}

func reference(t *testing.T) string {
	t.Helper()
	page := &strings.Builder{}
	page.WriteString(referenceHead)
	root := newRoot(&world{})
	all := commands(root)
	page.WriteString("\n| command | |\n|---|---|\n")
	for _, c := range all[1:] {
		fmt.Fprintf(page, "| [%s](#%s) | %s |\n", c.CommandPath(), strings.ReplaceAll(c.CommandPath(), " ", "-"), c.Short)
	}
	page.WriteString("\n## Every command\n\n")
	rows(t, page, root.PersistentFlags())
	for _, c := range all[1:] {
		fmt.Fprintf(page, "\n## %s\n\n", c.CommandPath())
		about, notes, _ := strings.Cut(c.Long, "\n\n")
		if about == "" {
			about = c.Short + "."
		}
		fmt.Fprintf(page, "%s\n\n```\n%s\n%s```\n", about, c.UseLine(), examples(c))
		flagTables(t, page, c)
		if notes != "" {
			fmt.Fprintf(page, "\n```\n%s\n```\n", notes)
		}
		if c.Name() == "run" {
			aliasRows(t, page, c)
		}
	}
	return page.String()
}

// flagTables writes the flags that the commands of c share, and those of c that it does not share.
func flagTables(t *testing.T, page *strings.Builder, c *cobra.Command) {
	t.Helper()
	if common := shared(c); common.HasFlags() {
		page.WriteString("\nFlags that its commands share:\n\n")
		rows(t, page, common)
	}
	ofParent := shared(c.Parent())
	titles, flags := cli.Groups(c)
	titles = slices.DeleteFunc(titles, func(title string) bool { return title == cli.General })
	var elsewhere []string
	for _, title := range titles {
		own := pflag.NewFlagSet(title, pflag.ContinueOnError)
		own.SortFlags = false
		flags[title].VisitAll(func(f *pflag.Flag) {
			if equal(f, ofParent.Lookup(f.Name)) {
				elsewhere = append(elsewhere, "`--"+f.Name+"`")
			} else {
				own.AddFlag(f)
			}
		})
		if len(titles) > 1 && own.HasFlags() {
			fmt.Fprintf(page, "\n### %s\n", c.Name()+": "+strings.ToLower(title[:1])+title[1:])
		}
		if own.HasFlags() {
			page.WriteString("\n")
			rows(t, page, own)
		}
	}
	if elsewhere != nil {
		parent := c.Parent().CommandPath()
		fmt.Fprintf(page, "\nAnd of [%s](#%s): %s.\n", parent, strings.ReplaceAll(parent, " ", "-"),
			strings.Join(elsewhere, ", "))
	}
}

// shared returns the flags that three or more commands of c have alike: the page has them once. The commands of replayd
// itself are unlike.
func shared(c *cobra.Command) *pflag.FlagSet {
	common := pflag.NewFlagSet(c.Name(), pflag.ContinueOnError)
	if !c.HasParent() {
		return common
	}
	for _, one := range c.Commands() {
		one.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
			alike := 0
			for _, other := range c.Commands() {
				if equal(f, other.Flags().Lookup(f.Name)) {
					alike++
				}
			}
			if alike >= 3 && !f.Hidden && f.Name != "help" && common.Lookup(f.Name) == nil {
				common.AddFlag(f)
			}
		})
	}
	return common
}

func equal(a, b *pflag.Flag) bool {
	return b != nil && a.Usage == b.Usage && a.DefValue == b.DefValue && a.Shorthand == b.Shorthand
}

func examples(c *cobra.Command) string {
	if c.Example == "" {
		return ""
	}
	lines := &strings.Builder{}
	for line := range strings.Lines(c.Example + "\n") {
		lines.WriteString(strings.TrimPrefix(line, "  "))
	}
	return "\n" + lines.String()
}

// rows writes a table of flags.
func rows(t *testing.T, page *strings.Builder, flags *pflag.FlagSet) {
	t.Helper()
	page.WriteString("| flag | value | default | meaning |\n|---|---|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		value, meaning := pflag.UnquoteUsage(f)
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		initial := f.DefValue
		if initial == "[]" || initial == "false" || initial == "0s" && strings.Contains(meaning, "empty") {
			initial = ""
		}
		if initial != "" {
			initial = "`" + initial + "`"
		}
		if len([]rune(meaning)) > 120 {
			t.Errorf("--%s: want a meaning of at most 120 characters, got %d", f.Name, len([]rune(meaning)))
		}
		fmt.Fprintf(page, "| %s | %s | %s | %s |\n", name, value, initial, strings.ReplaceAll(meaning, "|", `\|`))
	})
}

// aliasRows writes the flags of other programs that run takes.
func aliasRows(t *testing.T, page *strings.Builder, run *cobra.Command) {
	t.Helper()
	for _, program := range []struct {
		spelling     cli.Spelling
		title, about string
	}{
		{cli.AIPerf, "AIPerf", "What differs, and the flags that are refused: [from AIPerf](../how-to/from-aiperf.md)."},
		{cli.VLLM, "vllm bench serve", "What differs, and the flags that it has in common with others: [from vllm bench](../how-to/from-vllm-bench.md)."},
		{cli.TraceReplay, "TraceReplay", "What differs: [from TraceReplay](../how-to/from-tracereplay.md)."},
	} {
		fmt.Fprintf(page, "\n### run: flags of %s\n\n%s With any of them, that program's defaults hold.\n\n", program.title, program.about)
		rows(t, page, cli.Taken(run.Flags(), program.spelling))
	}
	for _, names := range []struct {
		title string
		of    map[string]string
	}{{"second names of AIPerf's flags", cli.SecondNames}, {"names of vllm bench serve", cli.VLLMNames}} {
		fmt.Fprintf(page, "\n### run: %s\n\n| flag | also |\n|---|---|\n", names.title)
		also := map[string][]string{}
		for second, first := range names.of {
			also[first] = append(also[first], "`--"+second+"`")
		}
		for _, first := range slices.Sorted(maps.Keys(also)) {
			fmt.Fprintf(page, "| `--%s` | %s |\n", first, strings.Join(slices.Sorted(slices.Values(also[first])), ", "))
		}
	}
}
