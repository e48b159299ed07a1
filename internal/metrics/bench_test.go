package metrics

import (
	"testing"

	"replayd/test/measuretest"

	"github.com/prometheus/client_golang/prometheus"
)

func BenchmarkFinished(b *testing.B) {
	w := NewMeter(prometheus.NewRegistry()).Workload(labels, WorkloadOptions{SLO: measuretest.SLO})
	r := measuretest.Long()
	b.ReportAllocs()
	for b.Loop() {
		w.Finished(r)
	}
}

func BenchmarkExpectedAndSent(b *testing.B) {
	w := NewMeter(prometheus.NewRegistry()).Workload(labels, WorkloadOptions{})
	for b.Loop() {
		w.Expected(1)
		w.Sent()
	}
}

func BenchmarkGather(b *testing.B) {
	reg := prometheus.NewRegistry()
	m := NewMeter(reg)
	r := measuretest.Long()
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		m.Workload(Labels{Workload: name, Target: "t"}, WorkloadOptions{SLO: measuretest.SLO}).Finished(r)
	}
	b.ReportAllocs()
	for b.Loop() {
		gather(b, reg)
	}
}
