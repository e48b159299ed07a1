package terminal

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLogHandler(t *testing.T) {
	out := &strings.Builder{}
	at := time.Date(2026, 11, 23, 17, 49, 57, 0, time.Local)
	log := func(level slog.Level, message string, with func(*slog.Logger) *slog.Logger, args ...any) {
		h := with(slog.New(NewLogHandler(out, slog.LevelInfo))).Handler()
		if !h.Enabled(t.Context(), level) {
			return
		}
		r := slog.NewRecord(at, level, message, 0)
		r.Add(args...)
		if err := h.Handle(t.Context(), r); err != nil {
			t.Error(err)
		}
	}
	plain := func(l *slog.Logger) *slog.Logger { return l }
	log(slog.LevelDebug, "not shown", plain)
	log(slog.LevelWarn, "scrape failed", plain, "target", "vllm", "err", errors.New("connection refused"))
	log(slog.LevelInfo, "entered loop", func(l *slog.Logger) *slog.Logger { return l.With("workload", "canary") }, "loop", 3, "period", 1108350*time.Microsecond, "begins", at.UTC().Truncate(24*time.Hour))
	log(slog.LevelError, "two\nlines \x1b[2J", plain, "a", "", "b", "x=\x1b", "target", "a b", "workload", "w")
	log(slog.LevelInfo, "grouped", func(l *slog.Logger) *slog.Logger { return l.WithGroup("g").With("a", 1) }, "b", 2, slog.Group("h", "c", 3))
	const want = `17:49:57 warn  target vllm: scrape failed  err="connection refused"
17:49:57 info  workload canary: entered loop  loop=3  period=1.108s  begins=2026-11-23T00:00:00Z
17:49:57 error target "a b": two\nlines \x1b[2J  a=""  b="x=\x1b"  workload=w
17:49:57 info  grouped  g.a=1  g.b=2  g.h.c=3
`
	if out.String() != want {
		t.Errorf("want\n%sgot\n%s", want, out)
	}
}
