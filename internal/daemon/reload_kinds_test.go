package daemon

import (
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/sim"
)

// put replaces a file by a new one of the same name.
func put(t *testing.T, path, text string) {
	t.Helper()
	beside := filepath.Join(filepath.Dir(path), "new")
	if err := os.WriteFile(beside, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(beside, path); err != nil {
		t.Fatal(err)
	}
}

// reloaded reloads the unchanged configuration. The message on the live page must give the expected counts of
// workloads.
func (d *daemon) reloaded(want string) {
	d.t.Helper()
	d.reload(func(*config.Config) {})
	page := fetch(d.t, d.url+"/live/snapshot.json")
	if i := strings.LastIndex(page, "reloaded: "); i < 0 || !strings.HasPrefix(page[i:], "reloaded: "+want) {
		d.t.Errorf("want %q, got %s", want, page[max(0, len(page)-300):])
	}
}

// Workloads of every kind keep running through a reload that changes none of them.
func TestReloadOfKinds(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	c := kinds(t, url)
	c.Web.EnableLifecycle = true
	d := start(t, c)
	d.reloaded("11 unchanged, 0 changed, 0 added, 0 removed")
	d.stop()
	d.end()
}

// A tokenizer, and a dataset with texts for a trace, are compared by content. New content changes the workloads that
// use the file, the same content changes none, and a bad file changes nothing.
func TestFilesInPlaceOfOthers(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile("../token/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	words, texts := read("byte_level.json"), `{"text": "one two three"}`+"\n"
	tokenizer, prompts := write(t, "tokenizer.json", words), write(t, "prompts.jsonl", texts)
	c := conf([]config.Target{target("sim", url), target("other", url)}, looped("texts", "sim", write(t, "trace.jsonl", rows(90))), looped("none", "other", write(t, "trace.jsonl", rows(90))))
	c.Targets[0].Tokenizer = tokenizer
	c.Workloads[0].Dataset = config.Dataset{Path: prompts, Format: "single_turn"}
	c.Web.EnableLifecycle = true
	d := start(t, c)
	const same, changed = "2 unchanged, 0 changed", "1 unchanged, 1 changed"

	put(t, tokenizer, words)
	d.reloaded(same)
	put(t, prompts, texts)
	d.reloaded(same)
	put(t, prompts, texts+`{"text": "four five six"}`+"\n")
	d.reloaded(changed)
	put(t, tokenizer, words+"\n")
	d.reloaded(changed)

	for _, bad := range []struct{ path, text, want string }{
		{tokenizer, `{"model": `, `targets[0] "sim": tokenizer: ` + tokenizer + ": "},
		{prompts, texts + "{\n", `workloads[0] "texts": dataset.path: ` + prompts + ":2: "},
	} {
		good, err := os.ReadFile(bad.path)
		if err != nil {
			t.Fatal(err)
		}
		put(t, bad.path, bad.text)
		if status, text := d.post("/-/reload"); status != http.StatusInternalServerError || !strings.Contains(text, bad.want) {
			t.Errorf("want 500 and %q, got %d and %q", bad.want, status, text)
		}
		d.next()
		put(t, bad.path, string(good))
		d.reloaded(same)
	}
	d.stop()
	d.end()
}

// A reload finds the changes in the files of a folder of sessions.
func TestReloadOfAFolder(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	folder := t.TempDir()
	session := func(requests string) string {
		return `{"id":"a","block_size":16,"hash_id_scope":"local","tool_tokens":0,"system_tokens":0,"requests":[` + requests + "]}\n"
	}
	one, two := `{"t":0,"type":"n","in":16,"out":2,"hash_ids":[1],"api_time":0.1}`, `{"t":0.2,"type":"n","in":32,"out":2,"hash_ids":[1,2],"api_time":0.1}`
	file := filepath.Join(folder, "a.json")
	put(t, file, session(one))
	c := conf([]config.Target{target("sim", url)}, looped("sessions", "sim", folder))
	c.Web.EnableLifecycle = true
	d := start(t, c)
	const same, changed = "1 unchanged, 0 changed", "0 unchanged, 1 changed"
	d.reloaded(same)
	put(t, file, session(one))
	d.reloaded(same)
	put(t, file, session(one+","+two))
	d.reloaded(changed)
	put(t, filepath.Join(folder, "b.json"), strings.Replace(session(one), `"a"`, `"b"`, 1))
	d.reloaded(changed)
	if err := os.WriteFile(file, []byte(session(one)), 0o600); err != nil { // in place, which the folder's own time does not show
		t.Fatal(err)
	}
	d.reloaded(changed)
	put(t, filepath.Join(folder, "notes.txt"), "no session")
	d.reloaded(same)
	d.stop()
	d.end()
}

// A workload changes from a trace to synthetic rows by rate, to synthetic rows in a closed loop, and back to a trace.
// No row is lost, and all counters go on.
func TestFromTraceToSyntheticAndBack(t *testing.T) {
	e, url := engine(t, func(*sim.Options) {})
	c := conf([]config.Target{target("sim", url)}, looped("w", "sim", write(t, "trace.jsonl", rows(90))))
	c.Web.EnableLifecycle = true
	d := start(t, c)
	all := map[string]measure.Request{}
	take := func(until func(r measure.Request) bool) {
		t.Helper()
		for {
			r := d.next()
			all[r.ID+r.Timeline.Due.String()] = r
			if r.Outcome != measure.OK {
				t.Errorf("%s: %s: %s", r.ID, r.Outcome, r.Error)
			}
			if until(r) {
				return
			}
		}
	}
	ofInput := func(tokens int) func(r measure.Request) bool {
		return func(r measure.Request) bool { return r.InputTokens == tokens }
	}
	d.next()
	traced := c.Workloads[0]
	for i, change := range []func(w *config.Workload){
		func(w *config.Workload) { w.Arrival, w.Rate, w.Synthetic.Requests = "poisson", 50, 5000 },
		func(w *config.Workload) { w.Arrival, w.Rate, w.Synthetic.Requests = "poisson", 80, 5000 },
		func(w *config.Workload) { w.Arrival, w.Lanes = "concurrency", 3 },
		func(w *config.Workload) { w.Arrival, w.Lanes = "concurrency", 2 },
	} {
		w := config.DefaultWorkload()
		w.Name, w.Target, w.Synthetic = "w", "sim", config.Synthetic{InputTokens: float64(300 + i), OutputTokens: 2}
		w.Repeat.Align = "start"
		change(&w)
		d.reload(func(c *config.Config) { c.Workloads = []config.Workload{w} })
		take(ofInput(300 + i))
	}
	d.reload(func(c *config.Config) { c.Workloads = []config.Workload{traced} })
	take(ofInput(20))
	d.stop()
	d.end()
	for len(d.finished) > 0 {
		r := <-d.finished
		all[r.ID+r.Timeline.Due.String()] = r
	}
	if all, ok := e.counts(); ok != all {
		t.Errorf("want all to end well, got %d of %d", ok, all)
	}
	// In planned order, one kind of rows ends before the next begins.
	byPlan := slices.SortedFunc(maps.Values(all), func(a, b measure.Request) int { return a.Timeline.Planned.Compare(b.Timeline.Planned) })
	kind := func(r measure.Request) int { return max(299, r.InputTokens) }
	for i, r := range byPlan[1:] {
		if before := byPlan[i]; kind(r) < kind(before) && kind(r) != 299 {
			t.Errorf("%s of %d tokens is planned %v after one of %d", r.ID, r.InputTokens, r.Timeline.Planned.Sub(before.Timeline.Planned), before.InputTokens)
		}
	}
}

// In a pause of a closed loop no row falls due or is dropped. The guard and the budget hold rows back, and a stop lets
// requests in flight end.
func TestClosedLoopsHeldBack(t *testing.T) {
	_, url := engine(t, func(o *sim.Options) { o.TTFT = 20 * time.Millisecond })
	c := conf([]config.Target{target("sim", url)}, once("closed", "sim", ""), once("poor", "sim", ""))
	c.Web.EnableLifecycle = true
	for i := range c.Workloads {
		w := &c.Workloads[i]
		w.Synthetic, w.Arrival, w.Lanes = config.Synthetic{InputTokens: 10, OutputTokens: 2}, "concurrency", 3
	}
	c.Workloads[1].Budget.RequestsPerMinute = 5
	d := start(t, c)
	of := func(name string) string { return `{model="sim",target="sim",workload="` + name + `"}` }
	for !strings.HasPrefix(d.next().ID, "closed/") {
		continue
	}
	d.see("replayd_requests_expected_total"+of("poor")+" 5", "replayd_requests_in_flight"+of("poor")+" 0", "replayd_requests_in_flight"+of("closed")+" 3")
	if status, text := d.post("/-/pause"); status != http.StatusOK {
		t.Fatalf("want 200, got %d: %s", status, text)
	}
	d.see("replayd_requests_in_flight"+of("closed")+" 0", "replayd_requests_waiting"+of("closed")+" 0", "replayd_paused"+of("closed")+" 1")
	page := fetch(t, d.url+"/metrics")
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "replayd_requests_dropped_total{") && !strings.HasSuffix(line, " 0\n") {
			t.Errorf("something was dropped: %s", line)
		}
	}
	if status, text := d.post("/-/resume"); status != http.StatusOK {
		t.Fatalf("want 200, got %d: %s", status, text)
	}
	d.see("replayd_requests_in_flight" + of("closed") + " 3")
	d.stop()
	d.end()
	for len(d.finished) > 0 {
		if r := <-d.finished; r.Outcome != measure.OK {
			t.Errorf("%s: %s: %s", r.ID, r.Outcome, r.Error)
		}
	}
}
