package result

import (
	"testing"

	"replayd/internal/measure"
	"replayd/test/measuretest"
)

func BenchmarkSummaryObserve(b *testing.B) {
	s := NewSummary(measuretest.SLO, measure.SessionSLO{})
	r := measuretest.Long()
	b.ReportAllocs()
	for b.Loop() {
		s.Observe(r)
	}
}
