package replay

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/schedule"
)

// Activations that fall into a pass of 150 s are left out. One line a pass says how many, and when the next begins.
func TestCronSkips(t *testing.T) {
	for overlap, lines := range map[schedule.Overlap][]string{
		schedule.Skip:  {"activations=2 next=2000-01-01T00:03:00Z", "activations=2 next=2000-01-01T00:06:00Z"},
		schedule.Queue: {"activations=1 next=2000-01-01T00:02:30Z", "activations=2 next=2000-01-01T00:05:00Z", "activations=1 next=2000-01-01T00:07:30Z"},
	} {
		synctest.Test(t, func(t *testing.T) { // its clock starts at midnight, to which both begin a pass
			var log bytes.Buffer
			b := newBench(t, every(16, 10*time.Second), schedule.Options{
				Repeat: schedule.Repeat{Mode: schedule.Cron, Cron: "* * * * *", Overlap: overlap},
			}, &fake{ttft: time.Millisecond}, func(w *Workload) { w.Log = slog.New(slog.NewTextHandler(&log, nil)) })
			want(t, "born", b.counter(t, "replayd_activations_skipped_total", ""), 0.0)
			<-time.After(time.Second) // at midnight the last row of a pass was due, too
			ctx, end := context.WithCancel(t.Context())
			time.AfterFunc(8*time.Minute, end)
			b.run(t, ctx, t.Context())
			want(t, "lines", regexp.MustCompile(`activations=\S+ next=\S+`).FindAllString(log.String(), -1), lines)
			want(t, "skipped", b.counter(t, "replayd_activations_skipped_total", ""), 4.0)
		})
	}
}
