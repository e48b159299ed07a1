//go:build real

package ledger_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/test/outside"
)

// A daemon is a workload of `replayd serve` with a drop reason that a run does not have.
type daemon struct {
	run
	target   string                                           // further keys of the target
	workload string                                           // further keys of the workload
	does     func(t *testing.T, d *daemon, at daemonOf) error // called while it plays; may be nil
}

// A daemonOf is a running daemon.
type daemonOf struct {
	process *outside.Process
	url     string
	key     string // the file with the target's key
}

var daemons = []daemon{
	{
		run: run{
			name: "budget", engine: []string{"--ttft", "20ms"}, trace: rows(40, 50*time.Millisecond, lengths(20, 3)), expected: 40, drops: "budget",
		},
		workload: "budget: {requests_per_minute: 9}",
	},
	{
		run: run{
			name: "guard", engine: []string{"--ttft", "20ms", "--fault-500", "1"}, trace: rows(80, 50*time.Millisecond, lengths(20, 3)), expected: 80, drops: "guard",
		},
		workload: "guard: {error_ratio: 0.2, resume_after: 1s}",
	},
	{
		run: run{
			name: "paused", engine: []string{"--ttft", "20ms"}, trace: rows(200, 50*time.Millisecond, lengths(20, 3)), expected: 200, drops: "paused",
		},
		does: func(t *testing.T, _ *daemon, at daemonOf) error {
			outside.See(t, at.url, "a request has ended", func(p outside.Page) bool { return p.Sum("replayd_requests_total") > 10 })
			outside.Post(t, at.url+"/-/pause", http.StatusOK)
			return nil
		},
	},
	{
		run: run{
			name: "missed", engine: []string{"--ttft", "20ms"}, trace: rows(200, 50*time.Millisecond, lengths(20, 3)), expected: 200, drops: "missed",
		},
		does: func(t *testing.T, _ *daemon, at daemonOf) error {
			outside.See(t, at.url, "a request has ended", func(p outside.Page) bool { return p.Sum("replayd_requests_total") > 10 })
			at.process.Signal(t, syscall.SIGSTOP)
			timer := time.NewTimer(3 * time.Second) // of 10
			defer timer.Stop()
			<-timer.C
			at.process.Signal(t, syscall.SIGCONT)
			return nil
		},
	},
	{
		run: run{
			name: "invalid", engine: []string{"--ttft", "20ms"}, trace: rows(200, 50*time.Millisecond, lengths(20, 3)), expected: 200, drops: "invalid",
		},
		target: "http: {authorization: {type: Bearer, credentials_file: KEY}}",
		does: func(t *testing.T, _ *daemon, at daemonOf) error {
			outside.See(t, at.url, "a request has ended", func(p outside.Page) bool { return p.Sum("replayd_requests_total") > 10 })
			return os.Remove(at.key)
		},
	},
	{
		run: run{
			name: "shutdown", engine: []string{"--ttft", "3s"}, trace: rows(20, 10*time.Millisecond, lengths(20, 3)), expected: 20, drops: "shutdown",
		},
		workload: "lanes: 2\n    max_wait: 0s",
		does: func(t *testing.T, _ *daemon, at daemonOf) error {
			outside.See(t, at.url, "all rows are due", func(p outside.Page) bool { return p.Sum("replayd_requests_expected_total") == 20 })
			return nil
		},
	},
}

// judge plays the workload once and compares the page, Prometheus,
// /live, the records and a report of them with one account.
func (d *daemon) judge(t *testing.T, prom outside.Prometheus, listen string) {
	t.Helper()
	dir := t.TempDir()
	e := startEngine(t, dir, d.engine...)
	at := daemonOf{url: "http://" + listen, key: outside.Write(t, dir, "key", "secret")}
	config := outside.Write(t, dir, "replayd.yaml", fmt.Sprintf(`
web: {listen: %q}
records: {path: %q}
targets:
  - name: sim
    url: "http://%s"
    metrics: {interval: 0s}
    %s
workloads:
  - name: run
    trace: {path: %q}
    repeat: {mode: once}
    %s
`, listen, filepath.Join(dir, records), e.address, strings.ReplaceAll(d.target, "KEY", at.key),
		outside.Write(t, dir, "trace.jsonl", d.trace), d.workload))
	at.process = outside.Start(t, filepath.Join(dir, "replayd.out"), binary, "serve", "--config", config, "--web.enable-lifecycle")
	at.process.Ready(t, http.DefaultClient, at.url+"/-/ready")
	if d.does != nil {
		if err := d.does(t, d, at); err != nil {
			t.Fatal(err)
		}
	}
	said := map[string]account{}
	if d.drops != "shutdown" { // shutdown drops at the end, when there is no page any more
		said["/metrics"] = onPage(last(t, at.url, d.expected), "run")
		said["Prometheus"] = inPrometheus(t, prom, d.name, scrapedAgain(t, prom, d.name))
		said["/live"] = onLive(t, at.url, float64(d.expected))
	}
	at.process.Term(t)
	e.Term(t)
	all := requests(t, filepath.Join(dir, records))
	want := d.account(t, all, said["/metrics"])
	if n := received(t, e); n != len(all) {
		t.Errorf("the engine received %d requests, the records have %d", n, len(all))
	}
	if want["dropped "+d.drops] == 0 {
		t.Errorf("want drops for %q, got %v", d.drops, want)
	}
	said["records"] = lastLedger(t, read(t, dir, records))
	reports := reported(t, filepath.Join(dir, records))
	if len(reports) != 1 {
		t.Fatalf("report: want one run, got %d", len(reports))
	}
	said["report --json"] = reports[0]
	for output, got := range said {
		want := maps.Clone(want)
		if output == "/live" {
			for _, name := range []string{good, eligible, unjudged, judged, overall, service} {
				delete(want, name)
			}
		}
		for _, name := range differs(want, got, 1e-12) {
			t.Errorf("%s: %s: want %v, got %v", output, name, want[name], got[name])
		}
	}
}

// onLive returns the account of the only workload on the live page, which has the counts since the start and the shares
// of the last minute. The page is made once a second, so it has the last request later than /metrics.
func onLive(t *testing.T, url string, requests float64) (a account) {
	t.Helper()
	outside.Until(t, func() error {
		a = nowOnLive(t, url)
		if a[expected]-a["in flight"]-a["waiting"] < requests {
			return fmt.Errorf("/live: want %v requests ended, got %v", requests, a)
		}
		return nil
	})
	return a
}

func nowOnLive(t *testing.T, url string) account {
	t.Helper()
	_, text, err := outside.Call(t.Context(), http.DefaultClient, http.MethodGet, url+"/live/snapshot.json")
	if err != nil {
		t.Fatal(err)
	}
	var snapshot struct {
		Workloads []struct {
			Figures struct {
				Expected float64            `json:"expected"`
				InFlight float64            `json:"in_flight"`
				Waiting  float64            `json:"waiting"`
				Outcomes map[string]float64 `json:"outcomes"`
				Drops    map[string]float64 `json:"drops"`
			} `json:"figures"`
		} `json:"workloads"`
	}
	if err := json.Unmarshal(text, &snapshot); err != nil || len(snapshot.Workloads) != 1 {
		t.Fatalf("/live: %v: want one workload, got %.300s", err, text)
	}
	f := snapshot.Workloads[0].Figures
	a := account{expected: f.Expected, "in flight": f.InFlight, "waiting": f.Waiting}
	for outcome, n := range f.Outcomes {
		a[outcome] = n
	}
	for reason, n := range f.Drops {
		a["dropped "+reason] = n
	}
	return a
}
