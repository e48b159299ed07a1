//go:build real

package incidents_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// An incident is started, observed, ended and resolved.
type incident struct {
	name       string
	begin, end func(t *testing.T)
	// The alerts that must fire and resolve, and those that may fire, each with its reason. Any other alert that begins
	// to fire meanwhile fails the test, even if it is muted.
	must, may []expected
}

// An expected alert is an alert name without its prefix, and labels that the alert has.
type expected struct {
	alert  string
	labels map[string]string
	muted  bool // muted by another alert at some time: Alertmanager has it and notifies nobody
}

func (e expected) is(a alert) bool {
	for label, value := range e.labels {
		if a.labels[label] != value {
			return false
		}
	}
	return a.labels["alertname"] == "Replayd"+e.alert
}

// Limits that end a failing test. The real durations are shown and not judged.
const (
	least      = 30 * time.Second // minimum length of an incident, even if all alerts have fired: time for unexpected ones
	after      = 20 * time.Second // time to watch after the end: the window of a regression and its "for"
	firesIn    = 60 * time.Second
	resolvesIn = 60 * time.Second
)

// A line of the table is the course of one alert in an incident.
type line struct {
	incident     string
	begun, ended time.Time
	alert
	wanted string
}

// run makes an incident and returns the alerts seen.
func (w *world) run(t *testing.T, in incident) (lines []line) {
	t.Helper()
	old := map[string]bool{} // alerts that fire already: slow alerts of the incident before may continue
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

// wait polls until there is no error, and reports the last error after within.
func wait(t *testing.T, within time.Duration, come func() error) {
	t.Helper()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	deadline := time.Now().Add(within)
	for err := come(); err != nil; err = come() {
		if time.Now().After(deadline) {
			t.Errorf("not within %v: %v", within, err) // the table has details
			return
		}
		<-tick.C
	}
}

// table prints the lines, with seconds since the start or the end of the incident.
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
