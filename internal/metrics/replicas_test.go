package metrics

import (
	"fmt"
	"testing"

	"replayd/internal/measure"
	"replayd/internal/measure/measuretest"

	"github.com/prometheus/client_golang/prometheus"
)

func answeredBy(w *Workload, replica string) {
	r := measuretest.Request("", 0, measure.HTTP5xx)
	r.Replica = replica
	w.Expected(1)
	w.Sent()
	w.Finished(r)
}

// 64 replicas have a value of their own, and all others share one. Whatever a server says is a valid label.
func TestReplicasAreBounded(t *testing.T) {
	reg, m, w := born(t)
	for range 2 {
		for i := range 100 {
			answeredBy(w, fmt.Sprint("engine-", i))
		}
	}
	answeredBy(w, "")
	p := gather(t, reg)
	const family = "replayd_replica_requests_total"
	if n := len(p.metrics(family)); n != maxReplicas+1 {
		t.Errorf("want %d replicas, got %d", maxReplicas+1, n)
	}
	for label, want := range map[string]float64{"replica=engine-0": 2, "replica=engine-63": 2, "replica=engine-64": 0, "replica=other": 72} {
		if got := p.sum(family, label); got != want {
			t.Errorf("%s: want %v, got %v", label, want, got)
		}
	}
	other := m.Workload(Labels{Workload: "other", Target: "vllm", Model: "qwen"}, WorkloadOptions{Replicas: true})
	answeredBy(other, "a\xffb")
	if got := gather(t, reg).sum(family, "workload=other", "replica=a\uFFFDb"); got != 1 {
		t.Errorf("want invalid bytes replaced, got %v requests", got)
	}
}

// The counts of replicas go on when a workload comes back, as all counters do.
func TestReplicasOfAReturningWorkload(t *testing.T) {
	reg, m, w := born(t)
	answeredBy(w, "a")
	w.Routed(true, measure.EchoNone)
	m.Remove(w)
	if n := len(gather(t, reg).metrics("replayd_replica_requests_total")); n != 0 {
		t.Errorf("want no series of a removed workload, got %d", n)
	}
	w = m.Workload(labels, WorkloadOptions{Replicas: true})
	answeredBy(w, "a")
	p := gather(t, reg)
	if got := p.sum("replayd_replica_requests_total", "replica=a"); got != 2 {
		t.Errorf("want 2 requests, got %v", got)
	}
	if got := p.sum("replayd_session_replica_changes_total"); got != 1 {
		t.Errorf("want 1 change, got %v", got)
	}
}

// A target without replica_header has no series of replicas, and a known replica costs no allocation.
func TestReplicasCostNothing(t *testing.T) {
	reg := prometheus.NewRegistry()
	w := NewMeter(reg).Workload(labels, WorkloadOptions{})
	answeredBy(w, "")
	p := gather(t, reg)
	if p["replayd_replica_requests_total"] != nil || p["replayd_session_replica_changes_total"] != nil {
		t.Error("want no series of replicas")
	}
	var r replicas
	r.add("a")
	r.add("b")
	if n := testing.AllocsPerRun(100, func() { r.add("a"); r.add("b"); r.add("") }); n != 0 {
		t.Errorf("want no allocations, got %v", n)
	}
}
