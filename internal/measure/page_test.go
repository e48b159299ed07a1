package measure

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// page is what a registry shows, by the name of the family.
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

// metrics are those of a family that carry every given label, as "name=value".
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

// sum adds the counters and gauges that carry the labels; of histograms, the counts.
func (p page) sum(family string, labels ...string) float64 {
	sum := 0.0
	for _, m := range p.metrics(family, labels...) {
		sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	return sum
}

var (
	start  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	labels = Labels{Workload: "conversation", Target: "vllm", Model: "qwen"}
	slo    = SLO{{TTFT, 100}, {TPOT, 15}, {E2E, 1000}, {PerUser, 1}, {OutputLength, 1}}
	mooned = TraceInfo{
		Path: "mooncake.jsonl", Format: "mooncake", SHA256: "0123456789abcdef", Requests: 12031, BlockTokens: 512,
		PrefixHitRatio: 0.375,
	}
)

const ms = time.Millisecond

func born(t *testing.T) (*prometheus.Registry, *Meter, *Workload) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	m := NewMeter(reg)
	return reg, m, m.Workload(labels, WorkloadOptions{SLO: slo, Objective: 0.995, Shard: Shard{2, 4}, Trace: mooned, Target: vllm(m)})
}

// vllm is a target that is up.
func vllm(m *Meter) *Target { return m.Target("vllm", "chat", func() bool { return true }) }

// serves has the target of a workload answer.
func serves(w *Workload, model string) { w.options.Target.Serves(model) }

// request is one that was due at start + due, on time, and got its chunks at those times after the write.
func request(id string, due time.Duration, o Outcome, chunks ...time.Duration) *Request {
	at := start.Add(due)
	r := &Request{ID: id, Outcome: o, Timeline: Timeline{Planned: at, Due: at, Ready: at, Lane: at, Write: at, End: at, Chunks: chunks, Kernel: true}}
	if n := len(chunks); n > 0 {
		r.Timeline.End = at.Add(chunks[n-1])
		r.Usage = Usage{Prompt: 100, Output: n, Source: UsageFinal}
	}
	return r
}

// script is a small run: four ok requests, three that failed, four dropped, one waiting, one in flight, five filtered.
func script(w *Workload) []*Request {
	late := request("conversation/3/0", 0, OK, 50*ms, 60*ms, 80*ms)
	late.Timeline.Lane = start.Add(2 * ms)
	late.Timeline.Waited = true
	late.Timeline.Write = start.Add(3 * ms)
	late.Timeline.Connect = 4 * ms
	late.Timeline.ReadDelays = []time.Duration{20 * time.Microsecond, -time.Microsecond}
	late.InputTokens, late.OutputTokens = 100, 3
	late.Usage.Cached, late.Usage.Reasoning = 64, 1

	turn := request("conversation/3/1", time.Second, OK, 200*ms, 260*ms) // over the bounds of TTFT and of TPOT
	turn.Timeline.Ready = turn.Timeline.Due.Add(500 * ms)
	turn.Timeline.Lane, turn.Timeline.Write = turn.Timeline.Ready, turn.Timeline.Ready
	turn.Timeline.MergedReads = 2
	turn.InputTokens, turn.OutputTokens = 101, 3 // both differ from usage
	turn.Retried = true

	counted := request("conversation/3/2", 2*time.Second, OK, 10*ms, 2010*ms) // over e2e and TPOT
	counted.Usage.Source, counted.Usage.Prompt = UsageCounted, 0
	counted.InputTokens, counted.OutputTokens = 100, 9

	single := request("conversation/3/3", 3*time.Second, OK, 40*ms) // one token: no TPOT
	single.Timeline.Kernel = false
	single.InputTokens, single.OutputTokens = 100, 1

	cut := request("conversation/3/4", 4*time.Second, Truncated, 20*ms, 30*ms)
	cut.InputTokens = 7 // no mismatch: it failed
	refused := request("conversation/3/5", 5*time.Second, ConnectFailed)
	refused.Timeline.Write, refused.Timeline.Connect = time.Time{}, 0
	busy := request("conversation/3/6", 6*time.Second, HTTP429)

	requests := []*Request{late, turn, counted, single, cut, refused, busy}
	w.LoopStarted(3, time.Hour)
	w.SetClock(func() (position, skew time.Duration) { return 90 * time.Second, -1500 * time.Microsecond })
	w.Paused(true)
	w.Guard(GuardBlind, true)
	w.Expected(13)
	for _, r := range requests {
		w.Sent()
		w.Finished(r)
	}
	w.Sent()
	w.Dropped(Overload)
	w.Dropped(Missed)
	w.Dropped(Guarded)
	w.Dropped(Budget)
	w.Filtered(5)
	w.LoopCompleted()
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
	f(2, "merged_reads_total")
	f(2, "read_delay_seconds")
	f(1, "connect_seconds")
	f(6, "lateness_seconds") // all but the one that found no connection
	f(4, "ttft_seconds")
	f(4, "e2e_from_due_seconds")
	f(3, "tpot_seconds") // all but the one of one token
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
	f(1, "timestamp_source_info", "source=kernel") // that of the cut one, the latest with chunks
	f(0, "timestamp_source_info", "source=read")
	f(3, "loop")
	f(1, "loops_completed_total")
	f(90, "position_seconds")
	f(1, "paused")
	f(1, "guard_open", "limit=blind")
	f(1, "guard_open")
	f(3600, "loop_duration_seconds")
	f(-0.0015, "wall_clock_skew_seconds")

	seconds := func(want float64, family string) {
		t.Helper()
		got := p.metrics("replayd_" + family)[0].GetHistogram().GetSampleSum()
		if diff := got - want; diff > 1e-9 || diff < -1e-9 {
			t.Errorf("sum of %s = %v s, want %v", family, got, want)
		}
	}
	seconds(0.003, "lateness_seconds")
	seconds(0.002, "lane_wait_seconds")
	seconds(0.5, "session_wait_seconds")
	seconds(0.000020, "read_delay_seconds")
	seconds(0.004, "connect_seconds")
	seconds(0.05+0.2+0.01+0.04, "ttft_seconds")
	seconds(0.05+0.2+0.01+0.04+0.003+0.5, "ttft_from_due_seconds")
	seconds(0.015+0.06+2, "tpot_seconds")
	seconds(0.03+0.06+2, "itl_seconds")
	seconds(0.08+0.26+2.01+0.04, "e2e_seconds")
	seconds(0.08+0.26+2.01+0.04+0.003+0.5, "e2e_from_due_seconds")
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
