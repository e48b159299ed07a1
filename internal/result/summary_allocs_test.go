package result

import (
	"testing"

	"replayd/internal/measure"
	"replayd/test/measuretest"
)

func TestSummaryAllocatesNothing(t *testing.T) {
	s, r := NewSummary(measuretest.SLO, measure.SessionSLO{}), measuretest.Long()
	s.Observe(r) // allocates the buckets
	if n := testing.AllocsPerRun(200, func() { s.Observe(r) }); n > 0 {
		t.Errorf("want no object a request, got %v", n)
	}
}
