package cli

import (
	_ "embed" // not_taken.txt
	"errors"
	"strings"

	"github.com/spf13/pflag"
)

// notTaken has the flags of AIPerf that run does not take, under the reason for each: "name=" has a value, "name" none.
//
//go:embed not_taken.txt
var notTaken string

// refused is the value of a flag that run does not take: its reason. The flag consumes its value, so that one line
// names all faults of a command line.
type refused string

func (refused) Set(string) error { return nil }
func (refused) String() string   { return "" }
func (refused) Type() string     { return "value" }

func addNotTaken(f *pflag.FlagSet) {
	var why string
	for line := range strings.Lines(notTaken) {
		if line[0] != ' ' {
			why = strings.TrimSpace(line)
			continue
		}
		for name := range strings.FieldsSeq(line) {
			name, hasValue := strings.CutSuffix(name, "=")
			short := map[string]string{"config": "f", "prompt-batch-size": "b"}[name] // AIPerf's
			flag := f.VarPF(refused(why), name, short, why)
			flag.Hidden = true
			if !hasValue {
				flag.NoOptDefVal = "true"
			}
		}
	}
}

// refuse reports a fault for each given flag that run does not take.
func (o *Flags) refuse() {
	o.given.Visit(func(f *pflag.Flag) {
		if why, no := f.Value.(refused); no {
			o.wrong.Add("--"+f.Name, "is not taken: %s", string(why))
		}
	})
}

// aiperfLevels maps AIPerf's levels of the log to replayd's.
var aiperfLevels = map[string]string{
	"trace": "debug", "debug": "debug", "info": "info", "notice": "info", "success": "info", "warning": "warn", "error": "error", "critical": "error",
}

// A logLevel sets --log.level by AIPerf's name of a level. A switch has a level of its own.
type logLevel struct {
	flags  *pflag.FlagSet
	always string
}

// addLogLevels adds AIPerf's flags of the log. They are not aliases: replayd's own defaults hold with them.
func addLogLevels(f *pflag.FlagSet) {
	for _, l := range []struct{ name, short, always string }{
		{"log-level", "", ""}, {"verbose", "v", "debug"}, {"extra-verbose", "", "trace"}, // -vv is -v twice, with the same effect
	} {
		flag := f.VarPF(logLevel{f, l.always}, l.name, l.short, "as --log.level")
		flag.Hidden, flag.Annotations = true, map[string][]string{group: {string(AIPerf)}}
		if l.always != "" {
			flag.NoOptDefVal = "true"
		}
	}
}

func (l logLevel) Set(text string) error {
	if l.always != "" {
		text = l.always
	}
	level := aiperfLevels[strings.ToLower(text)]
	if level == "" {
		return errors.New(`want trace, debug, info, notice, success, warning, error or critical, got "` + text + `"`)
	}
	return l.flags.Set("log.level", level)
}

func (logLevel) String() string { return "" }
func (logLevel) Type() string   { return "level" }
