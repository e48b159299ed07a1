package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// commands are all commands, those of cobra left out.
func commands(root *cobra.Command) (all []*cobra.Command) {
	root.InitDefaultHelpFlag()
	root.InitDefaultVersionFlag()
	all = append(all, root)
	for _, c := range root.Commands() {
		if c.Name() != "completion" && c.Name() != "help" {
			all = append(all, commands(c)...)
		}
	}
	return all
}

// A help text fits 80 columns, has two examples at most, and each of them is a command line that can be typed.
func TestHelpFits(t *testing.T) {
	for _, c := range commands(newRoot(&world{})) {
		out := &bytes.Buffer{}
		c.SetOut(out)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 80 {
				t.Errorf("%s: %d columns: %s", c.CommandPath(), n, line)
			}
		}
		examples := strings.Split(c.Example, "\n")
		if len(examples) > 2 {
			t.Errorf("%s: want two examples at most, got %d", c.CommandPath(), len(examples))
		}
		for _, e := range examples {
			if e == "" {
				continue
			}
			_, e, _ = strings.Cut(e, "replayd ")
			e, _, _ = strings.Cut(e, "#")
			e, _, _ = strings.Cut(e, ">")
			about, rest, err := newRoot(&world{}).Find(strings.Fields(e))
			if err == nil {
				err = about.ParseFlags(rest)
			}
			if err != nil || about.Name() == "replayd" {
				t.Errorf("%s: example %q: want a command line that can be read, got %v", c.CommandPath(), e, err)
			}
		}
	}
}

// The shell completes to what the help says of a flag.
func TestCompletedValues(t *testing.T) {
	n := 0
	for _, c := range commands(newRoot(&world{})) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			complete, ok := c.GetFlagCompletionFunc(f.Name)
			if !ok {
				return
			}
			values, _ := complete(c, nil, "")
			for _, v := range values {
				if n++; !strings.Contains(f.Usage, v) {
					t.Errorf("%s --%s: completes to %q, and the help says %q", c.CommandPath(), f.Name, v, f.Usage)
				}
			}
		})
	}
	if n < 40 {
		t.Errorf("want 40 values or more, got %d", n)
	}
}
