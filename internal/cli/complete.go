package cli

import (
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"replayd/internal/trace"
)

// TraceFiles are the extensions of traces and record files.
var TraceFiles = []string{"jsonl", "json", "csv", "gz", "zst"}

// choices are the values of flags that take one of a few, by the flag's name, or by the command's and the flag's.
var choices = map[string][]string{
	"api": {"chat", "completions"}, "run arrival": {"exact", "spread", "constant", "poisson", "gamma", "concurrency", "sessions"}, "run rate-of": {"requests", "sessions"},
	"format": trace.Readable, "run output": {"exact", "max", "free"}, "synth arrival": {"poisson", "constant"},
	"over-limit": {"filter", "clip", "send"}, "overload": {"wait", "drop"}, "prompt": {"text", "tokens"}, "words": {"main", "all"},
	"salt": {"loop", "session", "none", "fixed:"}, "table": {"replayd", "aiperf", "tracereplay"}, "theme": {"auto", "dark", "light"},
	"convert to": trace.Writable, "output-format": trace.Writable,
	"log.format": {"auto", "logfmt", "json"}, "log.level": {"debug", "info", "warn", "error"},
}

// files are the extensions of the files that flags name, in every command that has the flag.
var files = map[string][]string{
	"config": {"yaml", "yml"}, "http.config.file": {"yaml", "yml"}, "web.config.file": {"yaml", "yml"}, "tokenizer": {"json", "tiktoken"},
	"records": {"jsonl"}, "html": {"html"}, "output-file": {"json"}, "json": {"json"}, "log": {"jsonl"}, "input-file": TraceFiles, "trace-path": TraceFiles,
}

// Complete gives a command and all commands below it the completion of flag values, and of the names of files by extension: by command,
// those of its arguments.
func Complete(root *cobra.Command, arguments map[string][]string) {
	add := func(set *pflag.FlagSet, c *cobra.Command) {
		set.VisitAll(func(f *pflag.Flag) {
			values := choices[c.Name()+" "+f.Name]
			if values == nil {
				values = choices[f.Name]
			}
			if values != nil {
				_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // the flag is c's
			} else if ends := files[f.Name]; ends != nil {
				_ = c.MarkFlagFilename(f.Name, ends...)
			}
		})
	}
	add(root.PersistentFlags(), root)
	add(root.Flags(), root)
	if ends := arguments[root.Name()]; ends != nil {
		root.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return ends, cobra.ShellCompDirectiveFilterFileExt
		}
	}
	for _, sub := range root.Commands() {
		Complete(sub, arguments)
	}
}
