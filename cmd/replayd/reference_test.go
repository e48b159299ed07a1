package main

import (
	"fmt"
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
| 130, 143 | ended by SIGINT or SIGTERM; ` + "`run`" + ` has written its report and files, but for what is stuck |
| 141 | the reader of stdout went away; ` + "`run`" + ` ends with its own code |
`

// The page has every command, and each flag of a command once. Flags of AIPerf that are refused are in
// docs/how-to/from-aiperf.md.
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
		titles, flags := cli.Groups(c)
		titles = slices.DeleteFunc(titles, func(title string) bool { return title == cli.General })
		for _, title := range titles {
			if len(titles) > 1 {
				fmt.Fprintf(page, "\n### %s\n", c.Name()+": "+strings.ToLower(title[:1])+title[1:])
			}
			page.WriteString("\n")
			rows(t, page, flags[title])
		}
		if notes != "" {
			fmt.Fprintf(page, "\n```\n%s\n```\n", notes)
		}
		if c.Name() == "run" {
			aliasRows(t, page, c)
		}
	}
	return page.String()
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
		{cli.AIPerf, "AIPerf", "How each maps onto replayd's own, and the flags that are refused: [from AIPerf](../how-to/from-aiperf.md)."},
		{cli.TraceReplay, "TraceReplay", "How each maps onto replayd's own: [from TraceReplay](../how-to/from-tracereplay.md)."},
	} {
		fmt.Fprintf(page, "\n### run: flags of %s\n\n%s With any of them, that program's defaults hold.\n\n", program.title, program.about)
		rows(t, page, cli.Taken(run.Flags(), program.spelling))
	}
}
