//go:build daemon

package daemon_test

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// A pause drops and counts the due requests of one workload and does not affect others. A reload does not end it.
func TestPause(t *testing.T) {
	s := newStage(t, "--ttft", "20ms", "--itl", "5ms")
	plans := map[string]*plan{}
	var workloads strings.Builder
	for i, name := range []string{"held", "other"} {
		p := &plan{Rows: outside.Plain(295, 10, 100, 20, uint64(5+i)), Speed: 1, Every: 30 * time.Second}
		path := filepath.Join(s.Dir, name+".jsonl")
		outside.Put(t, path, outside.Trace(p.Rows))
		plans[name] = p
		fmt.Fprintf(&workloads, "- {name: %s, trace: {path: %q}, repeat: {every: 30s}, lanes: LANES}\n", name, path)
	}
	configure := func(lanes string) {
		s.write(t, fmt.Sprintf("records: {path: %q}\nworkloads:\n%s", s.Records, strings.ReplaceAll(workloads.String(), "LANES", lanes)))
	}
	configure("64")
	daemon, _ := s.Serve(t)
	ended := func(p page) float64 { finished, _ := p.Ended("held"); return finished }
	w := outside.Watch(t, s.URL(), 200*time.Millisecond, "held", "other")
	outside.See(t, s.URL(), "20 requests", 30*time.Second, func(p page) bool { return ended(p) >= 20 })

	if words := outside.Post(t, s.URL()+"/-/pause?workload=nobody", 404); words == "" {
		t.Error("want words about a name that there is not")
	}
	command := func(verb string) (before, after time.Time) {
		before = time.Now()
		t.Logf("%s: %s", verb, outside.Post(t, s.URL()+"/-/"+verb+"?"+url.Values{"workload": {"held"}}.Encode(), 200))
		return before, time.Now()
	}
	pauseBefore, pauseAfter := command("pause")
	outside.See(t, s.URL(), "a second of pause", 30*time.Second, func(page) bool { return time.Since(pauseAfter) >= time.Second })
	configure("65") // both workloads are handed over, and the pause with them
	outside.Post(t, s.URL()+"/-/reload", 200)
	outside.See(t, s.URL(), "3 s of pause", 30*time.Second, func(p page) bool {
		if got := p.Sum("replayd_paused", "held") - p.Sum("replayd_paused", "other"); got != 1 {
			t.Fatalf("replayd_paused: want 1 of the one and 0 of the other, got a difference of %v", got)
		}
		return time.Since(pauseAfter) >= 3*time.Second
	})
	resumeBefore, resumeAfter := command("resume")
	was := ended(outside.See(t, s.URL(), "a page", 10*time.Second, func(p page) bool { return p.Sum("replayd_paused", "held") == 0 }))
	final := outside.See(t, s.URL(), "20 more requests", 40*time.Second, func(p page) bool { return ended(p) >= was+20 })
	w.Stop()
	daemon.Term(t, 40*time.Second)

	log := s.arrivals(t)
	records, _ := outside.Records(t, s.Records, false)
	all := s.join(t, log, records)
	figuresHead(t)
	for name, p := range plans {
		arrived := map[string]bool{}
		var late []time.Duration
		var first, last time.Time
		for _, x := range all {
			if x.workload != name {
				continue
			}
			if arrived[x.ID] {
				t.Errorf("%s was sent twice", x.ID)
			}
			arrived[x.ID] = true
			late = append(late, time.Duration(x.Lateness))
			if first.IsZero() || x.At.Before(first) {
				first = x.At
			}
			if x.At.After(last) {
				last = x.At
			}
		}
		figures(t, "lateness, "+name, late)
		missing, inside := 0, 0
		for _, d := range p.Between(first, last) {
			there := arrived[d.RequestID(name)]
			if !there {
				missing++
			}
			switch {
			case name == "other" || d.At.Before(pauseBefore) || d.At.After(resumeAfter):
				if !there {
					t.Errorf("%s: planned %v, outside of the pause, and not sent", d.RequestID(name), d.At)
				}
			case d.At.After(pauseAfter) && d.At.Before(resumeBefore):
				inside++
				if there {
					t.Errorf("%s: planned %v into the pause, and sent", d.RequestID(name), d.At.Sub(pauseAfter))
				}
			}
		}
		counted := int(final.Sum("replayd_requests_dropped_total", name, "paused"))
		t.Logf("%s: %d sent, %d not; the plan has %d rows between the two calls; counted as paused: %d", name, len(arrived), missing, inside, counted)
		if counted != missing || name == "held" && missing == 0 {
			t.Errorf(`%s: want reason="paused" to be the %d rows that were not sent, got %d`, name, missing, counted)
		}
		if others := otherReasons(final, name); others != 0 {
			t.Errorf("%s: want no other drops, got %v", name, others)
		}
	}
}

func otherReasons(p page, workload string) (sum float64) {
	for _, reason := range []string{"overload", "missed", "shutdown", "filtered"} {
		sum += p.Sum("replayd_requests_dropped_total", workload, reason)
	}
	return sum
}
