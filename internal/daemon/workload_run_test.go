package daemon

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"replayd/internal/config"
	"replayd/internal/schedule"
)

// every10 returns a workload whose loops begin at multiples of 10 s.
func every10(path string) config.Workload {
	w := looped("w", "t", path)
	w.Repeat.Every = 10 * time.Second
	return w
}

// If the target lists several models in the middle of a replay, the workload keeps its model.
func TestSeveralModelsLater(t *testing.T) {
	for _, patient := range []bool{true, false} { // serve and run
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, t.TempDir(), "m")
			w.start(conf([]config.Target{target("t", "http://engine")}, every10(w.put(paced(90, 100)))), patient)
			<-time.After(15 * time.Second)
			w.dies(true)
			w.lists("m", "m-lora")
			<-time.After(4 * time.Second)
			w.dies(false)
			<-time.After(2 * time.Second)
			again := time.Now()
			pass(59 * time.Second) // until 80 s
			w.wants("in the end", map[string]float64{"replayd_workload_up": 1, "replayd_target_up": 1})
			for loop, n := range w.loops(again.Add(9 * time.Second)) {
				if n != 90 {
					t.Errorf("loop %d: %d of 90 rows", loop, n)
				}
			}
			page := w.page()
			if expected := page.Sum("replayd_requests_expected_total"); expected != 8*90 {
				t.Errorf("expected %v, want 8 loops of 90 rows: from the second one on to that which is due now", expected)
			}
			if got := w.asked(); !slices.Equal(got, []string{"m"}) {
				t.Errorf("requests named %v, want m alone", got)
			}
			if n := w.logged("lists several models or none"); n != 1 {
				t.Errorf("want the list told once, got %d times", n)
			}
			w.lists("m")
			<-time.After(10 * time.Second)
			if n := w.logged("lists one model again"); n != 1 {
				t.Errorf("want one line that the target lists one model again, got %d times", n)
			}
			w.end()
		})
	}
}

// At the first start there is no earlier model: the workload waits until there is exactly one.
func TestSeveralModelsAtFirst(t *testing.T) {
	for name, c := range map[string]struct {
		down     time.Duration // how long the engine is down at first
		resolved func(w *world, c config.Config)
		connects bool
	}{
		"the list becomes one": {resolved: func(w *world, _ config.Config) { w.lists("b") }},
		"a reload names one": {resolved: func(w *world, c config.Config) {
			named := c
			named.Targets = []config.Target{target("t", "http://engine")}
			named.Targets[0].Model = "b"
			w.reload(named)
		}},
		"the target was down at first": {down: 7 * time.Second, connects: true, resolved: func(w *world, _ config.Config) { w.lists("b") }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, t.TempDir(), "a", "b")
				conf := conf([]config.Target{target("t", "http://engine")}, every10(w.put(paced(90, 100))))
				w.dies(c.down > 0)
				w.start(conf, true)
				<-time.After(c.down)
				w.dies(false)
				<-time.After(20 * time.Second)
				before := w.page().Sum("replayd_requests_expected_total")
				if (before > 0) != c.connects {
					t.Errorf("expected %v before there is a model", before)
				}
				<-time.After(13 * time.Second)
				w.wants("waiting", map[string]float64{
					"replayd_requests_expected_total": before, "replayd_workload_up": 0, "replayd_target_up": 1,
				})
				if n := w.logged("lists several models or none"); n != 1 {
					t.Errorf("want the list told once, got %d times", n)
				}
				if s := w.g.workloads[0].state(time.Now()); s.Phase != "failed" || !strings.Contains(s.Reason, "a, b") {
					t.Errorf("on the live page: %+v", s)
				}
				posted := w.asked()
				c.resolved(w, conf)
				<-time.After(40 * time.Second)
				w.wants("playing", map[string]float64{"replayd_workload_up": 1, "replayd_target_up": 1})
				if n := w.page().Sum("replayd_requests_total", "w", "ok", "b"); n < 250 {
					t.Errorf("%v requests ok of model b within 40 s, want nearly 360", n)
				}
				if got := w.asked(); !c.connects && (len(posted) > 0 || !slices.Equal(got, []string{"b"})) {
					t.Errorf("requests named %v, then %v: want none, then b alone", posted, got)
				}
				w.end()
			})
		})
	}
}

