package daemon

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/config"
)

// The words for each kind of plan, ten minutes after midnight UTC.
func TestOutlook(t *testing.T) {
	trace := write(t, "trace.jsonl", `{"timestamp": 0, "input_length": 20, "output_length": 4}
{"timestamp": 20000, "input_length": 20, "output_length": 4}
{"timestamp": 110000, "input_length": 20, "output_length": 4}`)
	f := func(want string, change func(*config.Workload)) {
		t.Helper()
		w := config.DefaultWorkload()
		w.Name, w.Target, w.Trace.Path = "w", "t", trace
		change(&w)
		c := conf([]config.Target{target("t", "http://127.0.0.1:1")}, w)
		if faults := append(c.Resolve(), c.Check()...); len(faults) > 0 {
			t.Fatal(faults)
		}
		synctest.Test(t, func(t *testing.T) {
			<-time.After(10 * time.Minute)
			got, err := Outlook(t.Context(), c, slog.New(slog.DiscardHandler), nil)
			if err != nil || len(got) != 1 || got[0] != "w: "+want {
				t.Errorf("got  %q, %v\nwant %q", got, err, "w: "+want)
			}
		})
	}
	// a gap of 90 s in the loop, and the time from 110 s to its end if that is more than a minute
	f("next request due at 2000-01-01T01:00:00Z, in 50m0s, 99.4 % of the loop without rows",
		func(w *config.Workload) { w.Repeat.Every = time.Hour })
	f("next request due at 2000-01-01T00:10:19Z, in 19s, 75.0 % of the loop without rows",
		func(w *config.Workload) { w.Repeat.Every, w.Trace.From = 2*time.Minute, time.Second })
	f("first request due 19s after the target has answered, 75.0 % of the loop without rows",
		func(w *config.Workload) {
			w.Repeat.Align, w.Repeat.Every, w.Trace.From = "start", 2*time.Minute, time.Second
		})
	f("first request due 0s after the target has answered, 81.8 % of the loop without rows",
		func(w *config.Workload) { w.Repeat.Mode = "once" })
	f("next request due at 2000-01-02T03:00:00Z, in 26h50m0s, 100.0 % of the loop without rows",
		func(w *config.Workload) { w.Repeat.Mode, w.Repeat.Cron = "cron", "0 3 2 * *" })
	f("first request due 0s after the target has answered, 0.0 % of the loop without rows",
		func(w *config.Workload) { w.Arrival, w.Rate, w.Users, w.Repeat.Align = "users", 1, 2, "start" })
	f("requests are due when others have ended (closed loop)",
		func(w *config.Workload) { w.Arrival, w.Repeat.Mode = "concurrency", "once" })
}

// A workload in a gap says when its next request is due: on the page, in the log and as a series, after a start, after the
// last row and after a reload.
func TestGapIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, t.TempDir(), "m")
		c := conf([]config.Target{target("t", "http://sim:1")}, looped("w", "t", w.put(paced(10, 100))))
		c.Workloads[0].Repeat.Every = time.Hour
		midnight := time.Now()
		says := func(hour int, phase string) {
			t.Helper()
			s := w.g.named["w"].state(midnight)
			due := midnight.Add(time.Duration(hour) * time.Hour).UTC()
			want := "next request due at " + due.Format(time.RFC3339)
			if string(s.Phase) != phase || s.Reason != want {
				t.Errorf("got %s: %q, want %s: %q", s.Phase, s.Reason, phase, want)
			}
			if n := w.logged(want); n != 1 {
				t.Errorf("%q is %d times in the log, want it once", want, n)
			}
			w.wants(want, map[string]float64{"replayd_next_due_timestamp_seconds": float64(due.Unix())})
		}
		<-time.After(10 * time.Minute)
		w.start(c, true)
		<-time.After(10 * time.Second)
		says(1, "waiting")
		if text := w.g.workloads[0].idleInWords(midnight); !strings.HasSuffix(text, " 100.0 % of the loop without rows") {
			t.Errorf("got %q", text)
		}
		<-time.After(time.Hour)
		says(2, "waiting")
		c.Workloads[0].Repeat.Every = 3 * time.Hour
		w.reload(c)
		<-time.After(10 * time.Second)
		says(3, "waiting")
		w.end()
	})
}
