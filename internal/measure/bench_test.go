package measure

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// long is an ok request of 300 chunks, 10 ms apart.
func long() *Request {
	chunks := make([]time.Duration, 300)
	for i := range chunks {
		chunks[i] = 50*ms + time.Duration(i)*10*ms
	}
	return request("conversation/3/17", 0, OK, chunks...)
}

func BenchmarkFinished(b *testing.B) {
	w := NewMeter(prometheus.NewRegistry()).Workload(labels, WorkloadOptions{SLO: slo})
	r := long()
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
	r := long()
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"} {
		m.Workload(Labels{Workload: name, Target: "t"}, WorkloadOptions{SLO: slo}).Finished(r)
	}
	b.ReportAllocs()
	for b.Loop() {
		gather(b, reg)
	}
}

func BenchmarkSummaryObserve(b *testing.B) {
	s := NewSummary(slo)
	r := long()
	b.ReportAllocs()
	for b.Loop() {
		s.Observe(r)
	}
}

func BenchmarkRecord(b *testing.B) {
	s := NewSink(lostCounter(), slog.New(slog.DiscardHandler))
	if err := s.Use(RecordsOptions{Path: os.DevNull}); err != nil {
		b.Fatal(err)
	}
	r := long()
	b.ReportAllocs()
	for b.Loop() {
		s.Observe(r)
		if len(s.pending) > sinkWake {
			s.flush()
		}
	}
}

// Nobody wants records.
func BenchmarkNoRecord(b *testing.B) {
	s := NewSink(lostCounter(), slog.New(slog.DiscardHandler))
	r := long()
	b.ReportAllocs()
	for b.Loop() {
		s.Observe(r)
	}
}
