package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// typed parses a command line as run does. The level is that of --log.level.
func typed(line string) (o *Flags, c *cobra.Command, level *string, err error) {
	o, c = NewFlags(), &cobra.Command{Use: "run"}
	level = c.Flags().String("log.level", "info", "")
	o.Add(c)
	return o, c, level, c.ParseFlags(InWords(words(line)))
}

// ordered evaluates a command line as run does.
func ordered(t *testing.T, line string) (Order, error) {
	t.Helper()
	o, c, _, err := typed(line)
	if err != nil {
		return Order{}, err
	}
	return o.Order(c.Flags().Args())
}

// words splits a line at blanks outside double quotes.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

// Every flag of AIPerf 0.13 is taken or refused with a reason, and consumes a value exactly if it does so there.
func TestFlagsOfAIPerf(t *testing.T) {
	text, err := os.ReadFile("testdata/aiperf_0.13_flags.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := &cobra.Command{Use: "run"}
	c.Flags().String("log.level", "info", "")
	NewFlags().Add(c)
	all, refusals := map[string]bool{}, 0
	for line := range strings.Lines(string(text)) {
		name, kind, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok || name == "#" {
			continue
		}
		all[name] = true
		f := c.Flags().Lookup(name)
		if f == nil {
			t.Errorf("--%s is neither taken nor refused", name)
			continue
		}
		if v, other := f.Value.(*foreign); other && v.mark == 0 {
			refusals++
		}
		if isSwitch := f.NoOptDefVal != ""; isSwitch != (kind == "switch") && name != "stream" { // run's own flag, a switch
			t.Errorf("--%s: AIPerf has a %s, run does not", name, kind)
		}
	}
	if len(all) != 314 {
		t.Errorf("want 314 flags, got %d", len(all))
	}
	taken := len(all) - refusals
	for file, want := range map[string]string{
		"../../docs/how-to/from-aiperf.md": fmt.Sprintf("Of the %d long flags of AIPerf 0.13.0, %d are taken and %d are [refused", len(all), taken, refusals),
		"../../README.md":                  fmt.Sprintf("it takes %d of AIPerf's %d flags", taken, len(all)),
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s: want %q", file, want)
		}
	}
}

// One line of wrong flags is answered with all of its faults.
func TestRefusedFlags(t *testing.T) {
	o, c, level, err := typed("--url u --plot-required --image-batch-size=2 --num-profile-runs=2 --speed 0 --verbose --isl 100")
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.Order(c.Flags().Args())
	for _, want := range []string{
		"--plot-required: is not taken: replayd report makes a page", "--image-batch-size: is not taken: text only", "--num-profile-runs: is not taken: a command is one run",
		"--speed: want 0.001 to 1000, got 0",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	if n := strings.Count(err.Error(), "\n"); n != 3 {
		t.Errorf("want 4 faults, got %v", err)
	}
	if *level != "debug" {
		t.Errorf("want --verbose to set the level debug, got %s", *level)
	}
}

// AIPerf's names of levels set --log.level, and leave replayd's own defaults.
func TestLogLevel(t *testing.T) {
	for text, want := range map[string]string{"TRACE": "debug", "warning": "warn", "success": "info", "critical": "error"} {
		o, c, level, err := typed("trace.jsonl --url http://u --log-level " + text)
		if err != nil {
			t.Fatal(err)
		}
		r, err := o.Order(c.Flags().Args())
		if err != nil || *level != want || r.Who != Own {
			t.Errorf("%s: level %s and spelling %s, %v; want %s and %s", text, *level, r.Who, err, want, Own)
		}
	}
	f := pflag.NewFlagSet("f", pflag.ContinueOnError)
	if err := (logLevel{f, ""}).Set("loud"); err == nil || !strings.Contains(err.Error(), `got "loud"`) {
		t.Errorf("want the levels, got %v", err)
	}
}

// Command lines of the help and the tutorials of AIPerf 0.13.0 (docs/tutorials of ai-dynamo/aiperf) are read, or refused
// for the flags behind them.
func TestLinesOfAIPerf(t *testing.T) {
	text, err := os.ReadFile("testdata/aiperf_0.13_lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("trace.jsonl", []byte(`{"timestamp":0,"input_length":5,"output_length":2}`), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := 0
	for line := range strings.Lines(string(text)) {
		line, ok := strings.CutPrefix(strings.TrimSpace(line), "replayd profile ")
		if !ok {
			continue
		}
		lines++
		line, refusals, _ := strings.Cut(line, "  # ")
		c := &cobra.Command{Use: "run"}
		c.Flags().String("log.level", "info", "")
		o := NewFlags()
		o.Profile = true
		o.Add(c)
		if err := c.ParseFlags(InWords(words(line))); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		_, err := o.Order(c.Flags().Args())
		var got []string
		if err != nil {
			for fault := range strings.Lines(err.Error()) {
				flag, _, _ := strings.Cut(fault, ": ")
				got = append(got, flag)
			}
		}
		var want []string
		if refusals != "" {
			want = strings.Split(refusals, ", ")
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s:\nwant faults of %v, got %v", line, want, err)
		}
	}
	if lines != 20 {
		t.Errorf("want 20 lines, got %d", lines)
	}
}
