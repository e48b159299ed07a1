// Package smoke_test builds replayd and uses it once as its users do: demo, run and serve, from the start of each to its
// end. What it judges are counts and outcomes, which no busy machine changes. Ports are chosen by the system and read
// from the logs.
package smoke_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"replayd/test/outside"
)

const anyPort = "127.0.0.1:0"

var binary string

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary)) }

// said waits until the output of a process matches, and returns the pattern's group.
func said(t *testing.T, p *outside.Process, pattern string) (group string) {
	t.Helper()
	want := regexp.MustCompile(`(?m)` + pattern)
	outside.Until(t, func() error {
		m := want.FindStringSubmatch(p.Said(t))
		if m == nil {
			return fmt.Errorf("want a line %s in its output", want)
		}
		group = m[1]
		return nil
	})
	return group
}

// sum waits until the samples of a series have the sum.
func sum(t *testing.T, url string, want float64, name string, labels ...string) {
	t.Helper()
	outside.Until(t, func() error {
		page, err := outside.Scrape(t.Context(), url)
		if err != nil {
			return err
		}
		if got := page.Sum(name, labels...); got != want {
			return fmt.Errorf("%s %q: want %v, got %v", name, labels, want, got)
		}
		return nil
	})
}

// engine starts a simulated engine and returns its URL.
func engine(t *testing.T, flags ...string) (p *outside.Process, url string) {
	t.Helper()
	p = outside.Start(t, filepath.Join(t.TempDir(), "sim.out"), binary,
		append([]string{"sim", "--web.listen-address", anyPort, "--ttft", "5ms", "--itl", "1ms"}, flags...)...)
	return p, said(t, p, `^simulated engine "sim" at (http://\S+)$`)
}

const rows = 20

func trace(t *testing.T, dir string) (path string) {
	t.Helper()
	var text strings.Builder
	for i := range rows {
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": 20, "output_length": 4}`+"\n", 10*i)
	}
	return outside.Write(t, dir, "trace.jsonl", text.String())
}

// The demo shows requests that are done and their latency, has them on its page, and ends with exit code 0 at Ctrl-C.
func TestDemo(t *testing.T) {
	p := outside.Start(t, filepath.Join(t.TempDir(), "demo.out"), binary, "demo", "--web.listen-address", anyPort)
	url := said(t, p, `^ *metrics of replayd +(http://\S+)/metrics$`)
	outside.Until(t, func() error {
		page, err := outside.Scrape(t.Context(), url)
		if err == nil && page.Sum("replayd_requests_total", "ok") == 0 {
			err = fmt.Errorf("%s: want requests that are ok", url)
		}
		return err
	})
	said(t, p, `^ +\d+s  ([1-9]\d*) done  \d+\.\d/s  \d+ in flight  0 failed  TTFT p50 +[1-9]`)
	p.Signal(t, syscall.SIGINT)
	p.Wait(t)
	if p.Err != nil {
		t.Errorf("want exit code 0, got %v", p.Err)
	}
}

// The engine's log, the report and the counter have the same requests.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "requests.jsonl")
	sim, url := engine(t, "--log", log)
	p := outside.Start(t, filepath.Join(dir, "run.out"), binary, "run", trace(t, dir), "--url", url,
		"--web.listen-address", anyPort, "--hold", "10m")
	page := said(t, p, `msg="holding: .*" url=(http://\S+)/metrics `)
	if got := said(t, p, `^ok +(\d+)$`); got != strconv.Itoa(rows) {
		t.Errorf("report: want %d requests ok, got %s", rows, got)
	}
	sum(t, page, rows, "replayd_requests_total")
	sum(t, page, rows, "replayd_requests_total", "ok")
	p.Term(t)
	served := 0
	for _, r := range outside.EngineLog[struct{ ID, Outcome string }](t, sim, log) {
		if strings.HasPrefix(r.ID, "run/") && r.Outcome == "ok" {
			served++
		}
	}
	if served != rows {
		t.Errorf("the engine's log: want %d requests ok, got %d", rows, served)
	}
}

const config = `
targets: [{name: sim, url: %q}]
workloads: [{name: steady, trace: {path: %q}, repeat: {align: start, every: 1s}, slo: {ttft: %s}}]
`

// The daemon can be scraped, takes a new value at a reload, goes on with its load, and ends with exit code 0 at SIGTERM.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	_, url := engine(t)
	path, played := filepath.Join(dir, "replayd.yaml"), trace(t, dir)
	outside.Put(t, path, fmt.Sprintf(config, url, played, "500ms"))
	p := outside.Start(t, filepath.Join(dir, "serve.out"), binary, "serve", "--config", path, "--web.listen-address", anyPort)
	daemon := "http://" + said(t, p, `msg="Listening on" address=(\S+)`)
	p.Ready(t, http.DefaultClient, daemon+"/-/ready")
	sum(t, daemon, 0.5, "replayd_slo_threshold_seconds", "ttft")

	outside.Put(t, path, fmt.Sprintf(config, url, played, "700ms"))
	p.Signal(t, syscall.SIGHUP)
	sum(t, daemon, 0.7, "replayd_slo_threshold_seconds", "ttft")
	sum(t, daemon, 1, "replayd_config_last_reload_successful")
	now, err := outside.Scrape(t.Context(), daemon)
	if err != nil {
		t.Fatal(err)
	}
	// The replay from before the reload still sends the rows up to the handover, about a loop.
	most := now.Sum("replayd_requests_total", "ok") + 3*rows
	outside.Until(t, func() error {
		now, err := outside.Scrape(t.Context(), daemon)
		if err == nil && now.Sum("replayd_requests_total", "ok") <= most {
			err = fmt.Errorf("want more than %v requests after the reload", most)
		}
		return err
	})
	p.Term(t)
	if said := p.Said(t); strings.Contains(said, "level=ERROR") {
		t.Errorf("want no errors in its log, got %s", said)
	}
}
