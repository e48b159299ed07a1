package replay

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/schedule"
	"replayd/internal/trace"
)

// offsets is a source with a row at each offset.
func offsets(at ...time.Duration) schedule.Source {
	rows := make([]trace.Record, len(at))
	for i := range rows {
		rows[i] = trace.Record{Number: i, Offset: at[i], InputTokens: 4, OutputTokens: 3}
	}
	return schedule.FromRecords(rows, true)
}

// A runner knows at each instant when its next row is due, and logs it where nothing is due for long.
func TestNextDue(t *testing.T) {
	hourly := schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Loops, Align: schedule.WallClock, Every: time.Hour}}
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		src := offsets(0, 10*time.Second, 20*time.Minute, 20*time.Minute+3*time.Second, 25*time.Minute)
		b := newBench(t, src, hourly, &fake{}, func(w *Workload) { w.Log = slog.New(slog.NewTextHandler(&log, nil)) })
		midnight := time.Now()
		want(t, "before the begin", b.due(), time.Time{})
		ctx, stop := context.WithCancel(t.Context())
		for at, next := range map[time.Duration]time.Duration{
			6 * time.Minute:                          20 * time.Minute,
			20*time.Minute + 1:                       20*time.Minute + 3*time.Second,
			21 * time.Minute:                         25 * time.Minute,
			25*time.Minute - 2*time.Second:           25 * time.Minute, // the next row is awaited already
			30 * time.Minute:                         time.Hour,
			time.Hour + 5*time.Second:                time.Hour + 10*time.Second,
			time.Hour + 10*time.Minute:               time.Hour + 20*time.Minute,
			time.Hour + 20*time.Minute + time.Second: time.Hour + 20*time.Minute + 3*time.Second,
		} {
			time.AfterFunc(at, func() {
				due := midnight.Add(next)
				want(t, "due", b.State().Due.UTC(), due.UTC().Round(0))
				want(t, "series", b.counter(t, "replayd_next_due_timestamp_seconds", ""), float64(due.Unix()))
				want(t, "idle", b.counter(t, "replayd_loop_idle_ratio", ""), (60*time.Minute - 13*time.Second).Hours())
			})
		}
		time.AfterFunc(time.Hour+24*time.Minute, stop)
		pass(5 * time.Minute)
		b.run(t, ctx, t.Context())
		want(t, "after the stop", b.due(), time.Time{})
		want(t, "series after the stop", b.counter(t, "replayd_next_due_timestamp_seconds", ""), 0.0)
		var lines []string
		want(t, "loops in the log", strings.Count(log.String(), "period=1h0m0s idle_ratio=0.996\n"), 2)
		line := regexp.MustCompile(`next request due at (\S+)Z" workload=w in=(\S+)`)
		for _, l := range line.FindAllStringSubmatch(log.String(), -1) {
			lines = append(lines, l[1]+" in "+l[2])
		}
		want(t, "log", lines, []string{
			"2000-01-01T00:20:00 in 15m0s", "2000-01-01T01:00:00 in 35m5s", "2000-01-01T01:20:00 in 19m55s",
		})
	})
}

// More rows than are read ahead follow a gap: none of them is behind the next due instant. The gap is logged once, though the
// feed waits for the loop and then for its first row.
func TestNextDueOfManyRows(t *testing.T) {
	hourly := schedule.Options{Repeat: schedule.Repeat{Mode: schedule.Loops, Align: schedule.WallClock, Every: time.Hour}}
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var at []time.Duration
		for i := range 3000 {
			at = append(at, 15*time.Minute+time.Duration(i)*time.Millisecond)
		}
		b := newBench(t, offsets(at...), hourly, &fake{forgets: true}, func(w *Workload) {
			w.Log = slog.New(slog.NewTextHandler(&log, nil))
		})
		begin := time.Now().Add(75 * time.Minute)
		time.AfterFunc(time.Until(begin)+1500*time.Millisecond+time.Microsecond, func() {
			want(t, "due", b.due(), begin.Add(1501*time.Millisecond).UTC().Round(0))
		})
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Until(begin)+3*time.Second, stop)
		b.run(t, ctx, t.Context())
		want(t, "log", strings.Count(log.String(), "next request due at 2000-01-01T01:15:00Z"), 1)
	})
}

// A plan that is over, and a closed loop, have no next row.
func TestNoNextDue(t *testing.T) {
	closed := once
	closed.Arrival = schedule.Concurrency
	for name, o := range map[string]schedule.Options{"once": once, "closed": closed} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newBench(t, offsets(0, 3*time.Minute), o, &fake{ttft: 10 * time.Second}, func(w *Workload) { w.Lanes = 1 })
				begun := time.Now().Add(lead)
				for at, next := range map[time.Duration]time.Time{
					2 * time.Minute: begun.Add(3 * time.Minute), 3*time.Minute + 5*time.Second: {},
				} {
					time.AfterFunc(lead+at, func() {
						if o.Closed() {
							next = time.Time{}
						}
						want(t, "due", b.due().UTC(), next.UTC().Round(0))
					})
				}
				b.run(t, t.Context(), t.Context())
			})
		})
	}
}
