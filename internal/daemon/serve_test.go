package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"replayd/internal/config"
	"replayd/internal/measure"
	"replayd/internal/sim"
	"replayd/test/machine"
	"replayd/test/outside"
)

// Two workloads on one target play their traces once. The daemon then goes on until it is stopped.
func TestServe(t *testing.T) {
	e, url := engine(t, func(*sim.Options) {})
	path := write(t, "trace.jsonl", rows(20))
	all, part := each("all", "sim", path), each("part", "sim", path)
	all.SLO.Bounds = config.Bounds{"e2e": "1h"}
	part.Trace.MaxInput, part.SLO.Bounds = 30, config.Bounds{"ttft": "1ns"}
	part.Prompt.Seed = 7
	c := conf([]config.Target{target("sim", url)}, all, part)
	c.Records.Path, c.Web.Listen = filepath.Join(t.TempDir(), "records.jsonl"), freeAddress(t)
	d := start(t, c)

	count := func(name, labels, workload string, n int) string {
		return fmt.Sprintf(`%s{%s,target="sim",workload="%s"} %d`, name, labels, workload, n)
	}
	// 20 rows of 20 to 39 tokens have 590 tokens; the 11 rows of 20 to 30 have 275.
	d.see(
		count("replayd_requests_total", `model="sim",outcome="ok"`, "all", 20),
		count("replayd_requests_total", `model="sim",outcome="ok"`, "part", 11),
		count("replayd_requests_total", `model="sim",outcome="connect"`, "part", 0),
		count("replayd_requests_expected_total", `model="sim"`, "all", 20),
		count("replayd_requests_expected_total", `model="sim"`, "part", 11),
		count("replayd_requests_dropped_total", `model="sim",reason="filtered"`, "all", 0),
		count("replayd_requests_dropped_total", `model="sim",reason="filtered"`, "part", 9),
		count("replayd_requests_in_flight", `model="sim"`, "all", 0),
		count("replayd_requests_waiting", `model="sim"`, "all", 0),
		count("replayd_goodput_requests_total", `model="sim"`, "all", 20),
		count("replayd_goodput_requests_total", `model="sim"`, "part", 0),
		count("replayd_slo_violations_total", `model="sim",slo="ttft"`, "part", 11),
		count("replayd_tokens_total", `kind="prompt",model="sim"`, "all", 590),
		count("replayd_tokens_total", `kind="output",model="sim"`, "all", 80),
		count("replayd_tokens_total", `kind="prompt",model="sim"`, "part", 275),
		count("replayd_ttft_seconds_count", `model="sim"`, "all", 20),
		count("replayd_loops_completed_total", `model="sim"`, "all", 1),
		`replayd_target_info{api="chat",model="sim",target="sim",url="`+url+`/v1"} 1`,
		`replayd_config_last_reload_successful 1`,
	)
	seen := map[string]bool{}
	for range 31 {
		r := d.next()
		if r.Outcome != measure.OK || seen[r.ID] {
			t.Errorf("%s: want ok, once, got %s: %s", r.ID, r.Outcome, r.Error)
		}
		seen[r.ID] = true
	}
	select {
	case err := <-d.ended:
		t.Fatalf("it ended with the plans: %v", err)
	default:
	}
	// The 32nd request is the probe for the tokens of the template.
	outside.Until(t, func() error { // it counts after its last byte
		if all, ok := e.counts(); all != 32 || ok != 32 {
			return fmt.Errorf("the engine: want 32 requests, all ok, got %d of %d", ok, all)
		}
		return nil
	})
	d.stop()
	d.end()
	records, err := os.ReadFile(c.Records.Path)
	ledgers := strings.Count(string(records), `{"ledger":`)
	if err != nil || strings.Count(string(records), "\n") != 31+ledgers || strings.Count(string(records), `"outcome":"ok"`) != 31 {
		t.Errorf("records: want 31 of outcome ok, got %v\n%s", err, records)
	}
	for i, want := range []string{
		`"workload":"all","target":"sim","shard":"0/1","slo":"e2e:1h0m0s","expected":20,"in_flight":0,"waiting":0,"outcomes":{"ok":20},"dropped":{},"filtered":0,"good":20,"eligible":20}}`,
		`"workload":"part","target":"sim","shard":"0/1","slo":"ttft:1ns","expected":11,"in_flight":0,"waiting":0,"outcomes":{"ok":11},"dropped":{},"filtered":9,"good":0,"eligible":11}}`,
	} {
		if lines := strings.Split(string(records), "\n"); !strings.HasSuffix(lines[len(lines)-3+i], want) {
			t.Errorf("ledger\n got %s\nwant …%s", lines[len(lines)-3+i], want)
		}
	}
	if _, err := net.Dial("tcp", c.Web.Listen); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("want the address free, got %v", err)
	}
}

// If the records file cannot be written, a series and a log line show it. The stop is clean.
func TestServeWithoutRecords(t *testing.T) {
	_, url := engine(t, func(*sim.Options) {})
	c := conf([]config.Target{target("sim", url)}, each("w", "sim", write(t, "trace.jsonl", rows(3))))
	c.Records.Path = filepath.Join(t.TempDir(), "no such folder", "records.jsonl")
	d := start(t, c)
	d.see(`replayd_requests_total{model="sim",outcome="ok",target="sim",workload="w"} 3`, `replayd_record_errors_total 3`)
	d.stop()
	d.end()
}

