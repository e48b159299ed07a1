package metrics

import (
	"testing"

	"replayd/internal/limits"
)

// While an old workload drains beside its successor, a limit is shown as open while either has it open. A removed
// workload leaves no limit open.
func TestGuardOfTwoWorkloads(t *testing.T) {
	reg, m, old := born(t)
	next := m.Workload(labels, WorkloadOptions{})
	f := func(want float64, what string) {
		t.Helper()
		if got := gather(t, reg).sum("replayd_guard_open", "limit=waiting"); got != want {
			t.Errorf("%s: guard_open %v, want %v", what, got, want)
		}
	}
	f(0, "at birth")
	old.Guard(limits.Waiting, true)
	old.Guard(limits.Waiting, true)
	f(1, "open in the old one")
	next.Guard(limits.Waiting, false)
	f(1, "not in the next one")
	next.Guard(limits.Waiting, true)
	f(1, "open in both")
	old.Guard(limits.Waiting, false)
	f(1, "closed in the old one")
	old.Guard(limits.Waiting, true)
	next.Guard(limits.Waiting, false)
	f(1, "open in the old one again")
	m.Remove(old)
	f(0, "the old one is removed")
	if n := len(gather(t, reg)["replayd_guard_open"].GetMetric()); n != 5 {
		t.Errorf("%d series of guard_open, want 5", n)
	}
}