// A trace that is overwritten is used from the next loop on if it is valid. If it is not, the workload waits until it
// is.
func TestTraceChangesInPlace(t *testing.T) {
	const good = 50 // rows of the new trace
	for name, c := range map[string]struct {
		change func(w *world) // at 23 s, in the third loop
		mend   func(w *world) // at 65 s; nil: the change is good already
		every  time.Duration  // 0: 10 s
		align  string         // "": wall_clock
	}{
		"another good one":      {change: func(w *world) { w.put(paced(good, 100)) }},
		"from the start":        {align: "start", change: func(w *world) { w.put(paced(good, 100)) }},
		"bad, then good":        {change: func(w *world) { w.put("oops\n") }, mend: func(w *world) { w.put(paced(good, 100)) }},
		"empty, then good":      {change: func(w *world) { w.put("") }, mend: func(w *world) { w.put(paced(good, 100)) }},
		"too long, then good":   {change: func(w *world) { w.put(paced(500, 100)) }, mend: func(w *world) { w.put(paced(good, 100)) }},
		"cut in the midst":      {change: func(w *world) { w.put(paced(90, 100)[:1234]) }, mend: func(w *world) { w.put(paced(good, 100)) }},
		"longer, then good":     {change: func(w *world) { w.put(paced(90, 100) + "{") }, mend: func(w *world) { w.put(paced(good, 100)) }},
		"cut, and it vanishes":  {change: func(w *world) { w.put(""); w.remove() }, mend: func(w *world) { w.put(paced(good, 100)) }},
		"many rows, then fewer": {change: func(w *world) { w.put(paced(5000, 1)); w.put(paced(good, 100)) }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, dir, "m")
				trace := every10(w.put(paced(90, 100)))
				if c.align != "" {
					trace.Repeat.Align = schedule.Align(c.align)
				}
				w.start(conf([]config.Target{target("t", "http://engine")}, trace), true)
				<-time.After(23 * time.Second)
				old := sha(w)
				c.change(w)
				if c.mend != nil {
					<-time.After(22 * time.Second)
					w.wants("bad", map[string]float64{"replayd_workload_up": 0, "replayd_target_up": 1, "replayd_trace_info": 1})
					before := w.page().Sum("replayd_requests_expected_total")
					<-time.After(20 * time.Second)
					w.wants("still bad", map[string]float64{"replayd_workload_up": 0, "replayd_requests_expected_total": before})
					if n := w.logged("level=ERROR"); n < 1 || n > 3 {
						t.Errorf("want the fault told once, got %d errors:\n%s", n, w.log.String())
					}
					c.mend(w)
				}
				<-time.After(80 * time.Second) // a minute until the next try, then loops
				w.wants("good again", map[string]float64{"replayd_workload_up": 1, "replayd_trace_info": 1})
				since := time.Now()
				<-time.After(65 * time.Second)
				whole := 0
				for loop, n := range w.loops(since) {
					if n > good {
						t.Errorf("loop %d: %d rows, want %d", loop, n, good)
					}
					if n == good {
						whole++
					}
				}
				if whole < 5 {
					t.Errorf("%d whole loops in 65 s: %v", whole, w.loops(since))
				}
				if got := sha(w); got == old {
					t.Error("the page shows the old trace")
				}
				if got := traceRequests(w); got != "50" {
					t.Errorf("trace_info has %s requests, want 50", got)
				}
				if s := w.g.workloads[0].state(since); s.Phase == "failed" {
					t.Errorf("on the live page: %+v", s)
				}
				w.end()
			})
		})
	}
}

func (w *world) remove() {
	if err := os.Remove(filepath.Join(w.dir, "trace.jsonl")); err != nil {
		w.t.Error(err)
	}
}

// label returns the value of a label of a family's only series.
func label(w *world, family, name string) string {
	w.t.Helper()
	series := w.page()[family].GetMetric()
	if len(series) != 1 {
		w.t.Fatalf("%s: want one series, got %v", family, series)
	}
	for _, l := range series[0].GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

func sha(w *world) string           { return label(w, "replayd_trace_info", "sha256") }
func traceRequests(w *world) string { return label(w, "replayd_trace_info", "requests") }
