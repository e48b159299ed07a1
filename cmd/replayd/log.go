package main

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/prometheus/common/promslog"

	"replayd/internal/terminal"
)

// A logFormat is the value of --log.format: auto, logfmt or json.
type logFormat string

func (f *logFormat) String() string { return string(*f) }

func (f *logFormat) Type() string { return "format" }

func (f *logFormat) Set(s string) error {
	switch s {
	case "auto", "logfmt", "json":
		*f = logFormat(s)
		return nil
	}
	return fmt.Errorf("want auto, logfmt or json, got %q", s)
}

// A logLevel is the value of --log.level.
type logLevel struct{ *promslog.Level }

func (logLevel) Type() string { return "level" }

// newLogger writes to stderr: for a person on a terminal, as logfmt or JSON elsewhere.
func (w *world) newLogger(level *promslog.Level) *slog.Logger {
	if s, ok := w.err.(*terminal.Screen); ok && s.Terminal() && w.format == "auto" {
		return slog.New(terminal.NewLogHandler(w.err, level))
	}
	format := promslog.NewFormat()
	if w.format == "json" {
		_ = format.Set("json") // it knows this one
	}
	return promslog.New(&promslog.Config{Level: level, Format: format, Writer: w.err})
}

// printError prints an error. Each of its lines begins with the program's name, or is a log line where the log is JSON.
func printError(w *world, err error) {
	text := err.Error()
	if w.format == "json" {
		log := w.newLogger(promslog.NewLevel()) // the error may be one of the flags
		for line := range strings.Lines(text) {
			log.Error(strings.TrimSuffix(line, "\n"))
		}
		return
	}
	fmt.Fprintln(w.err, "replayd: "+strings.ReplaceAll(text, "\n", "\nreplayd: "))
}
