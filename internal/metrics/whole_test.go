package metrics

import (
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/test/measuretest"
)

// A non-streamed answer has an end and tokens, a cancelled request only its outcome, and an answer whose tokens replayd
// counted is one without usage.
func TestPageOfWholeAndCancelledAnswers(t *testing.T) {
	reg, _, w := born(t)
	whole := measuretest.Request("", 0, measure.OK, 700*time.Millisecond)
	whole.Timeline.Whole = true
	whole.Usage.Output = 500
	cancelled := measuretest.Request("", 0, measure.Cancelled, 10*time.Millisecond, 20*time.Millisecond)
	counted := measuretest.Request("", 0, measure.OK, 10*time.Millisecond, 20*time.Millisecond)
	counted.Usage = measure.Usage{Output: 7, Source: measure.UsageText}
	counted.InputTokens, counted.OutputTokens = 100, 2
	w.Expected(3)
	for _, r := range []*measure.Request{whole, cancelled, counted} {
		w.Sent()
		w.Finished(r)
	}
	p := gather(t, reg)
	f := func(want float64, family string, labels ...string) {
		t.Helper()
		if got := p.sum("replayd_"+family, labels...); got != want {
			t.Errorf("%s%v: want %v, got %v", family, labels, want, got)
		}
	}
	f(2, "requests_total", "outcome=ok")
	f(1, "requests_total", "outcome=cancelled")
	f(1, "ttft_seconds")
	f(1, "ttft_from_due_seconds")
	f(1, "tpot_seconds")
	f(1, "itl_seconds")
	f(2, "e2e_seconds")
	f(2, "e2e_from_due_seconds")
	f(3, "lateness_seconds")
	f(100, "tokens_total", "kind=prompt")
	f(507, "tokens_total", "kind=output")
	f(0, "length_mismatch_total")
	f(1, "responses_without_usage_total")
	f(2, "goodput_requests_total")
	f(0, "slo_violations_total", "slo=error") // a cancelled request violates no SLO
}
