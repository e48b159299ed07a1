package replay

import (
	"testing"
	"time"
)

// Each state of a target after each event. An event may ask for one more probe (again), or for an earlier one after
// failures (earlier).
func TestTargetStates(t *testing.T) {
	states := [...]string{unknown: "unknown", down: "down", failing: "failing", up: "up"}
	for e, row := range map[targetEvent][len(states)]string{
		// from unknown, down, failing, up
		gotAnswer:   {"failing", "failing again", "failing", "up"},
		gotNotFound: {"failing again", "failing again", "failing again", "up again"},
		gotOK:       {"failing earlier", "failing again earlier", "failing earlier", "up"},
		gotNothing:  {"down", "down", "down", "down"},
		probeFailed: {"unknown", "down", "failing", "failing"},
		probePassed: {"up", "down", "up", "up"},
	} {
		for from, expected := range row {
			h := health{state: targetState(from)}
			sooner := h.see(e)
			got := states[h.state]
			if h.again {
				got += " again"
			}
			if h.served {
				got += " earlier"
			}
			if got != expected || sooner != (h.again || h.served) {
				t.Errorf("event %d in state %s: want %q, got %q, sooner %v", e, states[from], expected, got, sooner)
			}
			if before := h.state; h.see(e) && h.state == before {
				t.Errorf("event %d in state %s: the second asks for a sooner probe, too", e, states[from])
			}
		}
	}
}

// When a target is asked next, for its list (a whole probe: probed), after each of several events. Times are in
// seconds.
func TestWhenATargetIsAsked(t *testing.T) {
	at := func(s float64) time.Time { return time.Unix(0, 0).Add(time.Duration(s * float64(time.Second))) }
	h := health{again: true}
	if _, probe := h.next(at(0), false); !probe {
		t.Error("the first question is not a probe")
	}
	probe := func(failed, token bool) func(now time.Time) {
		return func(now time.Time) { h.begin(now); h.end(now, failed, token) }
	}
	see := func(e targetEvent) func(time.Time) { return func(time.Time) { h.see(e) } }
	for _, c := range []struct {
		name    string
		now     float64
		do      func(now time.Time)
		news    float64
		unclear bool
		next    float64
		probed  bool
	}{
		{"no list yet", 0, probe(true, false), 0, false, 1, true},
		{"again no list", 1, probe(true, false), 1, false, 6, true},
		{"a list, no token", 6, probe(true, true), 6, false, 11, true},
		{"still none", 11, probe(true, true), 11, false, 16, false},
		{"nothing new", 16, func(now time.Time) { h.listed = now }, 16, false, 21, true},
		{"still none, with news meanwhile", 21, probe(true, true), 50, false, 41, true},
		{"a request ended ok", 30, see(gotOK), 50, false, 26, true},
		{"the probe begins", 30, probe(true, true), 100, false, 70, true},
		{"it may be another server, but probes fail anyway", 31, see(gotNotFound), 100, false, 70, true},
		{"the longest pause", 70, probe(true, true), 200, false, 130, true},
		{"it is up", 130, probe(false, true), 130, false, 135, false},
		{"with news", 132, see(gotOK), 132, false, 137, false},
		{"with news, but the list is unclear", 132, see(gotOK), 132, true, 135, false},
		{"it is lost", 133, see(gotNothing), 133, false, 138, false},
		{"it is back", 134, see(gotAnswer), 134, false, 135, true},
		{"it is up again", 135, probe(false, false), 135, false, 140, false},
		{"the first failure after a success", 200, probe(true, true), 200, false, 201, true},
		{"the second", 201, probe(true, true), 201, false, 206, true},
	} {
		c.do(at(c.now))
		if next, probed := h.next(at(c.news), c.unclear); !next.Equal(at(c.next)) || probed != c.probed {
			t.Errorf("%s: want %v, a probe %v, got %v, %v", c.name, c.next, c.probed, next.Sub(at(0)).Seconds(), probed)
		}
	}
}
