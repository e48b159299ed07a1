//go:build real

package shards_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/test/outside"
)

// A load is an even load: a rate in requests/s, with fixed lengths of prompts and answers in tokens.
type load struct {
	name          string
	perSecond     int
	input, output int
}

// The simulated engine sends a chunk of each stream at this interval, with one token each.
const chunkGap = 20 * time.Millisecond

// TestCost measures the CPU time of replayd for requests, tokens of prompts and chunks of streams. SHARDS_COST is the
// time to measure each load, such as 20s; without it the test is skipped. CPU time depends least on other work on the
// machine; the read delay of chunks depends on the machine.
func TestCost(t *testing.T) {
	span := outside.Knob(t, "SHARDS_COST", 0, time.ParseDuration)
	if span == 0 {
		t.Skip("SHARDS_COST is not set")
	}
	t.Logf("%-34s %10s %10s %12s %10s %12s %9s %9s %8s", "load", "requests/s", "streams", "prompt tok/s", "chunks/s", "CPU of core", "late, ms", "merged", "RSS, MiB")
	for _, l := range []load{
		{"nothing", 0, 100, 1},
		{"short requests", 100, 100, 2},
		{"short requests", 400, 100, 2},
		{"long prompts", 20, 8000, 2},
		{"long prompts", 40, 8000, 2},
		{"streams", 10, 100, 250},
		{"streams", 40, 100, 250},
		{"streams", 100, 100, 250},
		{"streams", 160, 100, 250},
	} {
		l.measure(t, span)
	}
}

// measure runs one load. It starts to measure after streams of this length have begun and ended once.
func (l load) measure(t *testing.T, span time.Duration) {
	t.Helper()
	dir := t.TempDir()
	engine := outside.Address(t)
	sim := outside.Start(t, filepath.Join(dir, "engine.out"), binary, "sim", "--web.listen-address", engine,
		"--ttft", "50ms", "--itl", chunkGap.String(), "--slots", "8192", "--cache-tokens", "0")
	sim.Ready(t, http.DefaultClient, "http://"+engine+"/health")

	const every = 10 * time.Second
	var text strings.Builder
	rows := max(1, l.perSecond*int(every.Seconds()))
	for i := range rows {
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": %d, "output_length": %d}`+"\n", i*int(every.Milliseconds())/rows, l.input, l.output)
	}
	address := outside.Address(t)
	config := outside.Write(t, dir, "replayd.yaml", fmt.Sprintf(`
web: {listen: %q}
targets: [{name: sim, url: "http://%s", metrics: {interval: 0s}}]
workloads: [{name: load, trace: {path: %q}, repeat: {every: %s, align: start}, lanes: 8192}]
`, address, engine, outside.Write(t, dir, "trace.jsonl", text.String()), every))
	replayd := outside.Start(t, filepath.Join(dir, "replayd.out"), binary, "serve", "--config", config)
	url := "http://" + address
	replayd.Ready(t, http.DefaultClient, url+"/-/ready")

	until(t, time.Now().Add(3*time.Second+time.Duration(l.output)*chunkGap))
	scrape := func() (outside.Page, time.Time) {
		p, err := outside.Scrape(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		return p, time.Now()
	}
	first, began := scrape()
	until(t, began.Add(span))
	last, ended := scrape()
	rate := func(name string, labels ...string) float64 {
		return (last.Sum(name, labels...) - first.Sum(name, labels...)) / ended.Sub(began).Seconds()
	}
	chunks := rate("replayd_tokens_total", "output")
	reads := last["replayd_read_delay_seconds"].GetMetric()[0].GetHistogram()
	before := first["replayd_read_delay_seconds"].GetMetric()[0].GetHistogram()
	late := 0.0
	if n := reads.GetSampleCount() - before.GetSampleCount(); n > 0 {
		late = (reads.GetSampleSum() - before.GetSampleSum()) / float64(n)
	}
	if bad := rate("replayd_requests_total") - rate("replayd_requests_total", "ok"); bad > 0 {
		t.Errorf("%s: want all to end ok, %v/s did not", l.name, bad)
	}
	t.Logf("%-34s %10.1f %10.0f %12.0f %10.0f %11.2f%% %9.2f %9.4f %8.1f",
		fmt.Sprintf("%s: %d/s of %d + %d", l.name, l.perSecond, l.input, l.output), rate("replayd_requests_total", "ok"),
		last.Sum("replayd_requests_in_flight"), rate("replayd_tokens_total", "prompt"), chunks, 100*rate("process_cpu_seconds_total"),
		late*1000, rate("replayd_coalesced_reads_total")/max(chunks, 1), last.Sum("process_resident_memory_bytes")/(1<<20))
	for _, p := range []*outside.Process{replayd, sim} {
		_ = p.Cmd.Process.Kill() // the next load has the machine for itself
		<-p.Done
	}
}
