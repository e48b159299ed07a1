package cli

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"replayd/internal/spelling"
)

// SecondNames maps the alternative flag names of AIPerf 0.5 and 0.13 to the names that run has.
var SecondNames = map[string]string{
	"model-names": "model", "output-artifact-dir": "artifact-dir", "custom-endpoint": "endpoint",
	"synthetic-input-tokens-mean": "isl", "synthetic-input-tokens-stddev": "isl-stddev",
	"prompt-input-tokens-mean": "isl", "prompt-input-tokens-stddev": "isl-stddev",
	"output-tokens-mean": "osl", "output-tokens-stddev": "osl-stddev",
	"prompt-output-tokens-mean": "osl", "prompt-output-tokens-stddev": "osl-stddev",
	"seq-dist": "sequence-distribution", "num-prompts": "num-dataset-entries",
	"conversation-turn-mean": "session-turns-mean", "conversation-turn-stddev": "session-turns-stddev",
	"conversation-turn-delay-mean": "session-turn-delay-mean", "conversation-turn-delay-stddev": "session-turn-delay-stddev",
	"request-rate-mode": "arrival-pattern", "vllm-burstiness": "arrival-smoothness",
	"prompt-input-tokens-block-size": "block-tokens", "synthetic-input-tokens-block-size": "block-tokens", "isl-block-size": "block-tokens",
	"replay-speedup": "synthesis-speedup-ratio", "conversation-num": "num-sessions", "num-conversations": "num-sessions", "output-dir": "artifact-dir", "session-delay-ratio": "conversation-turn-delay-ratio",
	"num-requests": "request-count", "num-warmup-requests": "warmup-request-count",
}

// firstName returns the name under which a flag is stored.
func firstName(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if first := SecondNames[name]; first != "" {
		name = first
	}
	return pflag.NormalizedName(name)
}

// wrongValue names the flag of a wrong value and what it wants.
func wrongValue(err error, list string) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return fmt.Errorf("%w (%s)", err, list)
	}
	f, cause := bad.GetFlag(), errors.Unwrap(bad)
	if !errors.As(cause, new(*strconv.NumError)) {
		return fmt.Errorf("--%s: %w", f.Name, cause)
	}
	want := "a number"
	switch kind := f.Value.Type(); {
	case strings.HasPrefix(kind, "uint"):
		want = "an integer ≥ 0"
	case strings.HasPrefix(kind, "int"):
		want = "an integer"
	case kind == "bool":
		want = "true or false"
	}
	return fmt.Errorf("--%s: want %s, got %q", f.Name, want, bad.GetValue())
}

// FlagError explains an error of reading flags: it names the nearest flag of one that the command does not have, and what a value wants.
func FlagError(c *cobra.Command, err error) error {
	list := c.CommandPath() + " --help lists the flags"
	wants := list
	if c.Name() == "run" {
		list = "replayd run --help and --help-aliases list the flags"
		wants = "replayd run --help and --help-aliases say what each flag wants"
	}
	if unknown := new(pflag.NotExistError); errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		return unknownFlag(c, unknown.GetSpecifiedName(), list)
	}
	return wrongValue(err, wants)
}

func unknownFlag(c *cobra.Command, name, list string) error {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, no := f.Value.(refused); !no {
			names = append(names, f.Name)
		}
	})
	meant := spelling.DidYouMean(name, "--", names)
	if meant == "" {
		meant = " (" + list + ")"
	}
	return fmt.Errorf("unknown flag: --%s%s", name, meant)
}

// wordLists are the flags that take several words, and what a further word looks like.
var wordLists = map[string]func(word string) bool{
	"--server-metrics": isAddress,
	"--gpu-telemetry":  isAddress,
	"--extra-inputs":   isPair,
	"--header":         isPair,
	"-H":               isPair,
	"--paths":          func(string) bool { return true },
}

// InWords repeats a flag that takes several words before each further word, because pflag takes one word per flag.
func InWords(args []string) []string {
	var out []string
	list := "" // flag to which further words belong
	for i := 0; i < len(args); i++ {
		arg := args[i]
		more := wordLists[list]
		switch {
		case arg == "--":
			return append(out, args[i:]...)
		case strings.HasPrefix(arg, "-"):
			out, list = append(out, arg), ""
			if wordLists[arg] != nil && i+1 < len(args) {
				out, list = append(out, args[i+1]), arg
				i++
			}
		case list != "" && more(arg):
			out = append(out, list, arg)
		default:
			out, list = append(out, arg), ""
		}
	}
	return out
}

// isAddress reports whether a word is an address, with or without a scheme, and not the path of a trace.
func isAddress(word string) bool {
	host, port, ok := strings.Cut(word, ":")
	return ok && host != "" && (strings.HasPrefix(port, "//") || port != "" && port[0] >= '0' && port[0] <= '9')
}

// isPair reports whether a word is NAME:VALUE or a JSON object, and not the path of a trace.
func isPair(word string) bool {
	name, _, ok := strings.Cut(word, ":")
	return ok && name != ""
}
