//go:build daemon

package daemon_test

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/model"

	"replayd/test/outside"
)

// A change is the content of the next reload.
type change struct {
	lanes   int
	slo     time.Duration
	seed    int
	speed   float64
	guest   bool
	edition int // edition of the trace that is replaced
	number  int // number of the configuration: the milliseconds of the drain, so that /config shows which one runs
}

// A reloading is one test of reloads.
type reloading struct {
	*stage
	mount  *mount
	daemon *outside.Process
	now    change

	conversation, sample, changing, replaced, guest string // paths of traces
	changingRows, guestRows                         []row

	changes, editions, guests []shift // what the three changing workloads had to send
	ways                      map[string]int
	spans                     []time.Duration // durations of POST
}

// step makes one reload; some follow a bad one.
func (r *reloading) step(t *testing.T, i int) {
	t.Helper()
	if i%5 == 4 {
		r.bad(t, i/5)
	}
	before, begin := r.now, time.Now()
	r.now.number++
	switch i % 4 {
	case 0:
		r.now.lanes = 160 - r.now.lanes
	case 1:
		r.now.slo += time.Millisecond
	case 2:
		r.now.seed++
	case 3:
		r.now.speed = 4.5 - r.now.speed
	}
	if i%2 == 1 {
		r.now.guest = !r.now.guest
	}
	if i%3 == 2 {
		r.now.edition++
		outside.Put(t, r.replaced, outside.Trace(editionRows(r.now.edition)))
	}
	if i%7 == 5 { // the same content in another file is the same trace
		again, err := os.ReadFile(r.sample)
		if err != nil {
			t.Fatal(err)
		}
		outside.Put(t, r.sample, string(again))
	}
	r.mount.swap(t, r.yaml(r.now))
	r.bring(t, i)
	end := time.Now()

	p := outside.See(t, r.URL(), "the page of the new configuration", 25*time.Second, func(p page) bool {
		return hasWorkload(p, "guest") == r.now.guest
	})
	if got := p.Sum("replayd_config_last_reload_successful"); got != 1 {
		t.Errorf("replayd_config_last_reload_successful: want 1, got %v", got)
	}
	if got := p.Sum("replayd_slo_threshold_seconds", "changing", "ttft"); got != r.now.slo.Seconds() {
		t.Errorf("threshold of the changing workload: want %v, got %v s", r.now.slo, got)
	}
	handover := func(to *plan) shift { return shift{From: begin.Add(time.Second), To: end.Add(time.Second), Plan: to} }
	if r.now.speed != before.speed {
		r.changes = append(r.changes, handover(r.changingPlan(r.now.speed)))
	}
	if r.now.edition != before.edition {
		r.editions = append(r.editions, handover(&plan{Rows: editionRows(r.now.edition), Speed: 2, Every: 30 * time.Second}))
	}
	if r.now.guest != before.guest {
		var to *plan
		if r.now.guest {
			to = &plan{Rows: r.guestRows, Speed: 1, Every: 30 * time.Second}
		}
		if n := len(r.guests); n > 0 && r.guests[n-1].To.After(begin) {
			r.guests[n-1].To = begin
		}
		r.guests = append(r.guests, shift{From: begin, To: end.Add(time.Second), Plan: to}) // the guest joins a little later
	}
}

func hasWorkload(p page, name string) bool { return slices.Contains(p.Workloads(), name) }

