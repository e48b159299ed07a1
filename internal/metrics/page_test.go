package metrics

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/test/measuretest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// page holds the families of a registry by name.
type page map[string]*dto.MetricFamily

func gather(t testing.TB, g prometheus.Gatherer) page {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	p := page{}
	for _, f := range families {
		p[f.GetName()] = f
	}
	return p
}

func text(t *testing.T, g prometheus.Gatherer) string {
	t.Helper()
	families, err := g.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}

// metrics returns the metrics of a family that have all given labels, as "name=value".
func (p page) metrics(family string, labels ...string) []*dto.Metric {
	var found []*dto.Metric
	for _, m := range p[family].GetMetric() {
		have := map[string]bool{}
		for _, l := range m.GetLabel() {
			have[l.GetName()+"="+l.GetValue()] = true
		}
		all := true
		for _, l := range labels {
			all = all && have[l]
		}
		if all {
			found = append(found, m)
		}
	}
	return found
}

// sum adds up the counters and gauges that have the labels; for histograms, the counts.
func (p page) sum(family string, labels ...string) float64 {
	sum := 0.0
	for _, m := range p.metrics(family, labels...) {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

var (
	labels = Labels{Workload: "conversation", Target: "vllm", Model: "qwen"}
	mooned = TraceInfo{
		Path: "mooncake.jsonl", Format: "mooncake", SHA256: "0123456789abcdef", Requests: 12031, BlockTokens: 512,
		PrefixHitRatio: 0.375,
	}
)

// levels are the service levels of the fixtures.
var levels = WorkloadOptions{
	SLO: measuretest.SLO, Objective: 0.995, Replicas: true, Echo: true, Cron: true, Shard: Shard{2, 4}, Trace: mooned,
	Sessions: measure.SessionSLO{Makespan: 10 * time.Minute},
}

func born(t *testing.T) (*prometheus.Registry, *Meter, *Workload) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	m := NewMeter(reg)
	o := levels
	o.Target = vllm(m)
	return reg, m, m.Workload(labels, o)
}

// vllm returns a target that is up.
func vllm(m *Meter) *Target {
	return m.Target("vllm", "chat", "http://vllm:8000/v1", func() TargetState { return TargetState{Reached: true, Pods: 1} })
}

// serves sets the model of the workload's target.
func serves(w *Workload, model string) { w.options.Target.Serves(model) }

// script plays a small run: four ok requests, three failed, four dropped, one waiting, one in flight, five filtered.
func script(w *Workload) []*measure.Request {
	requests := measuretest.Script()
	requests[0].Replica, requests[1].Replica, requests[6].Replica = "engine-0", "engine-1", "engine-1"
	requests[0].Model = "lora-a"
	w.LoopStarted(3, time.Hour, 0.25)
	w.SetClock(func() (position, skew time.Duration, due time.Time) {
		return 90 * time.Second, -1500 * time.Microsecond, time.Unix(1_772_366_401, 500_000_000)
	})
	w.Paused(true)
	w.Guard(limits.Blind, true)
	w.Expected(13)
	for _, r := range requests {
		w.Sent()
		w.Finished(r)
	}
	w.Sent()
	w.Dropped(measure.Overload)
	w.Dropped(measure.Missed)
	w.Dropped(measure.Guarded)
	w.Dropped(measure.Budget)
	w.Filtered(5)
	w.Routed(true, measure.EchoKept)
	w.Routed(false, measure.EchoNone)
	w.Routed(false, measure.EchoMissing)
	w.Routed(false, measure.EchoUnusable)
	w.Routed(false, measure.EchoKept)
	w.LoopCompleted()
	w.ActivationsSkipped(3)
	w.LoopsSkipped(2)
	for _, s := range measuretest.Sessions() {
		w.SessionBegun()
		w.SessionEnded(&s)
	}
	w.SessionBegun()
	return requests
}

func TestPageAtBirth(t *testing.T) {
	reg, _, _ := born(t)
	golden(t, "metrics.golden", text(t, reg))
}

func TestPageAfterRequests(t *testing.T) {
	reg, _, w := born(t)
	serves(w, "Qwen/Qwen3-8B")
	script(w)
	golden(t, "metrics_after.golden", text(t, reg))

	p := gather(t, reg)
	f := func(want float64, family string, labels ...string) {
		t.Helper()
		if got := p.sum("replayd_"+family, labels...); got != want {
			t.Errorf("%s%v = %v, want %v", family, labels, got, want)
		}
	}
	f(13, "requests_expected_total")
	f(4, "requests_total", "outcome=ok")
	f(1, "requests_total", "outcome=truncated")
	f(7, "requests_total")
	f(1, "requests_dropped_total", "reason=overload")
	f(1, "requests_dropped_total", "reason=guard")
	f(1, "requests_dropped_total", "reason=budget")
	f(5, "requests_dropped_total", "reason=filtered")
	f(1, "requests_in_flight")
	f(1, "requests_waiting")
	f(1, "retries_total")
	f(2, "coalesced_reads_total")
	f(2, "read_delay_seconds")
	f(1, "connect_seconds")
	f(6, "lateness_seconds") // all but the request without a connection
	f(4, "ttft_seconds")
	f(4, "e2e_from_due_seconds")
	f(3, "tpot_seconds") // all but the request with one token
	f(4, "itl_seconds")  // 2 + 1 + 1 + 0 gaps
	f(300, "tokens_total", "kind=prompt")
	f(8, "tokens_total", "kind=output") // 3 + 2 + 2 + 1
	f(64, "tokens_total", "kind=cached")
	f(1, "tokens_total", "kind=reasoning")
	f(1, "length_mismatch_total", "kind=prompt")
	f(1, "length_mismatch_total", "kind=output")
	f(1, "responses_without_usage_total")
	f(2, "goodput_requests_total")
	f(1, "slo_violations_total", "slo=ttft")
	f(2, "slo_violations_total", "slo=tpot")
	f(1, "slo_violations_total", "slo=e2e")
	f(3, "slo_violations_total", "slo=error")
	f(1, "replica_requests_total", "replica_name=engine-0")
	f(2, "replica_requests_total", "replica_name=engine-1")
	f(3, "replica_requests_total") // the other answers name none
	f(1, "session_replica_changes_total")
	f(1, "timestamp_source_info", "source=kernel") // the source of the truncated answer, the latest with chunks
	f(0, "timestamp_source_info", "source=read")
	f(3, "loop")
	f(1, "loops_completed_total")
	f(3, "activations_skipped_total")
	f(2, "loops_skipped_total")
	f(90, "position_seconds")
	f(1, "paused")
	f(1, "guard_open", "limit=missing_metrics")
	f(1, "guard_open")
	f(3600, "loop_duration_seconds")
	f(-0.0015, "wall_clock_skew_seconds")

	f(6, "sessions_begun_total")
	f(3, "sessions_total", "outcome=ok")
	f(1, "sessions_total", "outcome=failed")
	f(1, "sessions_total", "outcome=cut")
	f(1, "sessions_in_progress")
	f(2, "sessions_good_total") // 6 and 10 minutes; the bound is 10
	f(600, "session_slo_threshold_seconds")
	f(0.9, "session_slo_objective_ratio")
	f(3, "session_makespan_seconds")
	f(2, "session_cached_ratio")
	f(23*60, "session_time_seconds_total", "part=tools")
	f(60, "session_time_seconds_total", "part=lateness")
	f(11*60, "session_time_seconds_total", "part=ttft")
	f(21*60, "session_time_seconds_total", "part=decode")

	seconds := func(want float64, family string) {
		t.Helper()
		got := p.metrics("replayd_" + family)[0].GetHistogram().GetSampleSum()
		if diff := got - want; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("sum of %s = %v s, want %v", family, got, want)
		}
	}
	seconds(0.0025, "lateness_seconds")
	seconds(0.002, "lane_wait_seconds")
	seconds(0.5, "session_wait_seconds")
	seconds(0.000020, "read_delay_seconds")
	seconds(0.0005, "connect_seconds")
	seconds(0.05+0.2+0.01+0.04, "ttft_seconds")
	seconds(0.05+0.2+0.01+0.04+0.003+0.5, "ttft_from_due_seconds")
	seconds(0.015+0.06+2, "tpot_seconds")
	seconds(0.03+0.06+2, "itl_seconds")
	seconds(0.08+0.26+2.01+0.04, "e2e_seconds")
	seconds(0.08+0.26+2.01+0.04+0.003+0.5, "e2e_from_due_seconds")
	seconds(56*60, "session_makespan_seconds")
	seconds(35, "session_requests")
	seconds(0.9+0.5, "session_cached_ratio")
}

func TestPageIsClean(t *testing.T) {
	reg, _, w := born(t)
	serves(w, "Qwen/Qwen3-8B")
	script(w)
	problems, err := promlint.New(strings.NewReader(text(t, reg))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("promlint: %v %v", problems, err)
	}
}
