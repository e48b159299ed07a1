package daemon

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/replay"
	"replayd/internal/schedule"
	"replayd/internal/sim"

	"replayd/test/outside"
)

// kinds returns a configuration with workloads of every kind.
func kinds(t *testing.T, url string) config.Config {
	t.Helper()
	whole := target("whole", url)
	whole.Stream, whole.Tokenizer = false, "../token/testdata/byte_level.json"
	prompts := write(t, "prompts.jsonl", `{"text": "one two three"}`+"\n"+`{"text": "four five six"}`+"\n")
	made := config.Synthetic{InputTokens: 40, OutputTokens: 4, Requests: 600}
	var all []config.Workload
	add := func(name string, arrival schedule.Arrival, change func(w *config.Workload)) {
		w := config.DefaultWorkload()
		w.Name, w.Target, w.Arrival, w.Synthetic, w.Lanes = name, "sim", arrival, made, 4
		if w.ByRate() {
			w.Rate, w.Repeat.Align = 20, "start"
		}
		change(&w)
		all = append(all, w)
	}
	add("closed", "concurrency", func(w *config.Workload) { w.Synthetic.Requests = 0 })
	add("thrice", "concurrency", func(w *config.Workload) { w.Synthetic.Requests, w.Repeat.Mode = 3, "once" })
	add("talk", "concurrency", func(w *config.Workload) {
		w.Synthetic.Turns, w.Synthetic.SystemTokens, w.Synthetic.Requests, w.Prompt.History = 3, 20, 0, true
	})
	add("texts", "concurrency", func(w *config.Workload) {
		w.Target, w.Synthetic, w.Dataset = "whole", config.Synthetic{}, config.Dataset{Path: prompts, Format: "single_turn"}
	})
	add("constant", "constant", func(*config.Workload) {})
	add("poisson", "poisson", func(w *config.Workload) { w.Cancel = replay.Cancel{Ratio: 0.5} })
	add("gamma", "gamma", func(w *config.Workload) {
		w.Rate, w.Burstiness, w.Stages = 5, 0.5, []schedule.Stage{{Rate: 40, Over: 2 * time.Second}}
	})
	add("users", "users", func(w *config.Workload) { w.Users, w.Synthetic.Turns = 3, 3 })
	add("nightly", "poisson", func(w *config.Workload) { w.Repeat = schedule.Repeat{Mode: "cron", Cron: "0 3 29 2 *"} })
	add("warmed", "concurrency", func(w *config.Workload) { w.Warmup.Requests, w.Synthetic.Requests, w.Repeat.Mode = 4, 5, "once" })
	add("trace", "constant", func(w *config.Workload) {
		w.Synthetic, w.Trace.Path = config.Synthetic{}, write(t, "trace.jsonl", rows(90))
	})
	c := conf([]config.Target{target("sim", url), whole}, all...)
	if faults := append(c.Resolve(), c.Check()...); len(faults) > 0 {
		t.Fatal(faults)
	}
	return c
}

