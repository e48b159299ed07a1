package records

import (
	"log/slog"
	"os"
	"testing"

	"replayd/test/measuretest"
)

func BenchmarkRecord(b *testing.B) {
	s := NewSink(lostCounter(), slog.New(slog.DiscardHandler))
	if err := s.Use(Options{Path: os.DevNull}); err != nil {
		b.Fatal(err)
	}
	r := measuretest.Long()
	b.ReportAllocs()
	for b.Loop() {
		s.Observe(r)
		if len(s.pending) > sinkWake {
			s.flush()
		}
	}
}

// BenchmarkNoRecord observes requests with records disabled.
func BenchmarkNoRecord(b *testing.B) {
	s := NewSink(lostCounter(), slog.New(slog.DiscardHandler))
	r := measuretest.Long()
	b.ReportAllocs()
	for b.Loop() {
		s.Observe(r)
	}
}
