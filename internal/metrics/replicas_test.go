package metrics

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/internal/secret"
	"replayd/test/measuretest"

	"github.com/prometheus/client_golang/prometheus"
)

const replicaFamily = "replayd_replica_requests_total"

func answeredBy(w *Workload, replica string) {
	r := measuretest.Request("", 0, measure.HTTP5xx)
	r.Replica = secret.Text(replica)
	w.Expected(1)
	w.Sent()
	w.Finished(r)
}

// 256 replicas have a value of their own, and all others share one. Whatever a server says is a valid label, once.
func TestReplicasAreBounded(t *testing.T) {
	reg, m, w := born(t)
	for range 2 {
		for i := range 300 {
			answeredBy(w, fmt.Sprint("engine-", i))
		}
	}
	answeredBy(w, "")
	answeredBy(w, "other") // a server may say so
	p := gather(t, reg)
	if n := len(p.metrics(replicaFamily)); n != maxReplicas+1 {
		t.Errorf("want %d replicas, got %d", maxReplicas+1, n)
	}
	for label, want := range map[string]float64{"replica_name=engine-0": 2, "replica_name=engine-255": 2, "replica_name=engine-256": 0, "replica_name=other": 89} {
		if got := p.sum(replicaFamily, label); got != want {
			t.Errorf("%s: want %v, got %v", label, want, got)
		}
	}
	if got := p.sum("replayd_label_overflow_total", "label=replica_name"); got != 88 {
		t.Errorf("want 88 requests of replicas without a place, got %v", got)
	}
	other := m.Workload(Labels{Workload: "other", Target: "vllm", Model: "qwen"}, WorkloadOptions{Replicas: true})
	answeredBy(other, "a\xffb")
	answeredBy(other, "a\xfeb")
	if got := gather(t, reg).sum(replicaFamily, "workload=other", "replica_name=a\uFFFDb"); got != 2 {
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
	if got := p.sum("replayd_replica_requests_total", "replica_name=a"); got != 2 {
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
	now := time.Unix(0, 0)
	r.add("a", maxReplicas, 0, now)
	r.add("b", maxReplicas, 0, now)
	if n := testing.AllocsPerRun(100, func() {
		r.add("a", maxReplicas, 0, now)
		r.add("b", maxReplicas, 0, now)
		r.add("", maxReplicas, 0, now)
	}); n != 0 {
		t.Errorf("want no allocations, got %v", n)
	}
}

// Requests are counted by the model that their rows name, and by how they ended; 64 models have a value of their own.
func TestRequestedModelsAreBounded(t *testing.T) {
	reg, _, w := born(t)
	for i := range 70 {
		for _, outcome := range []measure.Outcome{measure.OK, measure.HTTP4xx} {
			r := measuretest.Request("", 0, outcome)
			r.Model = fmt.Sprint("lora-", i)
			w.Expected(1)
			w.Sent()
			w.Finished(r)
		}
	}
	const family = "replayd_requested_model_requests_total"
	p := gather(t, reg)
	for labels, want := range map[string]float64{"lora-0 ok": 1, "lora-63 http_4xx": 1, "lora-64 ok": 0, "other ok": 6, "other http_4xx": 6} {
		model, outcome, _ := strings.Cut(labels, " ")
		if got := p.sum(family, "requested_model="+model, "outcome="+outcome); got != want {
			t.Errorf("%s: want %v, got %v", labels, want, got)
		}
	}
	if got := p.sum("replayd_label_overflow_total", "label=requested_model"); got != 12 {
		t.Errorf("want 12 requests without a place, got %v", got)
	}
}
