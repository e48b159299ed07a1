package daemon

import (
	"log/slog"
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
		func(w *config.Workload) { w.Repeat.Align, w.Repeat.Every, w.Trace.From = "start", 2*time.Minute, time.Second })
	f("first request due 0s after the target has answered, 81.8 % of the loop without rows",
		func(w *config.Workload) { w.Repeat.Mode = "once" })
	f("next request due at 2000-01-02T03:00:00Z, in 26h50m0s, 100.0 % of the loop without rows",
		func(w *config.Workload) { w.Repeat.Mode, w.Repeat.Cron = "cron", "0 3 2 * *" })
	f("first request due 0s after the target has answered, 0.0 % of the loop without rows",
		func(w *config.Workload) { w.Arrival, w.Rate, w.Users, w.Repeat.Align = "users", 1, 2, "start" })
	f("requests are due when others have ended (closed loop)",
		func(w *config.Workload) { w.Arrival, w.Repeat.Mode = "concurrency", "once" })
}
