package cli

import (
	_ "embed" // foreign_flags.txt
	"errors"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// foreignFlags has flags of other programs that run does not have: "[PROGRAM]", then a reason with its flags below it.
// Behind "+" the flags are taken, without effect; behind ">" they are keys of the body. "NAME=" has a value, "NAME" none,
// "NAME=a|b" is taken with these values, and "NAME.*" are all flags that begin so.
//
//go:embed foreign_flags.txt
var foreignFlags string

// A foreign is a flag of another program. It consumes its value, so that one line names all faults of a command line.
type foreign struct {
	who, why string
	mark     byte // '+': taken; '>': a key of the body; 0: refused
	values   []string
	flags    *Flags
	key      string
	accepted bool // the value is one of values
}

func (f *foreign) Set(text string) error {
	f.accepted = slices.Contains(f.values, text)
	if f.mark == '>' {
		f.flags.Aliases.extraInputs = append(f.flags.Aliases.extraInputs, f.key+":"+text)
	}
	return nil
}
func (*foreign) String() string { return "" }
func (*foreign) Type() string   { return "value" }

// eachForeign calls add with each flag of the list.
func eachForeign(add func(name string, hasValue bool, f *foreign)) {
	var kind foreign
	for line := range strings.Lines(foreignFlags) {
		text := strings.TrimSpace(line)
		switch {
		case text == "" || text[0] == '#':
		case text[0] == '[':
			kind = foreign{who: strings.Trim(text, "[]")}
		case line[0] != ' ':
			kind.mark, kind.why = 0, text
			if text[0] == '+' || text[0] == '>' {
				kind.mark, kind.why = text[0], strings.TrimSpace(text[1:])
			}
		default:
			for name := range strings.FieldsSeq(text) {
				name, values, hasValue := strings.Cut(name, "=")
				one := kind
				one.values, one.key = strings.Split(values, "|"), strings.ReplaceAll(name, "-", "_")
				add(name, hasValue, &one)
			}
		}
	}
}

func (o *Flags) addForeign(f *pflag.FlagSet) {
	eachForeign(func(name string, hasValue bool, value *foreign) {
		if strings.HasSuffix(name, ".*") {
			return
		}
		value.flags = o
		short := map[string]string{"config": "f", "prompt-batch-size": "b", "config_file": "c"}[name] // theirs
		flag := f.VarPF(value, name, short, value.why)
		flag.Hidden = true
		if !hasValue {
			flag.NoOptDefVal = "true"
		}
	})
}

// wayOf returns what does the same as a flag that begins as those of another program.
func wayOf(name string) (who, why string) {
	eachForeign(func(begin string, _ bool, f *foreign) {
		if group, all := strings.CutSuffix(begin, "*"); all && strings.HasPrefix(name, group) {
			who, why = f.who, f.why
		}
	})
	return who, why
}

// takeForeign reports a fault for each given flag that run does not take, and notes those that have no effect. It says
// whether the line is of a program of which run has no dialect.
func (o *Flags) takeForeign() (others bool) {
	o.given.Visit(func(f *pflag.Flag) {
		switch v, other := f.Value.(*foreign); {
		case !other || v.accepted || v.mark == '>':
		case v.mark == '+':
			o.Notes = append(o.Notes, [2]string{"--" + f.Name, v.why})
		case v.who == "aiperf":
			o.wrong.Add("--"+f.Name, "is not taken: %s", v.why)
		default:
			o.wrong.Add("--"+f.Name, "is a flag of %s: %s", v.who, v.why)
			others = others || v.who != "vllm bench serve"
		}
	})
	return others
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
