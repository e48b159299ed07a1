package terminal

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A LogHandler writes log lines for a person: the time of day, the level, the target or the workload that the line is about, the message
// and the attributes.
//
//	17:49:57 warn  target vllm: scrape failed  err="connection refused"
type LogHandler struct {
	out   io.Writer
	level slog.Leveler
	lock  *sync.Mutex // of out
	group string      // prefix of the keys, with its dot
	attrs []slog.Attr
}

// NewLogHandler writes the lines of a level and above to out, each with one Write.
func NewLogHandler(out io.Writer, level slog.Leveler) *LogHandler {
	return &LogHandler{out: out, level: level, lock: &sync.Mutex{}}
}

// Enabled implements slog.Handler.
func (h *LogHandler) Enabled(_ context.Context, level slog.Level) bool {
	return level >= h.level.Level()
}

// WithGroup implements slog.Handler.
func (h *LogHandler) WithGroup(name string) slog.Handler {
	c := *h
	c.group += name + "."
	return &c
}

// WithAttrs implements slog.Handler.
func (h *LogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := *h
	c.attrs = slices.Clip(c.attrs)
	for _, a := range attrs {
		a.Key = h.group + a.Key
		c.attrs = append(c.attrs, a)
	}
	return &c
}

// Handle implements slog.Handler.
func (h *LogHandler) Handle(_ context.Context, r slog.Record) error {
	attrs := slices.Clone(h.attrs)
	r.Attrs(func(a slog.Attr) bool {
		a.Key = h.group + a.Key
		attrs = append(attrs, a)
		return true
	})
	subject, rest := "", &strings.Builder{}
	var write func(attrs []slog.Attr, prefix string)
	write = func(attrs []slog.Attr, prefix string) {
		for _, a := range attrs {
			v := a.Value.Resolve()
			switch {
			case v.Kind() == slog.KindGroup:
				write(v.Group(), prefix+a.Key+".")
			case subject == "" && (a.Key == "target" || a.Key == "workload"):
				subject = a.Key + " " + quoted(v) + ": "
			default:
				fmt.Fprintf(rest, "  %s=%s", prefix+a.Key, quoted(v))
			}
		}
	}
	write(attrs, "")
	line := fmt.Sprintf("%s %-5s %s%s%s\n", r.Time.Format(time.TimeOnly), strings.ToLower(r.Level.String()), subject, unquoted(r.Message), rest)
	h.lock.Lock()
	defer h.lock.Unlock()
	_, err := io.WriteString(h.out, line)
	return err
}

// quoted is a value as one word of printable characters.
func quoted(v slog.Value) string {
	text := v.String()
	switch v.Kind() {
	case slog.KindTime:
		text = v.Time().Format(time.RFC3339)
	case slog.KindDuration: // three or four digits
		unit := time.Duration(1)
		for v.Duration().Abs() >= 1e4*unit {
			unit *= 10
		}
		text = v.Duration().Round(unit).String()
	}
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || r == '"' || r == '=' || !strconv.IsPrint(r) }) {
		return strconv.Quote(text)
	}
	return text
}

// unquoted is a text with its control characters escaped: a message may hold what a server sent.
func unquoted(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return text
	}
	return strings.Trim(strconv.Quote(text), `"`)
}
