package daemon

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/schedule"
	"replayd/internal/sim"
)

// cycled adds the rows of a workload that have finished to into, by loop.
func (d *daemon) cycled(name string, into map[int64][]int) {
	for {
		select {
		case r := <-d.finished:
			if strings.HasPrefix(r.ID, name+"/") {
				if r.Outcome != measure.OK {
					d.t.Errorf("%s: %s: %s", r.ID, r.Outcome, r.Error)
				}
				into[r.Loop] = append(into[r.Loop], r.Row)
			}
		default:
			return
		}
	}
}

// The SLO objective is not part of the plan: the page shows a new objective as soon as the reload is answered.
func TestReloadOfTheObjective(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	c := conf([]config.Target{target("sim", url)}, looped("w", "sim", write(t, "trace.jsonl", rows(90))))
	c.Workloads[0].Shard = schedule.Shard{Index: 1, Of: 2}
	c.Web.EnableLifecycle = true
	d := start(t, c)
	shown := func(objective string) {
		t.Helper()
		page := fetch(t, d.url+"/metrics")
		for _, want := range []string{
			`replayd_slo_objective_ratio{model="sim",target="sim",workload="w"} ` + objective,
			`replayd_shards{model="sim",target="sim",workload="w"} 2`, `replayd_shard_index{model="sim",target="sim",workload="w"} 1`,
		} {
			if !strings.Contains(page, "\n"+want+"\n") {
				t.Errorf("not on the page: %s", want)
			}
		}
	}
	for _, objective := range []float64{0.9, 0.999} {
		d.reload(func(c *config.Config) {
			c.Workloads = slices.Clone(c.Workloads)
			c.Workloads[0].SLO.Objective = objective
		})
		shown(fmt.Sprint(objective))
		if page := fetch(t, d.url+"/config"); !strings.Contains(page, "objective: "+fmt.Sprint(objective)) {
			t.Errorf("/config has not the objective %v:\n%s", objective, page)
		}
	}
	d.stop()
	d.end()
}

// A workload that stays takes a new drain time: the stop after it cuts what the old one would wait for.
func TestReloadOfTheDrain(t *testing.T) {
	d, _ := gated(t)
	d.reload(func(c *config.Config) { c.Drain = time.Millisecond })
	d.stop()
	if r := d.next(); r.ID != "w/0/0" || r.Outcome != measure.Aborted {
		t.Errorf("want the first row aborted, got %s: %s", r.ID, r.Outcome)
	}
	d.end()
}

// A bad configuration changes nothing. The answer says why, and the two reload series show it.
func TestBadReloadChangesNothing(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	path := write(t, "trace.jsonl", rows(90))
	c := conf([]config.Target{target("sim", url)}, looped("w", "sim", path))
	c.Web.EnableLifecycle = true
	d := start(t, c)
	d.see(`replayd_config_last_reload_successful 1`)
	for want, change := range map[string]func(c *config.Config){
		"replayd.yaml: workloads[0].lanes: want an integer ≥ 1, got 0\n": func(c *config.Config) { c.Workloads[0].Lanes = 0 },
		"want a name of its own": func(c *config.Config) { c.Workloads = append(c.Workloads, c.Workloads[0]) },
		"no such file":           func(c *config.Config) { c.Workloads[0].Trace.Path += ".gone" },
		"every: want":            func(c *config.Config) { c.Workloads[0].Repeat.Every = time.Millisecond },
	} {
		before, _ := d.load()
		d.mu.Lock()
		d.config.Workloads = slices.Clone(d.config.Workloads)
		change(&d.config)
		d.mu.Unlock()
		if status, text := d.post("/-/reload"); status != http.StatusInternalServerError || !strings.Contains(text, want) {
			t.Errorf("want 500 and %q, got %d and %q", want, status, text)
		}
		d.see(`replayd_config_last_reload_successful 0`)
		d.mu.Lock()
		d.config = before
		d.mu.Unlock()
		d.next()
	}
	d.reload(func(*config.Config) {})
	d.see(`replayd_config_last_reload_successful 1`)
	rows := map[int64][]int{}
	d.cycled("w", rows)
	for loop, rows := range rows {
		slices.Sort(rows)
		if len(slices.Compact(slices.Clone(rows))) != len(rows) {
			t.Errorf("loop %d: a row was sent twice: %v", loop, rows)
		}
	}
}

// The series of a removed workload are deleted when it has drained. If it is added again, its counters go on.
func TestRemovedWorkloadReturns(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	path := write(t, "trace.jsonl", rows(5))
	c := conf([]config.Target{target("sim", url)}, each("stays", "sim", path), each("goes", "sim", path))
	c.Web.EnableLifecycle = true
	c.Records.Path = filepath.Join(t.TempDir(), "records.jsonl")
	d := start(t, c)
	ok := `replayd_requests_total{model="sim",outcome="ok",target="sim",workload="%s"} %d`
	d.see(fmt.Sprintf(ok, "stays", 5), fmt.Sprintf(ok, "goes", 5))
	both := c.Workloads
	d.reload(func(c *config.Config) { c.Workloads = both[:1] })
	d.unsee(`workload="goes"`)
	d.see(fmt.Sprintf(ok, "stays", 5))
	d.reload(func(c *config.Config) { c.Workloads = both })
	d.see(fmt.Sprintf(ok, "goes", 10), fmt.Sprintf(ok, "stays", 5)) // a plan that has ended does not begin again
	d.stop()
	d.end()

	// The records contain the same ledgers: one when the workload left, and one at the end that goes on from there.
	records, err := os.ReadFile(c.Records.Path)
	if err != nil {
		t.Fatal(err)
	}
	var expected []int64
	began := int64(0)
	for line := range strings.Lines(string(records)) {
		var l struct{ Ledger *measure.LedgerLine }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		if l.Ledger == nil || l.Ledger.Workload != "goes" {
			continue
		}
		if began = cmp.Or(began, l.Ledger.Began); l.Ledger.Began != began || l.Ledger.Balance() != nil {
			t.Errorf("began at %d, and then: %s%v", began, line, l.Ledger.Balance())
		}
		expected = append(expected, l.Ledger.Expected)
	}
	if !slices.IsSorted(expected) || !slices.Contains(expected, 5) || expected[len(expected)-1] != 10 {
		t.Errorf("expected %v, want 5 when it left and 10 at the end", expected)
	}
}