// An unreachable target is an outcome of the requests and never ends the daemon.
func TestServeWithoutTarget(t *testing.T) {
	w := each("w", "gone", write(t, "trace.jsonl", rows(3)))
	d := start(t, conf([]config.Target{target("gone", nobody)}, w))
	d.see(
		`replayd_requests_total{model="",outcome="connect",target="gone",workload="w"} 3`,
		`replayd_requests_expected_total{model="",target="gone",workload="w"} 3`,
		`replayd_slo_violations_total{model="",slo="error",target="gone",workload="w"} 3`,
	)
	if got := fetch(t, d.url+"/-/ready"); got != "replayd is ready.\n" {
		t.Errorf("readiness must not depend on a target, got %s", got)
	}
	d.stop()
	d.end()
}

// gated runs two rows on one lane: the first is in flight, the second waits.
func gated(t *testing.T) (*daemon, *gate) {
	t.Helper()
	g := newGate(t)
	w := once("w", "gate", write(t, "trace.jsonl", rows(2)))
	w.Lanes, w.MaxWait, w.Prompt.Calibrate = 1, 0, false
	c := conf([]config.Target{target("gate", g.url)}, w)
	c.Web.EnableLifecycle, c.Drain = true, time.Hour
	d := start(t, c)
	if id := <-g.came; id != "w/0/0" {
		t.Errorf("want w/0/0 first, got %s", id)
	}
	d.see(
		`replayd_requests_in_flight{model="gate",target="gate",workload="w"} 1`,
		`replayd_requests_waiting{model="gate",target="gate",workload="w"} 1`,
	)
	return d, g
}

// A stop drops waiting requests and lets requests in flight end. The page shows it.
func TestServeDrains(t *testing.T) {
	d, g := gated(t)
	d.stop()
	d.see(
		`replayd_requests_dropped_total{model="gate",reason="shutdown",target="gate",workload="w"} 1`,
		`replayd_requests_in_flight{model="gate",target="gate",workload="w"} 1`,
		`replayd_requests_waiting{model="gate",target="gate",workload="w"} 0`,
	)
	close(g.open)
	if r := d.next(); r.Outcome != measure.OK || len(r.Timeline.Chunks) != 2 {
		t.Errorf("want ok, got %s: %s", r.Outcome, r.Error)
	}
	d.end()
}

func TestServeStopsHard(t *testing.T) {
	d, _ := gated(t)
	d.hard() // without a stop before
	if r := d.next(); r.Outcome != measure.Aborted || r.Status != http.StatusOK {
		t.Errorf("want aborted, got %s: %s", r.Outcome, r.Error)
	}
	d.end()
}

// While it reads a trace, the process is healthy but not ready. A stop ends the reading.
func TestStoppedWhileItReads(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		machine.Lacks(t, "named pipes", err)
	}
	c := conf([]config.Target{target("t", nobody)}, once("w", "t", pipe))
	c.Web.Listen = freeAddress(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	started := func(*Generation) { t.Error("want it stopped before it started") }
	o := Once{Options: (&heard{}).options(c), Serve: true, Started: started}
	o.Stdin = strings.NewReader("") // a pipe may be a trace only if Stdin is set
	go func() { ended <- o.Run(ctx, t.Context()) }()
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // returns when Build has opened the other end
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for path, want := range map[string]int{"/-/healthy": 200, "/-/ready": 503, "/metrics": 503} {
		resp, err := http.Get("http://" + c.Web.Listen + path)
		if err != nil {
			t.Fatal(err)
		}
		if resp.Body.Close(); resp.StatusCode != want {
			t.Errorf("%s: want %d, got %s", path, want, resp.Status)
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("want it cancelled, got %v", err)
	}
	// A stopped daemon ends cleanly, whatever its files hold.
	if err := Serve(ctx, t.Context(), ServeOptions{Config: c, Log: slog.New(slog.DiscardHandler)}); err != nil {
		t.Errorf("want a clean end, got %v", err)
	}
}

func TestServeErrors(t *testing.T) {
	good := conf([]config.Target{target("t", nobody)}, once("w", "t", write(t, "good.jsonl", rows(1))))
	var build *ErrBuild

	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c := good
	c.Web.Listen = l.Addr().String()
	err = Serve(t.Context(), t.Context(), ServeOptions{Config: c, Log: slog.New(slog.DiscardHandler)})
	if want := "web.listen: listen tcp " + c.Web.Listen + ": bind: address already in use"; err == nil || err.Error() != want || errors.As(err, &build) {
		t.Errorf("want %s, no fault of the configuration, got %v", want, err)
	}

	c = good
	c.Web.ConfigFile = write(t, "web.yaml", "users: {}")
	err = Serve(t.Context(), t.Context(), ServeOptions{Config: c, Log: slog.New(slog.DiscardHandler)})
	if !errors.As(err, &build) || !strings.Contains(err.Error(), "field users not found") {
		t.Errorf("want the fault of the web configuration, got %v", err)
	}

	// The listen address is free again after a failed start.
	c = good
	c.Web.Listen = freeAddress(t)
	c.Workloads = []config.Workload{once("w", "t", write(t, "empty.jsonl", ""))}
	for range 2 {
		err = Serve(t.Context(), t.Context(), ServeOptions{Config: c, Log: slog.New(slog.DiscardHandler)})
		if !errors.As(err, &build) || !strings.HasSuffix(err.Error(), "empty.jsonl: want at least one row, got none") {
			t.Errorf("want the fault of the trace, got %v", err)
		}
	}
}
