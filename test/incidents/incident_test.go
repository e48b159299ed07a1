//go:build real

package incidents_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// An incident is made, seen, ended and over.
type incident struct {
	name       string
	begin, end func(t *testing.T)
	// The alerts that fire and resolve, and those that may fire too, each with the reason beside it. Any other that begins to fire
	// meanwhile fails the test, also while another mutes it.
	must, may []expected
}

// An expected alert is the name of one, less its beginning, and labels that it has.
type expected struct {
	alert  string
	labels map[string]string
	muted  bool // by another, at some time: Alertmanager has it and tells nobody
}

func (e expected) is(a alert) bool {
	for label, value := range e.labels {
		if a.labels[label] != value {
			return false
		}
	}
	return a.labels["alertname"] == "Replayd"+e.alert
}

// The bounds end a test that fails. How long it takes is shown, not judged.
const (
	least      = 30 * time.Second // an incident lasts so long, also when all has fired: time for what should not
	after      = 20 * time.Second // and is watched for so long when it is over: a regression's window and its "for"
	firesIn    = 60 * time.Second
	resolvesIn = 60 * time.Second
)

// A line of the table is what became of an alert in an incident.
type line struct {
	incident     string
	begun, ended time.Time
	alert
	wanted string
}

// run makes an incident and gives what was seen.
func (w *world) run(t *testing.T, in incident) (lines []line) {
	t.Helper()
	old := map[string]bool{} // what fires already: slow alerts of the incident before may go on
	for _, a := range w.watch.seen(t, time.Now()) {
		old[a.id()] = true
	}
	begun := time.Now()
	seen := func() (all []alert) {
		return slices.DeleteFunc(w.watch.seen(t, begun), func(a alert) bool { return old[a.id()] })
	}
	in.begin(t)
	wait(t, firesIn, func() error {
		for _, e := range in.must {
			if !slices.ContainsFunc(seen(), func(a alert) bool { return e.is(a) && (!e.muted || !a.muted.IsZero()) }) {
				return fmt.Errorf("%s: want it to fire: %+v", in.name, e)
			}
		}
		if d := time.Since(begun); d < least {
			return fmt.Errorf("%s: want it to last %v, got %v", in.name, least, d)
		}
		return nil
	})
	in.end(t)
	ended := time.Now()
	wait(t, resolvesIn, func() error {
		for _, a := range seen() {
			if a.until.IsZero() && slices.ContainsFunc(in.must, func(e expected) bool { return e.is(a) }) {
				return fmt.Errorf("%s: want it to resolve: %s", in.name, a.name())
			}
		}
		if d := time.Since(ended); d < after {
			return fmt.Errorf("%s: want to watch it for %v more, got %v", in.name, after, d)
		}
		return nil
	})
	for _, a := range seen() {
		l := line{incident: in.name, begun: begun, ended: ended, alert: a}
		is := func(e expected) bool { return e.is(a) }
		switch {
		case slices.ContainsFunc(in.must, is):
			l.wanted = "must"
		case slices.ContainsFunc(in.may, is):
			l.wanted = "may"
		default:
			l.wanted = "never"
			t.Errorf("%s: want it quiet: %s fired after %.1f s", in.name, a.name(), a.since.Sub(begun).Seconds())
		}
		for _, fault := range a.words() {
			t.Error(fault)
		}
		t.Logf("%s: %s", in.name, a.annotations["summary"])
		lines = append(lines, l)
	}
	return lines
}

// wait asks as often as the watch does, until there is no error, and tells the last one after a time.
func wait(t *testing.T, within time.Duration, come func() error) {
	t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	deadline := time.Now().Add(within)
	for err := come(); err != nil; err = come() {
		if time.Now().After(deadline) {
			t.Errorf("not within %v: %v", within, err) // the table tells more
			return
		}
		<-tick.C
	}
}

// table shows the lines, with the seconds from the beginning or the end of the incident.
func table(t *testing.T, lines []line) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%-16s %-64s %-6s %7s %7s %10s\n", "incident", "alert", "wanted", "fires", "muted", "resolves")
	for _, l := range lines {
		at := func(at, from time.Time) string {
			if at.IsZero() {
				return "-"
			}
			return fmt.Sprintf("%+.1f", at.Sub(from).Seconds())
		}
		fmt.Fprintf(&b, "%-16s %-64s %-6s %7s %7s %10s\n",
			l.incident, l.name(), l.wanted, at(l.since, l.begun), at(l.muted, l.begun), at(l.until, l.ended))
	}
	t.Logf("seconds from the beginning of an incident, and to resolve from its end; a second is a minute with the rules as they are\n%s", &b)
}
