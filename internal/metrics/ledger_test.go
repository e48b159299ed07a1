package metrics

import (
	"encoding/json"
	"testing"
	"time"

	"replayd/internal/measure"
	"replayd/test/measuretest"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// lived returns the ledger of a workload with one request for each outcome and each drop reason, one filtered row, one
// request in flight and one waiting.
func lived(t *testing.T, o WorkloadOptions) (measure.Ledger, page) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	w := NewMeter(reg).Workload(labels, o)
	w.Expected(len(allOutcomes) + len(allDropReasons) + 1)
	w.Filtered(1)
	for _, o := range allOutcomes {
		w.Sent()
		w.Finished(measuretest.Request("w/0/0", 0, o, 10*time.Millisecond, 20*time.Millisecond))
	}
	for _, why := range allDropReasons {
		if why != measure.Filtered {
			w.Dropped(why)
		}
	}
	w.Sent()
	return w.Ledger(), gather(t, reg)
}

func TestLedgerIsThePage(t *testing.T) {
	l, p := lived(t, WorkloadOptions{SLO: measuretest.SLO})
	for name, got := range map[string]int64{
		"requests_expected_total": l.Expected, "requests_total": l.Finished(), "requests_dropped_total": l.Unsent() + l.Filtered,
		"requests_in_flight": l.InFlight, "requests_waiting": l.Waiting, "goodput_requests_total": l.Good, "requests_eligible_total": l.Eligible,
	} {
		if want := p.sum("replayd_" + name); float64(got) != want {
			t.Errorf("%s: %d, the page says %v", name, got, want)
		}
	}
	if err := l.Balance(); err != nil {
		t.Error(err)
	}
}

// The eligible count includes requests dropped for overload unless the workload sheds load.
func TestEligible(t *testing.T) {
	finished := int64(len(allOutcomes) - 2) // all but cancelled and aborted
	for sheds, dropped := range map[bool]int64{false: 2, true: 1} {
		l, _ := lived(t, WorkloadOptions{Sheds: sheds})
		if want := finished + dropped; l.Eligible != want {
			t.Errorf("sheds %v: %d eligible, want %d", sheds, l.Eligible, want)
		}
	}
}

func TestLedgerAtBirth(t *testing.T) {
	w := NewMeter(prometheus.NewRegistry()).Workload(labels, WorkloadOptions{})
	if b, err := json.Marshal(w.Ledger()); err != nil || string(b) != `{"expected":0,"in_flight":0,"waiting":0,"outcomes":{},"dropped":{},"filtered":0,"good":0,"eligible":0}` {
		t.Errorf("born: %s, %v", b, err)
	}
}

// The ledgers of shards add up to the ledger of the whole, whichever counts they have.
func TestLedgersAddUp(t *testing.T) {
	a, _ := lived(t, WorkloadOptions{})
	b := measure.Ledger{Expected: 3, Waiting: 1, Outcomes: map[measure.Outcome]int64{measure.OK: 2}, Dropped: map[measure.DropReason]int64{}, Good: 2, Eligible: 2, OutputTokens: 7}
	sum := b.Add(a)
	if diff := cmp.Diff(sum, a.Add(b)); diff != "" {
		t.Errorf("not the same in both orders:\n%s", diff)
	}
	if err := sum.Balance(); err != nil || sum.Expected != a.Expected+3 || sum.Outcomes[measure.OK] != 3 || sum.Good != a.Good+2 || sum.Eligible != a.Eligible+2 {
		t.Errorf("%+v, %v", sum, err)
	}
	if b.Outcomes[measure.OK] != 2 {
		t.Error("adding changed a part")
	}
}
