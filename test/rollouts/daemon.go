// Package rollouts plays replayd's daemon for the tests of the files in deploy/ that other tools read its verdict with, and
// starts a real Prometheus that scrapes it. It is a module of its own, of the standard library alone: the tools' libraries
// need older versions of what the product needs.
package rollouts

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// The verdicts of a comparison.
const (
	Pass      = "pass"
	Fail      = "fail"
	Undecided = "undecided"
)

// A Daemon serves the series of comparisons, and restarts them as replayd does with web.enable_lifecycle.
type Daemon struct {
	URL string

	mu          sync.Mutex
	comparisons map[string]*comparison
}

type comparison struct {
	verdict  string
	epoch    time.Time
	late     time.Duration // its samples carry a time that is so long ago
	then     string        // the verdict after a restart
	version  string        // that the evidence is about
	restarts int
	calls    int
	deaf     bool // it cannot be restarted
}

// StartDaemon serves until the test ends.
func StartDaemon(t *testing.T) *Daemon {
	t.Helper()
	d := &Daemon{comparisons: map[string]*comparison{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", d.page)
	mux.HandleFunc("POST /-/comparisons/{name}/restart", d.restart)
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	d.URL = s.URL
	return d
}

// Play shows a comparison whose epoch began 25 hours ago, about no version, and which has another verdict once it is
// restarted.
func (d *Daemon) Play(name, verdict, then string) {
	d.change(name, func(c *comparison) {
		c.verdict, c.then, c.version, c.epoch = verdict, then, "", time.Now().Add(-25*time.Hour)
	})
}

// Delay gives the samples of a comparison times in the past, as a Prometheus has them that has stopped scraping.
func (d *Daemon) Delay(name string, by time.Duration) {
	d.change(name, func(c *comparison) { c.late = by })
}

// Refuse makes restarts fail, as without web.enable_lifecycle.
func (d *Daemon) Refuse(name string) { d.change(name, func(c *comparison) { c.deaf = true }) }

// Forget restarts nothing, and says that it did: what a daemon does that cannot keep its state.
func (d *Daemon) Forget(name string) {
	d.change(name, func(c *comparison) { c.then = "" })
}

// Restarts is how often a comparison began anew.
func (d *Daemon) Restarts(name string) (n int) {
	d.change(name, func(c *comparison) { n = c.restarts })
	return n
}

// Calls is how often a comparison was asked to: an epoch about a version continues with each further call.
func (d *Daemon) Calls(name string) (n int) {
	d.change(name, func(c *comparison) { n = c.calls })
	return n
}

func (d *Daemon) change(name string, change func(*comparison)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.comparisons[name]
	if c == nil {
		c = &comparison{verdict: Undecided, then: Undecided, epoch: time.Now()}
		d.comparisons[name] = c
	}
	change(c)
}

func (d *Daemon) restart(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c := d.comparisons[r.PathValue("name")]
	version, err := versionOf(r)
	switch {
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case c == nil:
		http.Error(w, "no such comparison", http.StatusNotFound)
	case c.deaf:
		http.Error(w, "not enabled", http.StatusForbidden)
	case version != "" && version == c.version:
		c.calls++
		fmt.Fprintln(w, "continues")
	default:
		c.calls++
		c.restarts++
		if c.then != "" {
			c.verdict, c.version, c.epoch = c.then, version, time.Now()
		}
		fmt.Fprintln(w, "restarted")
	}
}

// versionOf returns the version that a restart names.
func versionOf(r *http.Request) (version string, err error) {
	query := r.URL.Query()
	key := query.Get("version_key")
	if key == "" {
		return query.Get("version"), nil
	}
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return "", err
	}
	version, _ = body[key].(string)
	if version == "" {
		return "", fmt.Errorf("want text at the key %q, got %v", key, body)
	}
	return version, nil
}

// page is the part of /metrics that tells of comparisons. In the text format a sample may carry its time:
// https://prometheus.io/docs/instrumenting/exposition_formats/#comments-help-text-and-type-information
func (d *Daemon) page(w http.ResponseWriter, _ *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	var verdicts, epochs, versions strings.Builder
	for _, name := range slices.Sorted(maps.Keys(d.comparisons)) {
		c := d.comparisons[name]
		at := ""
		if c.late > 0 {
			at = fmt.Sprint(" ", time.Now().Add(-c.late).UnixMilli())
		}
		for _, verdict := range []string{Fail, Pass, Undecided} {
			value := "0"
			if c.verdict == verdict {
				value = "1"
			}
			fmt.Fprintf(&verdicts, "replayd_comparison_verdict{comparison=%q,verdict=%q} %s%s\n", name, verdict, value, at)
		}
		fmt.Fprintf(&epochs, "replayd_comparison_epoch_timestamp_seconds{comparison=%q} %.3f%s\n", name, float64(c.epoch.UnixMilli())/1000, at)
		fmt.Fprintf(&versions, "replayd_comparison_version_info{comparison=%q,version=%q} 1%s\n", name, c.version, at)
	}
	for _, family := range []struct{ name, lines string }{
		{"verdict", verdicts.String()},
		{"epoch_timestamp_seconds", epochs.String()},
		{"version_info", versions.String()},
	} {
		fmt.Fprintf(w, "# TYPE replayd_comparison_%s gauge\n%s", family.name, family.lines)
	}
}
