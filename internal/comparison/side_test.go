package comparison

import (
	"testing"
	"time"

	"replayd/internal/canary"
	"replayd/internal/measure"
)

// A failure counts against its side, however much of the answer came, so also one that the server gave up on. A request
// that replayd cut says nothing, and one that the workload cancelled is no failure.
func TestHalfOfEachOutcome(t *testing.T) {
	for _, o := range measure.Outcomes() {
		r := asked(4, "stop")
		r.Outcome = o
		h := halfOf(r, measure.SLO{})
		bad, void := o.Failed(), canary.NotVoid
		if o == measure.Aborted {
			void = canary.VoidAborted
		}
		if h.Bad != bad || h.Void != void || (h.E2E > 0) != (o == measure.OK) || bad && h.Why != string(o) {
			t.Errorf("%s: want bad %t, void %v, got %+v", o, bad, void, h)
		}
	}
	if h := halfOf(asked(4, "length"), measure.SLO{}); h.Answer.Finish != canary.Length || h.E2E != 90*time.Millisecond {
		t.Errorf("want the end and the latency of an ok answer, got %+v", h)
	}
}