// bring reloads the daemon and waits until it has reloaded.
func (r *reloading) bring(t *testing.T, i int) {
	t.Helper()
	reload := func(times int) {
		begin, answers := time.Now(), make(chan string, times)
		for range times {
			go func() { // the answers are awaited below
				status, body, err := outside.Call(t.Context(), http.DefaultClient, "POST", r.URL()+"/-/reload")
				answers <- fmt.Sprintf("%d %v %s", status, err, body)
			}()
		}
		for range times {
			if got, want := strings.TrimSpace(<-answers), "200 <nil> The configuration is reloaded."; got != want {
				t.Errorf("POST /-/reload: want %q, got %q", want, got)
			}
		}
		r.spans = append(r.spans, time.Since(begin))
	}
	running := func() error {
		_, body, err := outside.Call(t.Context(), http.DefaultClient, "GET", r.URL()+"/config")
		if err == nil && !strings.Contains(string(body), r.number()) {
			err = fmt.Errorf("/config: want %s", r.number())
		}
		return err
	}
	switch {
	case i%9 == 7:
		r.ways["watch"]++
		outside.Until(t, 30*time.Second, running)
	case i%9 == 3:
		r.ways["two POSTs at once"]++
		reload(2)
	case i%2 == 0:
		r.ways["POST"]++
		reload(1)
	default:
		r.ways["SIGHUP"]++
		r.daemon.Signal(t, syscall.SIGHUP)
		outside.Until(t, 20*time.Second, running)
	}
	if err := running(); err != nil {
		t.Error(err)
	}
}

// bad tries an invalid file, which must change nothing.
func (r *reloading) bad(t *testing.T, i int) {
	t.Helper()
	r.ways["bad"]++
	good := r.yaml(r.now)
	faults := []struct{ text, words string }{
		{strings.Replace(good, fmt.Sprint("lanes: ", r.now.lanes), "lanes: 0", 1), "lanes: want an integer ≥ 1, got 0"},
		{strings.Replace(good, r.changing, r.changing+".gone", 1), "no such file"},
		{good + "unknown: 1\n", "unknown"},
	}
	f := faults[i%len(faults)]
	_, before, err := outside.Call(t.Context(), http.DefaultClient, "GET", r.URL()+"/config")
	if err != nil {
		t.Fatal(err)
	}
	r.mount.swap(t, f.text)
	if i%2 == 0 {
		if words := outside.Post(t, r.URL()+"/-/reload", 500); !strings.Contains(words, f.words) {
			t.Errorf("a bad file: want %q in the answer, got %q", f.words, words)
		}
	} else {
		r.daemon.Signal(t, syscall.SIGHUP)
	}
	outside.See(t, r.URL(), "replayd_config_last_reload_successful 0", 20*time.Second, func(p page) bool {
		return p.Sum("replayd_config_last_reload_successful") == 0
	})
	_, after, err := outside.Call(t.Context(), http.DefaultClient, "GET", r.URL()+"/config")
	if err != nil {
		t.Fatal(err)
	}
	if string(after) != string(before) {
		t.Errorf("a bad file changed /config from\n%s\nto\n%s", before, after)
	}
}

func (r *reloading) changingPlan(speed float64) *plan {
	return &plan{Rows: r.changingRows, Speed: speed, Every: 30 * time.Second}
}

// editionRows returns the rows of the trace that is replaced: each edition has other instants and lengths.
func editionRows(edition int) []row {
	return outside.Plain(110, 2, 50+edition, 20, 100+uint64(edition))
}

func (r *reloading) number() string {
	return fmt.Sprintf("drain: %v\n", model.Duration(time.Duration(r.now.number)*time.Millisecond))
}

func (r *reloading) yaml(c change) string {
	guest := ""
	if c.guest {
		guest = fmt.Sprintf("- {name: guest, trace: {path: %q}, repeat: {every: 30s}}\n", r.guest)
	}
	return r.text(fmt.Sprintf(`drain: %dms
records: {path: %q, max_bytes: 1MiB, keep: 500, gzip: true}
workloads:
- {name: conversation, trace: {path: %q}, speed: 4, repeat: {every: 45s}, lanes: 1024}
- {name: sample, trace: {path: %q}, speed: 4, repeat: {every: 45s}, lanes: 1024, slo: {ttft: 1s}}
- {name: changing, trace: {path: %q}, speed: %v, repeat: {every: 30s}, lanes: %d, prompt: {seed: %d}, slo: {ttft: %v}}
- {name: replaced, trace: {path: %q}, speed: 2, repeat: {every: 30s}}
%s`, c.number, r.Records, r.conversation, r.sample, r.changing, c.speed, c.lanes, c.seed, c.slo, r.replaced, guest))
}