// A trace that is replaced by the same content is no change. Other content is a change.
func TestTraceInPlaceOfAnother(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	path := write(t, "trace.jsonl", rows(5))
	c := conf([]config.Target{target("sim", url)}, each("w", "sim", path))
	c.Web.EnableLifecycle = true
	d := start(t, c)
	ok := `replayd_requests_total{model="sim",outcome="ok",target="sim",workload="w"} %d`
	d.see(fmt.Sprintf(ok, 5))
	put := func(text string) {
		t.Helper()
		beside := filepath.Join(filepath.Dir(path), "new")
		if err := os.WriteFile(beside, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(beside, path); err != nil {
			t.Fatal(err)
		}
		d.reload(func(*config.Config) {})
	}
	put(rows(5))
	put(rows(7))
	d.see(fmt.Sprintf(ok, 12))
	d.stop()
	d.end()
}

// A target with another address is a different target. Requests in flight to the old one may end.
func TestTargetMoves(t *testing.T) {
	first, url := engine(t, func(*sim.Options) {})
	second, other := engine(t, func(*sim.Options) {})
	path := write(t, "trace.jsonl", rows(90))
	c := conf([]config.Target{target("sim", url)}, looped("w", "sim", path))
	c.Web.EnableLifecycle = true
	d := start(t, c)
	for range 20 {
		d.next()
	}
	d.reload(func(c *config.Config) {
		c.Targets = slices.Clone(c.Targets)
		c.Targets[0].URL = other
	})
	for all, _ := second.counts(); all < 100; all, _ = second.counts() {
		if r := d.next(); r.Outcome != measure.OK {
			t.Errorf("%s: %s: %s", r.ID, r.Outcome, r.Error)
		}
	}
	d.stop()
	d.end()
	if all, ok := first.counts(); ok != all {
		t.Errorf("want all at the old address to end well, got %d of %d", ok, all)
	}
}

func TestPauseOneOfTwo(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	path := write(t, "trace.jsonl", rows(90))
	c := conf([]config.Target{target("sim", url)}, looped("held", "sim", path), looped("free", "sim", path))
	c.Web.EnableLifecycle = true
	d := start(t, c)
	d.next()
	if status, text := d.post("/-/pause?workload=nobody"); status != http.StatusNotFound || !strings.Contains(text, `want the name of a workload, got "nobody"`) {
		t.Errorf("want 404 and why, got %d and %q", status, text)
	}
	d.reload(func(c *config.Config) { // the handover follows a second later; the old runner is paused until then
		c.Workloads = slices.Clone(c.Workloads)
		c.Workloads[0].Lanes = 77
	})
	if status, text := d.post("/-/pause?workload=held"); status != http.StatusOK {
		t.Fatalf("want 200, got %d: %s", status, text)
	}
	d.see(
		`replayd_paused{model="sim",target="sim",workload="held"} 1`, `replayd_paused{model="sim",target="sim",workload="free"} 0`,
		`replayd_requests_in_flight{model="sim",target="sim",workload="held"} 0`,
	)
	paused := time.Now()
	for len(d.finished) > 0 {
		<-d.finished
	}
	for range 60 {
		if r := d.next(); !strings.HasPrefix(r.ID, "free/") && !r.Timeline.Write.Before(paused) {
			t.Errorf("%s was sent in the pause", r.ID)
		}
	}
	d.reload(func(c *config.Config) { // a pause survives a reload, also in a changed workload
		c.Workloads = slices.Clone(c.Workloads)
		c.Workloads[0].Lanes = 99
	})
	d.see(`replayd_paused{model="sim",target="sim",workload="held"} 1`)
	if status, _ := d.post("/-/resume"); status != http.StatusOK {
		t.Errorf("want 200, got %d", status)
	}
	for !strings.HasPrefix(d.next().ID, "held/") {
		continue
	}
	d.see(`replayd_paused{model="sim",target="sim",workload="held"} 0`)
}

// A server lives until no generation lists it and no workload uses it.
func TestServerOfTwoGenerations(t *testing.T) {
	ended := 0
	s := &server{users: 2, end: func() { ended++ }} // a generation and its workload
	if !s.share() {
		t.Fatal("want it shared")
	}
	s.release() // the first generation
	s.release() // its workload, which has drained
	if ended != 0 {
		t.Fatal("it ended with a generation left that lists it")
	}
	s.release()
	if ended != 1 {
		t.Errorf("want it ended once, got %d", ended)
	}
}

func TestConfigPage(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	c := conf([]config.Target{target("sim", url)}, once("w", "sim", write(t, "trace.jsonl", rows(5))))
	c.Targets[0].ExtraBody = map[string]any{"api_key": "hush"}
	d := start(t, c)
	page := fetch(t, d.url+"/config")
	if !strings.Contains(page, "name: sim") || !strings.Contains(page, "lanes: 256") || strings.Contains(page, "hush") {
		t.Errorf("want the running configuration without secrets, got\n%s", page)
	}
}
