package metrics

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"replayd/internal/bounded"
	"replayd/internal/limits"
	"replayd/internal/measure"
	"replayd/test/measuretest"

	"github.com/prometheus/client_golang/prometheus"
)

// learner adds a workload without a configured model.
func learner(m *Meter, target *Target) *Workload {
	return m.Workload(Labels{Workload: "w", Target: "vllm"}, WorkloadOptions{Target: target, Learn: true, Trace: mooned})
}

// models returns the values of the label model in a family, sorted.
func (p page) models(family string) []string {
	found := map[string]bool{}
	for _, m := range p.metrics(family) {
		for _, l := range m.GetLabel() {
			if l.GetName() == "model" {
				found[l.GetValue()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// until sends a request that ends with o.
func (w *Workload) until(o measure.Outcome) {
	w.Expected(1)
	w.Sent()
	w.Finished(measuretest.Request("w/0/0", 0, o, time.Millisecond, 2*time.Millisecond))
}

// The series have an empty model until the target has answered, and then its model. If nothing was counted before, the
// series with the empty model are deleted, so that sums see the workload once.
func TestModelIsLearned(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMeter(reg)
	target := vllm(m)
	w := learner(m, target)
	w.SetClock(func() (position, skew time.Duration, due time.Time) { return 7 * time.Second, 0, time.Unix(1e9, 0) })
	w.Paused(true)
	w.Guard(limits.Waiting, true)
	w.LoopStarted(3, time.Hour, 0.25)
	before := gather(t, reg)
	for name := range before {
		if got := before.models(name); len(got) > 0 && !slices.Equal(got, []string{""}) {
			t.Errorf("%s: models %q before the first answer", name, got)
		}
	}
	target.Serves("qwen")
	w.until(measure.OK)
	after := gather(t, reg)
	for name := range before {
		if got := after.models(name); len(got) > 0 && !slices.Equal(got, []string{"qwen"}) {
			t.Errorf("%s: models %q, want that of the target alone", name, got)
		}
	}
	for name, want := range map[string]float64{
		"replayd_position_seconds": 7, "replayd_paused": 1, "replayd_guard_open": 1, "replayd_loop": 3, "replayd_loop_duration_seconds": 3600,
		"replayd_requests_total": 1, "replayd_ttft_seconds": 1, "replayd_workload_up": 1,
	} {
		if got := after.sum(name); got != want {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	if n := len(after.metrics("replayd_trace_info", "model=qwen", "path=mooncake.jsonl")); n != 1 {
		t.Errorf("%d traces, want 1", n)
	}
	m.Remove(w)
	if p := gather(t, reg); len(p) != 2 {
		t.Errorf("after the removal the page still has %d families", len(p))
	}
}

// Counts under one model stay there, waiting requests and those in flight end there, and the ledger of each model
// balances. The state has one value.
func TestAnotherModelBeginsAnew(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMeter(reg)
	target := vllm(m)
	w := learner(m, target)
	w.until(measure.ConnectFailed) // the server was not reachable yet
	target.Serves("a")
	w.until(measure.OK)
	w.Expected(3) // one waits, two are in flight
	w.Sent()
	w.Sent()
	target.Serves("b")
	w.Expected(1)
	f := func(name, model string, want float64) {
		t.Helper()
		if got := gather(t, reg).sum(name, "model="+model); got != want {
			t.Errorf("%s{model=%q} = %v, want %v", name, model, got, want)
		}
	}
	f("replayd_requests_total", "", 1)
	f("replayd_requests_expected_total", "a", 4)
	f("replayd_requests_in_flight", "a", 2)
	f("replayd_requests_waiting", "a", 1)
	f("replayd_requests_waiting", "b", 1)
	w.Sent()
	w.Finished(measuretest.Request("w/0/0", 0, measure.OK, time.Millisecond))
	w.Finished(measuretest.Request("w/0/1", 0, measure.OK, time.Millisecond))
	w.Dropped(measure.Shutdown) // counted under b: no request of a waits any more
	w.Finished(measuretest.Request("w/0/2", 0, measure.OK, time.Millisecond))
	f("replayd_requests_total", "a", 4)
	f("replayd_ttft_seconds", "a", 4)
	f("replayd_requests_dropped_total", "b", 1)
	f("replayd_requests_total", "b", 0)
	p := gather(t, reg)
	for _, model := range []string{"", "a", "b"} {
		balanced(t, p, model)
	}
	for _, name := range []string{"replayd_workload_up", "replayd_paused", "replayd_shards", "replayd_loop", "replayd_trace_info", "replayd_slo_objective_ratio"} {
		if got := p.models(name); !slices.Equal(got, []string{"b"}) {
			t.Errorf("%s: models %q, want the one of now", name, got)
		}
	}
	if c := w.Ledger(); c.Expected != 6 || c.Outcomes[measure.OK] != 4 || c.Outcomes[measure.ConnectFailed] != 1 || c.Dropped[measure.Shutdown] != 1 {
		t.Errorf("counts of the whole workload: %+v", c)
	}

	target.Serves("a") // the earlier model returns
	w.until(measure.OK)
	f("replayd_requests_total", "a", 5)
	next := learner(m, target) // a reload
	m.Remove(w)
	next.until(measure.OK)
	p = gather(t, reg)
	if got := p.models("replayd_requests_total"); !slices.Equal(got, []string{"", "a", "b"}) {
		t.Errorf("models %q after a reload, want all that were counted", got)
	}
	f("replayd_requests_total", "a", 6)
	f("replayd_requests_total", "", 1)
}

func balanced(t *testing.T, p page, model string) {
	t.Helper()
	of := func(name string) float64 { return p.sum("replayd_"+name, "model="+model) }
	rest := of("requests_in_flight") + of("requests_waiting")
	if expected, got := of("requests_expected_total"), of("requests_total")+of("requests_dropped_total")+rest; expected != got {
		t.Errorf("model %q: expected %v, accounted for %v", model, expected, got)
	}
}

// A server that keeps changing its model name gets 7 names on the page, and all further ones are other: also where the page names the target's.
func TestModelsAreBounded(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMeter(reg)
	target := vllm(m)
	w := learner(m, target)
	for i := range 50 {
		target.Serves(fmt.Sprint("m", i))
		w.until(measure.OK)
	}
	p := gather(t, reg)
	if got := p.models("replayd_requests_total"); len(got) != maxModels+1 || !slices.Contains(got, bounded.Other) {
		t.Errorf("models %q, want %d of them and other", got, maxModels)
	}
	if got := p.sum("replayd_requests_total", "model="+bounded.Other); got != 50-maxModels {
		t.Errorf("%v requests of the others", got)
	}
	if n := len(p.metrics("replayd_target_info", "model=other")); n != 1 {
		t.Errorf("%d target infos of other, want 1", n)
	}
	if got := p.sum("replayd_requests_total"); got != 50 {
		t.Errorf("%v requests in all, want 50", got)
	}
}

// A configured model is the label, whatever the server lists.
func TestConfiguredModelStays(t *testing.T) {
	reg, _, w := born(t)
	serves(w, "something else")
	w.until(measure.OK)
	p := gather(t, reg)
	if got := p.models("replayd_requests_total"); !slices.Equal(got, []string{"qwen"}) {
		t.Errorf("models %q, want the configured one", got)
	}
}

// If two workloads share a series, the later one's fault is shown.
func TestFault(t *testing.T) {
	reg, m, old := born(t)
	f := func(want float64, what string) {
		t.Helper()
		if got := gather(t, reg).sum("replayd_workload_up"); got != want {
			t.Errorf("%s: workload_up %v, want %v", what, got, want)
		}
	}
	f(1, "at birth")
	old.Fault(true)
	f(0, "with a fault")
	next := m.Workload(labels, WorkloadOptions{})
	f(1, "replaced")
	old.Fault(true)
	f(1, "the old one has a fault still")
	next.Fault(true)
	f(0, "the later one has one")
	next.Fault(false)
	f(1, "and has it no more")
}

func TestTargetUp(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := NewMeter(reg)
	up := false
	target := m.Target("vllm", "chat", "http://vllm:8000/v1", func() TargetState { return TargetState{Reached: up, Pods: 1} })
	if gather(t, reg)["replayd_target_up"] != nil {
		t.Error("a target without a workload is on the page")
	}
	for _, name := range []string{"a", "b"} {
		m.Workload(Labels{Workload: name, Target: "vllm"}, WorkloadOptions{Target: target, Learn: true})
	}
	for _, up = range []bool{false, true} {
		found := gather(t, reg).metrics("replayd_target_up", "target=vllm")
		if len(found) != 1 || len(found[0].GetLabel()) != 1 || found[0].GetGauge().GetValue() != map[bool]float64{true: 1}[up] {
			t.Errorf("want one series that says %v, got %v", up, found)
		}
	}
}

func TestTargetInfo(t *testing.T) {
	reg, m, w := born(t)
	serves(w, "old")
	next := m.Target("vllm", "completions", "http://vllm:8000/v1", func() TargetState { return TargetState{Reached: true, Pods: 1} })
	other := m.Workload(Labels{Workload: "second", Target: "vllm"}, WorkloadOptions{Target: next})
	next.Serves(strings.Repeat("m", 1000) + "\xff")
	serves(w, "old") // it drains at a target that another one has replaced
	m.Target("unused", "chat", "http://unused:8000/v1", func() TargetState { return TargetState{} }).Serves("x")
	m.Remove(w)
	p := gather(t, reg)
	if n := len(p.metrics("replayd_target_info")); n != 1 {
		t.Errorf("%d target infos, want 1", n)
	}
	if n := len(p.metrics("replayd_target_info", "target=vllm", "api=completions", "model="+strings.Repeat("m", 256))); n != 1 {
		t.Error("want the latest info, its model cut to 256 bytes")
	}
	m.Remove(other)
	if p := gather(t, reg); p["replayd_target_info"] != nil || p["replayd_target_up"] != nil {
		t.Error("the target's series outlived its last workload")
	}
}
