//go:build real

package ledger_test

import (
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// TestOneLedger makes each run once and compares every output's counts of its requests.
func TestOneLedger(t *testing.T) {
	var names []string
	for i := range runs {
		names = append(names, runs[i].name)
	}
	for i := range daemons {
		names = append(names, daemons[i].name)
	}
	listens := map[string]string{}
	var targets strings.Builder
	for _, name := range names {
		listens[name] = outside.Address(t)
		fmt.Fprintf(&targets, "      - {targets: [%q], labels: {namespace: %q}}\n", listens[name], name)
	}
	prom := outside.StartPrometheus(t, outside.PrometheusTool(t, "prometheus"), t.TempDir(), scrapes+targets.String())
	outside.Until(t, func() error { // it takes some seconds to begin
		var data struct {
			ActiveTargets []struct{ LastScrape time.Time }
		}
		if err := prom.Ask(t.Context(), "targets", nil, &data); err != nil {
			return err
		}
		scraped := 0
		for _, target := range data.ActiveTargets {
			if !target.LastScrape.IsZero() {
				scraped++
			}
		}
		if scraped < len(names) {
			return fmt.Errorf("want %d addresses scraped, got %d", len(names), scraped)
		}
		return nil
	})
	t.Run("runs", func(t *testing.T) { // the runs end before Prometheus does
		for i := range runs {
			t.Run(runs[i].name, func(t *testing.T) {
				t.Parallel()
				runs[i].judge(t, prom, listens[runs[i].name])
			})
		}
		for i := range daemons {
			t.Run(daemons[i].name, func(t *testing.T) {
				t.Parallel()
				daemons[i].judge(t, prom, listens[daemons[i].name])
			})
		}
		t.Run("two shards", shards)
		t.Run("a sweep", sweep)
	})
}

func (c *run) judge(t *testing.T, prom outside.Prometheus, listen string) {
	t.Helper()
	dir := t.TempDir()
	e := startEngine(t, dir, c.engine...)
	end := c.begin(t, e, dir, listen)
	page := onPage(last(t, "http://"+listen, c.expected), "run")
	settled := scrapedAgain(t, prom, c.name)
	m := end()
	e.Term(t)

	all := measured(requests(t, filepath.Join(dir, records)))
	want := c.account(t, all, page)
	c.exited(t, m, want)
	if n := received(t, e); n != len(all) {
		t.Errorf("the engine received %d requests, the records have %d", n, len(all))
	}
	if (c.drops == "") != (want["dropped "+c.drops] == 0) {
		t.Errorf("want %d requests and drops for %q, got %v", c.expected, c.drops, want)
	}
	agree := func(output string, got account, rounds float64) {
		t.Helper()
		for _, name := range differs(want, got, rounds) {
			t.Errorf("%s: %s: want %v, got %v", output, name, want[name], got[name])
		}
	}
	agree("/metrics", page, 0)
	agree("Prometheus", inPrometheus(t, prom, c.name, settled), 0)
	agree("records", lastLedger(t, read(t, dir, records)), 0)
	agree("profile_export_aiperf.json", inJSON(t, read(t, dir, artifacts, "profile_export_aiperf.json")), 0)
	for _, name := range []string{artifacts, records} {
		said := reported(t, filepath.Join(dir, name))
		if len(said) != 1 {
			t.Errorf("report of %s: want one run, got %d", name, len(said))
			continue
		}
		agree("report --json of "+name, said[0], 1e-12)
	}
	if !c.atOnce {
		c.rules(t, prom, settled, want)
	}
	c.texts(t, dir, m, want)
	recomputed(t, dir, e)
}

// recomputed checks that an independent program computes the ledger and the figures from the records, the engine's
// log and the export.
func recomputed(t *testing.T, dir string, e engine) {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), "python3", "../report/recompute.py", filepath.Join(dir, artifacts),
		"--records", filepath.Join(dir, records), "--engine", e.log).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		outside.Missing(t, err, "")
	}
	if err != nil {
		t.Errorf("%v\n%s", err, said)
	}
}

// scrapedAgain waits until Prometheus has scraped a process once more, and returns the time of that scrape.
func scrapedAgain(t *testing.T, p outside.Prometheus, name string) (at time.Time) {
	t.Helper()
	since := time.Now().Add(10 * time.Millisecond) // Prometheus moves a timestamp by up to 2 ms
	outside.Until(t, func() error {
		scraped := p.Number(t, `timestamp(replayd_requests_expected_total{namespace="`+name+`"})`, time.Now())
		if at = time.UnixMilli(int64(math.Round(scraped * 1000))); !(scraped > 0) || at.Before(since) {
			return fmt.Errorf("want a scrape since %v, got the last at %v s", since, scraped)
		}
		return nil
	})
	return at
}

// last returns the page of a run after all its requests have ended.
func last(t *testing.T, url string, requests int) outside.Page {
	t.Helper()
	return outside.See(t, url, "all requests have ended", func(p outside.Page) bool {
		finished, dropped := p.Ended("run")
		return finished+dropped >= float64(requests)
	})
}

// measured removes the warm-up.
func measured(all []request) []request {
	return slices.DeleteFunc(all, func(r request) bool { return r.Phase == "warmup" })
}
