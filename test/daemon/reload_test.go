//go:build daemon

package daemon_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/synth"

	"replayd/test/outside"
)

// Reloads under load, by signal, by HTTP and by swapping a mounted file: unchanged workloads keep running, changed ones
// are handed over at one instant, and an invalid file changes nothing.
func TestReload(t *testing.T) {
	length := outside.Knob(t, "DAEMON_RELOAD_FOR", 15*time.Second, time.ParseDuration)
	every := outside.Knob(t, "DAEMON_RELOAD_EVERY", time.Second, time.ParseDuration)
	r := &reloading{stage: newStage(t, "--ttft", "20ms", "--itl", "2ms", "--chunk-tokens", "4"), ways: map[string]int{}}
	in := func(name string) string { return filepath.Join(r.Dir, name) }
	r.conversation, r.sample, r.changing, r.replaced, r.guest = in("conversation.jsonl"), in("sample.jsonl"), in("changing.jsonl"),
		in("replaced.jsonl"), in("guest.jsonl")
	outside.Conversation(t, r.conversation, 3*time.Minute)
	outside.Put(t, r.sample, string(synth.Sample))
	conversationRows, sampleRows := outside.Rows(t, r.conversation), outside.Rows(t, r.sample)
	r.changingRows, r.guestRows = outside.Plain(240, 4, 200, 30, 1), outside.Plain(145, 5, 150, 20, 2)
	outside.Put(t, r.changing, outside.Trace(r.changingRows))
	outside.Put(t, r.guest, outside.Trace(r.guestRows))
	outside.Put(t, r.replaced, outside.Trace(editionRows(0)))
	r.now = change{lanes: 64, slo: time.Second, seed: 1, speed: 2, number: 10000}
	r.mount, r.Config = newMount(t, in("etc"), r.yaml(r.now))

	stolen := outside.StealTime()
	r.daemon, _ = r.Serve(t, "--config.watch", "--web.enable-pprof")
	began := time.Now()
	stay := []string{"conversation", "sample"}
	w := outside.Watch(t, r.URL(), min(every/4, time.Second), stay...)
	tick := time.NewTicker(every)
	defer tick.Stop()
	steps := 0
	for ; time.Since(began) < length && !t.Failed(); steps++ {
		if steps%9 != 4 { // sometimes the next reload comes before the handover of the one before
			<-tick.C
		}
		r.step(t, steps)
	}
	took := time.Since(began)
	w.Stop()
	t.Logf("%d reloads in %v: %v; POST took at most %v; %d scrapes, the slowest %v; steal %v", steps, took.Round(time.Second), r.ways,
		longest(r.spans).Round(time.Millisecond), w.Scrapes, longest(w.Wall).Round(time.Millisecond), outside.StealTime()-stolen)
	t.Logf("counters that fell: %d of %d; workloads that came back: %d times", w.Fallen, len(w.Last), w.Returned)
	w.Settled(length >= 5*time.Minute)
	r.profile(t)
	final, err := outside.Scrape(t.Context(), r.URL())
	if err != nil {
		t.Fatal(err)
	}
	stop := time.Now()
	r.step(t, 3) // the daemon must stop in the middle of a handover
	r.daemon.Term(t, 40*time.Second)

	records, _ := outside.Records(t, r.Records, false)
	all := r.join(t, r.arrivals(t), records)
	// A session's turn may still wait for the turn before it when the process must stop.
	until := stop.Add(-3 * time.Second)
	figuresHead(t)
	for _, c := range []struct {
		workload string
		plan     *plan
		shifts   []shift
	}{
		// Both traces last 45 s at this speed. With a longer period, the whole run could fall where no row is due.
		{"conversation", &plan{Rows: conversationRows, Speed: 4, Every: 45 * time.Second}, nil},
		{"sample", &plan{Rows: sampleRows, Speed: 4, Every: 45 * time.Second}, nil},
		{"changing", r.changingPlan(2), r.changes},
		{"replaced", &plan{Rows: editionRows(0), Speed: 2, Every: 30 * time.Second}, r.editions},
		{"guest", nil, r.guests},
	} {
		from := began
		var late []time.Duration
		for _, s := range all {
			if s.workload == c.workload {
				if len(late) == 0 {
					from = s.At // the first in order of arrival
				}
				late = append(late, time.Duration(s.Lateness))
			}
		}
		rows, _ := outside.Exactly(t, c.workload, c.plan, c.shifts, records, from, until, 0)
		figures(t, fmt.Sprintf("lateness, %s (%d shifts)", c.workload, len(c.shifts)), late)
		finished, dropped := final.Ended(c.workload)
		if c.workload != "guest" && (rows == 0 || finished == 0 || dropped != 0) {
			t.Errorf("%s: want requests and none dropped, got %d due, %v finished, %v dropped", c.workload, rows, finished, dropped)
		}
	}
	for _, e := range all {
		if e.Outcome != "ok" {
			t.Errorf("%s: want ok, got %s", e.ID, e.Outcome)
		}
	}
	r.checkLog(t, stay)
	if w.Returned == 0 || r.ways["watch"] == 0 || r.ways["bad"] == 0 {
		t.Errorf("want every kind of reload, got %v, and %d workloads that came back", r.ways, w.Returned)
	}
}

// begunLoop matches a workload and the number of its loop.
var begunLoop = regexp.MustCompile(`workload=(\S+ loop=\d+) begins=`)

// checkLog checks the daemon's log: no errors but those of the invalid files, no finished workload, and no loop of an
// unchanged workload entered twice, as by a runner that takes over.
func (r *reloading) checkLog(t *testing.T, stay []string) {
	t.Helper()
	loops := map[string]int{}
	for line := range strings.Lines(r.daemon.Said(t)) {
		if strings.Contains(line, "level=ERROR") && !strings.Contains(line, "configuration not reloaded") {
			t.Errorf("log: %s", line)
		}
		if strings.Contains(line, "plan finished: nothing more is due") { // every workload loops
			t.Errorf("log: %s", line)
		}
		if of := begunLoop.FindStringSubmatch(line); of != nil {
			loops[of[1]]++
		}
	}
	begun := 0
	for loop, times := range loops {
		name, _, _ := strings.Cut(loop, " ")
		if !slices.Contains(stay, name) {
			continue
		}
		begun += times
		if times > 1 {
			t.Errorf("log: loop %s began %d times: another runner took over", loop, times)
		}
	}
	if begun == 0 {
		t.Error("log: want the loops of the workloads that stay, got none")
	}
}

// profile logs the goroutines if there are too many.
func (r *reloading) profile(t *testing.T) {
	t.Helper()
	if t.Failed() {
		_, body, err := outside.Call(t.Context(), http.DefaultClient, "GET", r.URL()+"/debug/pprof/goroutine?debug=1")
		t.Logf("goroutines: %v\n%.6000s", err, body)
	}
}

func longest(all []time.Duration) (most time.Duration) {
	for _, d := range all {
		most = max(most, d)
	}
	return most
}