// A daemon runs all kinds of rows and arrivals. Each workload has its series from the first scrape on, the ledgers
// balance at every scrape, and the pages contain no NaN or undefined value.
func TestKinds(t *testing.T) {
	_, url := engine(t, func(o *sim.Options) {
		o.CacheTokens = 0
		o.TTFT, o.ITL = 20*time.Millisecond, 5*time.Millisecond // a faster engine lets closed loops use the whole CPU
	})
	c := kinds(t, url)
	d := start(t, c)
	scrape := func() outside.Page {
		t.Helper()
		page, err := outside.Scrape(t.Context(), d.url)
		if err != nil {
			t.Fatal(err)
		}
		return page
	}
	first, text := scrape(), fetch(t, d.url+"/metrics")
	for _, w := range c.Workloads {
		for _, name := range []string{
			"requests_expected_total", "requests_total", "requests_dropped_total", "goodput_requests_total", "tokens_total",
			"loop", "position_seconds", "loop_duration_seconds", "trace_info", "ttft_seconds", "lateness_seconds",
		} {
			if !strings.Contains(text, "replayd_"+name) || !has(first, "replayd_"+name, w.Name) {
				t.Errorf("%s: no replayd_%s at the first scrape", w.Name, name)
			}
		}
	}
	deadline := time.Now().Add(2 * time.Second)
	for time.Now().Before(deadline) {
		page := scrape()
		for _, w := range c.Workloads {
			sum := page.Sum("replayd_requests_total", w.Name) + page.Sum("replayd_requests_dropped_total", w.Name) - page.Sum("replayd_requests_dropped_total", w.Name, "filtered") +
				page.Sum("replayd_requests_in_flight", w.Name) + page.Sum("replayd_requests_waiting", w.Name)
			if got := page.Sum("replayd_requests_expected_total", w.Name); got != sum {
				t.Fatalf("%s: %v expected, and %v accounted for", w.Name, got, sum)
			}
			if in := page.Sum("replayd_requests_in_flight", w.Name); w.Arrival == "concurrency" && in > 4 {
				t.Fatalf("%s: %v in flight, want at most 4", w.Name, in)
			}
		}
	}
	ok := `replayd_requests_total{model="sim",outcome="ok",target="%s",workload="%s"} %d`
	d.see(fmt.Sprintf(ok, "sim", "thrice", 3), fmt.Sprintf(ok, "sim", "warmed", 5))
	page := d.until("requests of all that may send, and one that was cancelled", func(p outside.Page) bool {
		sends := func(w config.Workload) bool {
			return w.Name == "nightly" || p.Sum("replayd_requests_total", w.Name, "ok") > 0
		}
		return !slices.ContainsFunc(c.Workloads, func(w config.Workload) bool { return !sends(w) }) && p.Sum("replayd_requests_total", "poisson", "cancelled") > 0
	})
	for _, w := range c.Workloads {
		n := page.Sum("replayd_requests_total", w.Name, "ok")
		if (n > 0) != (w.Name != "nightly") {
			t.Errorf("%s: got %v ok requests", w.Name, n)
		}
	}
	if n := page.Sum("replayd_slo_violations_total", "poisson"); n != 0 {
		t.Errorf("%v violations by requests that were cancelled", n)
	}
	for _, path := range []string{"/live", "/live/snapshot.json", "/metrics", "/"} {
		text := fetch(t, d.url+path)
		for _, bad := range []string{"NaN", "undefined", "<no value>", "%!"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s: it has %s", path, bad)
			}
		}
	}
	d.see(`replayd_trace_info{block_tokens="0",format="single_turn",model="sim",path="` + c.Workloads[3].Dataset.Path + `",requests="2",sha256="` + infoOf(t, d, "texts") + `",target="whole",workload="texts"} 1`)
	if text := fetch(t, d.url+"/metrics"); strings.Contains(text, `replayd_trace_prefix_hit_ratio{model="sim",target="sim",workload="closed"}`) ||
		!strings.Contains(text, `replayd_trace_prefix_hit_ratio{model="sim",target="sim",workload="trace"}`) {
		t.Error("want a prefix hit ratio of the trace, and of nothing else")
	}

	// The configuration page loads as the same configuration.
	shown := write(t, "replayd.yaml", fetch(t, d.url+"/config"))
	again, err := config.Load(shown, os.Environ(), nil, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range c.Workloads {
		if got := again.Workloads[i]; got.Arrival != w.Arrival || got.Synthetic != w.Synthetic || got.Rate != w.Rate || len(got.Stages) != len(w.Stages) || got.Users != w.Users {
			t.Errorf("%s: shown as %+v", w.Name, got)
		}
	}
	d.stop()
	d.end()
}

// has reports whether a workload has a series.
func has(p outside.Page, name, workload string) bool {
	for _, m := range p[name].GetMetric() {
		for _, l := range m.GetLabel() {
			if l.GetName() == "workload" && l.GetValue() == workload {
				return true
			}
		}
	}
	return false
}

// infoOf returns the sha256 label of a workload's replayd_trace_info.
func infoOf(t *testing.T, d *daemon, workload string) string {
	t.Helper()
	for line := range strings.Lines(fetch(t, d.url+"/metrics")) {
		if strings.HasPrefix(line, "replayd_trace_info{") && strings.Contains(line, `workload="`+workload+`"`) {
			_, rest, _ := strings.Cut(line, `sha256="`)
			digest, _, _ := strings.Cut(rest, `"`)
			return digest
		}
	}
	t.Fatalf("%s: no replayd_trace_info", workload)
	return ""
}

