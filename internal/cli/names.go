package cli

import (
	"errors"
	"fmt"
	"regexp"
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
	"seq-dist":               "sequence-distribution", // --num-prompts: firstName
	"conversation-turn-mean": "session-turns-mean", "conversation-turn-stddev": "session-turns-stddev",
	"conversation-turn-delay-mean": "session-turn-delay-mean", "conversation-turn-delay-stddev": "session-turn-delay-stddev",
	"request-rate-mode": "arrival-pattern", "vllm-burstiness": "arrival-smoothness",
	"prompt-input-tokens-block-size": "block-tokens", "synthetic-input-tokens-block-size": "block-tokens", "isl-block-size": "block-tokens",
	"replay-speedup": "synthesis-speedup-ratio", "conversation-num": "num-sessions", "num-conversations": "num-sessions", "output-dir": "artifact-dir", "session-delay-ratio": "conversation-turn-delay-ratio",
	"num-requests": "request-count", "num-warmup-requests": "warmup-request-count",
}

// VLLMNames maps flags of vllm bench serve (vllm/benchmarks/serve.py and datasets, 2026) to run's flags of the same meaning.
var VLLMNames = map[string]string{
	"base-url": "url", "max-concurrency": "concurrency", "num-prompts": "requests", "metric-percentiles": "percentiles",
	"random-input-len": "isl", "input-len": "isl", "random-output-len": "osl", "output-len": "osl",
	"sharegpt-output-len": "osl", "custom-output-len": "osl", "random-prefix-len": "shared-system-prompt-length",
	"num-warmups": "warmup-request-count", "ready-check-timeout-sec": "wait-for-model-timeout", "extra-body": "extra-inputs",
}

// firstName returns the name under which a flag is stored, and remembers the name that was typed. AIPerf's --num-prompts
// counts different prompts, vLLM's the requests.
func (o *Flags) firstName(c *cobra.Command, name string) pflag.NormalizedName {
	o.Profile = o.Profile || c.CalledAs() == "profile"
	first := SecondNames[name]
	switch {
	case first != "":
	case o.Profile && name == "num-prompts":
		first = "num-dataset-entries"
	case !o.Profile:
		first = VLLMNames[name]
	}
	if first == "" {
		return pflag.NormalizedName(name)
	}
	o.typed[first] = name
	return pflag.NormalizedName(first)
}

// asTyped gives flags in faults the names that were typed.
func (o *Flags) asTyped(text string) string {
	for first, typed := range o.typed {
		if o.given.Changed(first) {
			text = regexp.MustCompile(`--`+first+`($|[^\w-])`).ReplaceAllString(text, "--"+typed+"$1")
		}
	}
	return text
}

// A single is a flag of one value. A second value is refused: one of them would be lost.
type single struct {
	pflag.Value
	text  string
	given bool
}

func (s *single) Set(text string) error {
	if s.given && text != s.text {
		return errors.New("want one value, got two by giving it twice")
	}
	s.text, s.given = text, true
	return s.Value.Set(text)
}

// refuseSecond makes each flag of one value refuse a second one.
func refuseSecond(f *pflag.FlagSet) {
	f.VisitAll(func(f *pflag.Flag) {
		switch f.Value.(type) {
		case pflag.SliceValue, *foreign, logLevel, *joined:
		default:
			f.Value = &single{Value: f.Value}
		}
	})
}

// A joined is a text that may be given in several words.
type joined string

func (j *joined) Set(text string) error {
	*j = joined(strings.TrimSpace(string(*j) + " " + text))
	return nil
}

func (j *joined) String() string { return string(*j) }
func (j *joined) Type() string   { return "string" }

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
	if c.Name() == "run" {
		if who, way := wayOf(name); way != "" {
			return fmt.Errorf("--%s: is a flag of %s: %s", name, who, way)
		}
		if VLLMNames[name] != "" { // called as profile
			return fmt.Errorf("--%s is a flag of vllm bench serve: replayd run takes its command lines", name)
		}
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if _, other := f.Value.(*foreign); !other {
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
	"--goodput":        isPair,
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
			switch bare := i+1 == len(args) || strings.HasPrefix(args[i+1], "-"); {
			case wordLists[arg] == nil:
			case !bare:
				out, list = append(out, args[i+1]), arg
				i++
			case arg == "--gpu-telemetry": // AIPerf's switch of a display
				out[len(out)-1] += "=dashboard"
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

// isPair reports whether a word is NAME:VALUE, NAME=VALUE or a JSON object, and not the path of a trace.
func isPair(word string) bool { return strings.IndexAny(word, ":=") > 0 }
