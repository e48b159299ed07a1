//go:build engines

package engines_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"replayd/test/outside"
)

// The guard opens when the engine's queue is at the limit and closes after the queue was below it for a while, again
// and again. The queue never exceeds the limit plus the lanes. The engine serves 20 requests a second, and half of each
// loop sends 60.
func TestGuard(t *testing.T) {
	const limit, lanes, interval = 4, 12, time.Second
	dir, engine := t.TempDir(), outside.Address(t)
	sim(t, dir, engine, "--slots", "4", "--ttft", "60ms", "--itl", "20ms", "--batch-cost", "0")
	path, _ := trace(t, dir, 60, 6*time.Second)
	_, url := serve(t, dir, fmt.Sprintf(`
targets: [{name: sim, url: "http://%s", metrics: {interval: %v}}]
workloads:
  - {name: w, trace: {path: %s}, repeat: {every: 12s, align: start}, lanes: %d, max_wait: 1s, guard: {waiting: %d, resume_after: 2s}}
`, engine, interval, path, lanes, limit))

	most, opened, closed, open := 0.0, 0, 0, false
	var reached time.Time // when the queue was first seen at the limit with the guard closed
	var lags []time.Duration
	for end := time.Now().Add(40 * time.Second); time.Now().Before(end); <-time.After(25 * time.Millisecond) {
		waiting := scrape(t, "http://"+engine).Sum("vllm:num_requests_waiting")
		most = max(most, waiting)
		p := scrape(t, url)
		if faults := p.Balance(); len(faults) > 0 {
			t.Errorf("balance: %q", faults)
		}
		now := p.Sum("replayd_guard_open", "w", "waiting") == 1
		switch {
		case now && !open:
			opened++
			if !reached.IsZero() {
				lags = append(lags, time.Since(reached))
			}
		case !now && open:
			closed++
			reached = time.Time{}
		case !now && waiting >= limit && reached.IsZero():
			reached = time.Now()
		}
		open = now
	}
	p := scrape(t, url)
	finished := p.Sum("replayd_requests_total", "w")
	dropped := p.Sum("replayd_requests_dropped_total", "w", "guard")
	slices.Sort(lags)
	t.Logf("opened %d times, closed %d; %v after the queue was at %d (scrapes every %v); at most %.0f waited; %.0f finished, %.0f dropped",
		opened, closed, lags, limit, interval, most, finished, dropped)
	if opened < 2 || closed < 2 {
		t.Errorf("want the guard to open and to close in each loop, got %d and %d times", opened, closed)
	}
	if most > limit+lanes {
		t.Errorf("want at most limit + lanes = %d to wait in the engine, got %.0f", limit+lanes, most)
	}
	if finished == 0 || dropped == 0 || p.Sum("replayd_requests_total", "w", "ok") != finished {
		t.Errorf("want requests that ended ok and some that were held back, got %.0f and %.0f", finished, dropped)
	}
}

// An engine that is killed and restarted several times in a run loses no row: each row is in the record file, or
// counted as dropped with its reason. Its metrics return each time, and each restart is counted.
func TestEngineRestarts(t *testing.T) {
	restarts := outside.Knob(t, "ENGINES_RESTARTS", 4, strconv.Atoi)
	dir, engine := t.TempDir(), outside.Address(t)
	process := sim(t, dir, engine)
	path, rows := trace(t, dir, 40, time.Duration(restarts)*6*time.Second)
	records := filepath.Join(dir, "records.jsonl")
	daemon, url := serve(t, dir, fmt.Sprintf(`
targets: [{name: sim, url: "http://%s", metrics: {interval: 1s}}]
workloads: [{name: w, trace: {path: %s}, repeat: {mode: once}, guard: {waiting: 50, on_missing_metrics: pause, resume_after: 0s}}]
records: {path: %s}
`, engine, path, records))
	up := func(want float64) func() error {
		return func() error {
			p := scrape(t, url)
			if faults := p.Balance(); len(faults) > 0 {
				t.Errorf("balance: %q", faults)
			}
			if got := p.Sum("replayd_engine_up", "sim"); got != want {
				return fmt.Errorf("want replayd_engine_up %v, got %v", want, got)
			}
			return nil
		}
	}
	outside.Until(t, up(1))
	for i := range restarts {
		process.Signal(t, syscall.SIGKILL)
		process.Wait(t)
		outside.Until(t, up(0))
		if i%2 == 1 { // until the page only shows that the engine is down
			outside.Until(t, func() error {
				if p := scrape(t, url); p["replayd_engine_requests_running"] != nil || p.Sum("replayd_guard_open", "w", "missing_metrics") != 1 {
					return fmt.Errorf("want no figures of an engine that is lost, and a guard that says blind")
				}
				return nil
			})
		}
		process = sim(t, dir, engine)
		outside.Until(t, up(1))
	}
	var last outside.Page
	outside.Until(t, func() error {
		last = scrape(t, url)
		finished, dropped := last.Ended("w")
		if int(finished+dropped) != rows {
			return fmt.Errorf("want %d rows accounted for, got %.0f finished and %.0f dropped", rows, finished, dropped)
		}
		return nil
	})
	if got := last.Sum("replayd_engine_restarts_total", "sim"); int(got) != restarts {
		t.Errorf("want %d restarts counted, got %.0f", restarts, got)
	}
	daemon.Term(t)
	seen := map[string]bool{}
	type record struct {
		ID string `json:"id"`
	}
	lines, _ := outside.Lines[record](t, records)
	for _, r := range lines {
		if seen[r.ID] {
			t.Errorf("%s is recorded twice", r.ID)
		}
		seen[r.ID] = true
	}
	finished, dropped := last.Ended("w")
	if len(lines) != int(finished) {
		t.Errorf("want a record of each of %.0f finished, got %d", finished, len(lines))
	}
	t.Logf("%d restarts, %d rows: %.0f finished (%.0f ok), %.0f dropped (%.0f by the guard), none lost",
		restarts, rows, finished, last.Sum("replayd_requests_total", "w", "ok"), dropped, last.Sum("replayd_requests_dropped_total", "w", "guard"))
}