func TestInWords(t *testing.T) {
	f := func(want string, change func(w *config.Workload, t *config.Target)) {
		t.Helper()
		w, server := config.DefaultWorkload(), config.DefaultTarget()
		w.Name, w.Trace.Path, w.Repeat.Align = "w", "a.jsonl", "wall_clock"
		change(&w, &server)
		if got := inWords(w, server); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	made := config.Synthetic{InputTokens: 10}
	f("loop on the wall clock", func(*config.Workload, *config.Target) {})
	f("loop on the wall clock, speed 2, arrival spread", func(w *config.Workload, _ *config.Target) { w.Speed, w.Arrival = 2, "spread" })
	f("closed loop, 8 at a time", func(w *config.Workload, _ *config.Target) { w.Arrival, w.Lanes = "concurrency", 8 })
	f("closed loop, 8 at a time, once", func(w *config.Workload, _ *config.Target) {
		w.Arrival, w.Lanes, w.Repeat = "concurrency", 8, schedule.Repeat{Mode: "once"}
	})
	f("closed loop, 8 at a time, without end", func(w *config.Workload, _ *config.Target) {
		w.Arrival, w.Lanes, w.Synthetic, w.Trace.Path = "concurrency", 8, made, ""
	})
	f("once, poisson 4/s, 20 % cancelled after 500ms, answers in one piece", func(w *config.Workload, s *config.Target) {
		w.Arrival, w.Rate, w.Repeat = "poisson", 4, schedule.Repeat{Mode: "once"}
		w.Cancel, s.Stream = replay.Cancel{Ratio: 0.2, After: 500 * time.Millisecond}, false
	})
	f("cron 0 3 * * * UTC, overlap skip, gamma 2/s, then 20/s over 10m for 5m, then 3/s, burstiness 0.5", func(w *config.Workload, _ *config.Target) {
		w.Arrival, w.Rate, w.Burstiness = "gamma", 2, 0.5
		w.Repeat = schedule.Repeat{Mode: "cron", Cron: "0 3 * * *", Timezone: "UTC", Overlap: "skip"}
		w.Stages = []schedule.Stage{{Rate: 20, Over: 10 * time.Minute, Hold: 5 * time.Minute}, {Rate: 3}}
	})
	f("loop from the start, 30 users, together 1/s, shard 1 of 3", func(w *config.Workload, _ *config.Target) {
		w.Arrival, w.Rate, w.Users, w.Repeat.Align, w.Shard = "users", 1, 30, "start", schedule.Shard{Index: 1, Of: 3}
	})
}

// When a closed loop replaces another one, the requests in flight never exceed the larger of the two lane limits, and
// every request ends ok.
func TestReloadOfAClosedLoop(t *testing.T) {
	e, url := engine(t, func(o *sim.Options) { o.TTFT = 400 * time.Millisecond })
	c := conf([]config.Target{target("sim", url)}, once("w", "sim", ""))
	c.Web.EnableLifecycle = true
	w := &c.Workloads[0]
	w.Synthetic, w.Arrival, w.Lanes, w.Prompt.Calibrate = config.Synthetic{InputTokens: 10, OutputTokens: 2}, "concurrency", 6, false
	d := start(t, c)
	d.see(`replayd_requests_in_flight{model="sim",target="sim",workload="w"} 6`)
	d.reload(func(c *config.Config) {
		c.Workloads = append([]config.Workload(nil), c.Workloads...)
		c.Workloads[0].Lanes = 5
	})
	for deadline := time.Now().Add(3 * time.Second); time.Now().Before(deadline); {
		page := fetch(t, d.url+"/metrics")
		for n := 7; n <= 11; n++ {
			if strings.Contains(page, fmt.Sprintf("\n"+`replayd_requests_in_flight{model="sim",target="sim",workload="w"} %d`+"\n", n)) {
				t.Fatalf("%d in flight", n)
			}
		}
	}
	d.see(`replayd_requests_in_flight{model="sim",target="sim",workload="w"} 5`)
	d.stop()
	d.end()
	for len(d.finished) > 0 {
		if r := <-d.finished; r.Outcome != measure.OK {
			t.Errorf("%s: %s: %s", r.ID, r.Outcome, r.Error)
		}
	}
	if all, ok := e.counts(); ok != all {
		t.Errorf("want all to end well, got %d of %d", ok, all)
	}
}
