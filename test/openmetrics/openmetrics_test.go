//go:build prometheus

// Package openmetrics_test gives the pages of each mode to client_python's strict parser of OpenMetrics: `make suite
// NAME=test-prometheus`. Prometheus' own parser takes pages that stricter ones refuse.
package openmetrics_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"replayd/test/outside"
)

// binary is replayd, built once.
var binary string

func TestMain(m *testing.M) {
	os.Exit(outside.Main(m, &binary))
}

// start runs a program until the test ends, and waits until a page of it answers.
func start(t *testing.T, dir, name, ready string, args ...string) {
	t.Helper()
	outside.Start(t, filepath.Join(dir, name+".out"), binary, args...).Ready(t, http.DefaultClient, ready)
}

// page fetches a page in OpenMetrics until it has all of some texts.
func page(t *testing.T, url string, texts ...string) string {
	t.Helper()
	var page string
	outside.Until(t, func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return err
		}
		page = string(body)
		for _, text := range texts {
			if !strings.Contains(page, text) {
				return fmt.Errorf("%s: want %s", url, text)
			}
		}
		return nil
	})
	return page
}

// parse returns the number of samples that the parser finds.
func parse(t *testing.T, python, page string) (samples int, err error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), python, "parse.py")
	c.Stdin = strings.NewReader(page)
	var told bytes.Buffer
	c.Stderr = &told
	out, err := c.Output()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, told.String())
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

// Series of all kinds are on the pages: of a comparison, sessions, a guard, engines, a router and GPUs, with exemplars whose ids are longer
// than an exemplar has room for.
func TestStrictParser(t *testing.T) {
	python := outside.Install(t)
	dir := t.TempDir()
	router := httptest.NewServer(http.FileServer(http.Dir("../../internal/scrape/testdata/pages")))
	t.Cleanup(router.Close)
	engines := []string{outside.Address(t), outside.Address(t)}
	for i, address := range engines {
		start(t, dir, fmt.Sprint("sim", i), "http://"+address+"/health", "sim", "--web.listen-address", address, "--ttft", "5ms", "--itl", "1ms")
	}
	trace, err := filepath.Abs("../../internal/synth/sample.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	daemon, once := outside.Address(t), outside.Address(t)
	long := strings.Repeat("long-", 11) + "name"
	candidate := "canary-of-" + long[:53]
	config := outside.Write(t, dir, "replayd.yaml", fmt.Sprintf(`
web: {listen: %q}
targets:
  - {name: a, url: "http://%s", metrics: {interval: 1s}, router: {url: "%s/smg_1.13.0_busy.txt", interval: 1s}}
  - {name: %s, url: "http://%s", metrics: {interval: 1s}}
workloads:
  - name: %s
    target: a
    trace: {path: %q}
    speed: 10
    repeat: {align: start}
    slo: {ttft: 1s, tpot: 100ms}
    guard: {waiting: 1000, on_missing_metrics: go}
comparisons: [{name: c, workload: %s, candidate: %s}]
gpus: [{target: a, dcgm_exporter: "http://%s/dcgm/metrics"}]
`, daemon, engines[0], router.URL, candidate, engines[1], long, trace, long, candidate, engines[0]))
	start(t, dir, "serve", "http://"+daemon+"/-/ready", "serve", "--config", config)
	start(t, dir, "run", "http://"+once+"/metrics", "run", trace, "--url", "http://"+engines[1], "--speed", "2", "--web.listen-address", once)

	pages := map[string]string{
		"serve": page(t, "http://"+daemon+"/metrics", `# {request_id="…`, "replayd_engine_ttft_seconds_bucket", "replayd_router_requests_waiting{",
			"replayd_gpu_power_watts{", "replayd_comparison_pairs_total{", "replayd_session_makespan_seconds"),
		"run": page(t, "http://"+once+"/metrics", `# {request_id="`, "replayd_engine_ttft_seconds_bucket"),
		"sim": page(t, "http://"+engines[0]+"/metrics", "vllm:time_to_first_token_seconds_count"),
	}
	for mode, text := range pages {
		samples, err := parse(t, python, text)
		if err != nil || samples < 200 {
			t.Errorf("%s: want a page that the parser takes, got %d samples, %v", mode, samples, err)
		}
		t.Logf("%s: %d samples", mode, samples)
	}
	// The parser refuses what this test is for.
	twice := strings.Replace(pages["serve"], "# EOF", "# TYPE go_memstats_alloc_bytes counter\ngo_memstats_alloc_bytes_total 1\n# EOF", 1)
	if samples, err := parse(t, python, twice); err == nil {
		t.Errorf("want a family of two types refused, got %d samples", samples)
	}
}
