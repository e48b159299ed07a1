//go:build replay

// Package replay_test replays real traces through the real binary against the simulated engine in another process,
// and judges by the engine's own log: what was sent, when, and what was answered.
//
// The sizes come from the environment, so that CI runs a few minutes of what a release runs whole: REPLAYD_TRACES
// (folder of the real traces; without it the bundled sample is replayed), REPLAY_TO and REPLAY_SPEED.
package replay_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"replayd/internal/sim"
	"replayd/internal/synth"
	"replayd/internal/trace"

	"replayd/test/outside"
)

var binary string

func TestMain(m *testing.M) { os.Exit(outside.Main(m, &binary)) }

// conversation is Mooncake's conversation trace, or the bundled sample.
func conversation(t *testing.T) string {
	t.Helper()
	if dir := os.Getenv("REPLAYD_TRACES"); dir != "" {
		return filepath.Join(dir, "mooncake_conversation.jsonl")
	}
	t.Log("REPLAYD_TRACES is not set: the bundled sample stands in for the real trace")
	path := filepath.Join(t.TempDir(), "sample.jsonl")
	if err := os.WriteFile(path, synth.Sample, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func number(s string) (float64, error) { return strconv.ParseFloat(s, 64) }

// cut copies the rows of a trace before an offset to a file of their own, so that its figures are those of the part.
func cut(t *testing.T, path string, to time.Duration) (string, trace.Stats) {
	t.Helper()
	f, err := trace.Open(t.Context(), path, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	part := filepath.Join(t.TempDir(), "part.jsonl")
	out, err := os.Create(part)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := f.Rows(0)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, trace.MaxLineBytes)
	for lines.Scan() {
		r, err := rows.Next()
		if err != nil {
			t.Fatal(err)
		}
		if to > 0 && r.Offset >= to {
			break
		}
		fmt.Fprintf(out, "%s\n", lines.Bytes())
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := trace.Open(t.Context(), part, trace.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return part, p.Stats
}

// A process is one of ours, ended by its pid at the end of the test.
type process struct {
	cmd *exec.Cmd
	log string
}

func start(t *testing.T, log string, args ...string) *process {
	t.Helper()
	out, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	p := &process{cmd: exec.Command(binary, args...), log: log}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			_ = p.cmd.Process.Kill()
			_ = p.cmd.Wait()
		}
	})
	return p
}

// stop ends the process as an operator would, and gives its CPU time and peak memory.
func (p *process) stop(t *testing.T) (cpu time.Duration, peakKiB int64) {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Wait(); err != nil {
		text, _ := os.ReadFile(p.log)
		t.Fatalf("%v\n%s", err, text)
	}
	usage := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime(), usage.Maxrss
}

// await asks a URL until it answers 200.
func await(t *testing.T, url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		resp, err := http.Get(url)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s does not answer: %v", url, err)
		}
	}
}

// A page is one scrape.
type page map[string]*dto.MetricFamily

func scrape(t *testing.T, url string) page {
	t.Helper()
	resp, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// sum adds a family's values over the metrics that have the label value; "" is all of them.
func (p page) sum(name, value string) (sum int) {
	for _, m := range p[name].GetMetric() {
		match := value == ""
		for _, l := range m.GetLabel() {
			match = match || l.GetValue() == value
		}
		if match {
			sum += int(m.GetCounter().GetValue() + m.GetGauge().GetValue())
		}
	}
	return sum
}

// balance holds the invariant of every scrape.
func (p page) balance(t *testing.T) {
	t.Helper()
	dropped := p.sum("replayd_requests_dropped_total", "") - p.sum("replayd_requests_dropped_total", "filtered")
	got := p.sum("replayd_requests_total", "") + dropped + p.sum("replayd_requests_in_flight", "") + p.sum("replayd_requests_waiting", "")
	if want := p.sum("replayd_requests_expected_total", ""); got != want {
		t.Errorf("want expected = finished + dropped + in flight + waiting, got %d and %d", want, got)
	}
}

// watch scrapes each second until the workload has finished what was expected of it, or for a fixed time.
func watch(t *testing.T, url string, expected int, atMost time.Duration) page {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), atMost)
	defer cancel()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		p := scrape(t, url)
		p.balance(t)
		dropped := p.sum("replayd_requests_dropped_total", "")
		if p.sum("replayd_requests_total", "")+dropped >= expected {
			return p
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("want %d finished within %v, got %d ended, %d dropped", expected, atMost, p.sum("replayd_requests_total", ""), dropped)
		}
	}
}

// engineLog reads the simulated engine's log of requests, without those of replayd's own probes.
func engineLog(t *testing.T, path string) (entries []sim.LogEntry) {
	t.Helper()
	lines[sim.LogEntry](t, path, func(e sim.LogEntry) {
		if e.ID != "replayd/probe" {
			entries = append(entries, e)
		}
	})
	return entries
}

func lines[T any](t *testing.T, path string, each func(T)) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := json.NewDecoder(bufio.NewReader(f))
	for d.More() {
		var v T
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		each(v)
	}
}
