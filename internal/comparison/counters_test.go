package comparison

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"replayd/internal/canary"
	"replayd/internal/schedule"
)

// The pairs that a replaced comparison closes count, and no counter falls at any moment of the handover.
func TestCountersOverAHandover(t *testing.T) {
	reg := prometheus.NewRegistry()
	all := NewCollector(reg)
	one := func() *Comparison {
		return New(Options{Name: "rollout", Options: canary.Defaults(), Counters: all.Counters("rollout")})
	}
	show := func(c ...*Comparison) {
		var shown []func() Status
		for _, one := range c {
			shown = append(shown, one.Status)
		}
		all.Show(shown)
	}
	void := func() float64 { return gather(t, reg).Sum("replayd_comparison_pairs_total", "void") }
	old := one()
	show(old)
	for i := range 3 {
		due := &schedule.Due{At: time.Unix(int64(i), 0), Loop: schedule.Loop{Number: int64(i)}}
		old.Side(canary.Baseline, "rows", nil).Due(due, time.Time{})
	}
	old.step(time.Now(), func() {})
	next := one()
	old.step(time.Now(), func() { old.pairing.CloseAll(canary.VoidShutdown) })
	if n := void(); n != 3 {
		t.Errorf("after the old comparison has ended: %v void pairs, want 3", n)
	}
	show(next)
	if n := void(); n != 3 {
		t.Errorf("the next comparison shows %v void pairs, want 3", n)
	}
	due := &schedule.Due{At: time.Unix(9, 0), Loop: schedule.Loop{Number: 9}}
	next.Side(canary.Candidate, "rows", nil).Due(due, time.Time{})
	next.step(time.Now(), func() { next.pairing.CloseAll(canary.VoidShutdown) })
	if n := void(); n != 4 {
		t.Errorf("with a pair of the next comparison: %v void pairs, want 4", n)
	}
	show()
	show(one())
	if n := void(); n != 4 {
		t.Errorf("a comparison that comes back shows %v void pairs, want 4", n)
	}
}
