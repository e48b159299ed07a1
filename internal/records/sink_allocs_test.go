package records

import (
	"log/slog"
	"os"
	"testing"

	"replayd/test/measuretest"
)

func TestRecordAllocatesNothing(t *testing.T) {
	s, r := NewSink(lostCounter(), slog.New(slog.DiscardHandler)), measuretest.Long()
	if err := s.Use(Options{Path: os.DevNull}); err != nil {
		t.Fatal(err)
	}
	record := func() {
		s.Observe(r)
		if len(s.pending) > sinkWake {
			s.flush()
		}
	}
	for range 1000 { // allocate the buffers first
		record()
	}
	if n := testing.AllocsPerRun(200, record); n > 0 {
		t.Errorf("want no object a request, got %v", n)
	}
}
