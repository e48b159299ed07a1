package measure

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
)

// lived is the ledger of a workload to which everything happened once: each outcome, each drop, a row that was filtered, one request in
// flight and one that waits.
func lived(t *testing.T, o WorkloadOptions) (Ledger, page) {
	t.Helper()
	reg := prometheus.NewPedanticRegistry()
	w := NewMeter(reg).Workload(labels, o)
	w.Expected(len(outcomes) + len(dropReasons) + 1)
	w.Filtered(1)
	for _, o := range outcomes {
		w.Sent()
		w.Finished(request("w/0/0", 0, o, 10*ms, 20*ms))
	}
	for _, why := range dropReasons {
		if why != Filtered {
			w.Dropped(why)
		}
	}
	w.Sent()
	return w.Ledger(), gather(t, reg)
}

func TestLedgerIsThePage(t *testing.T) {
	l, p := lived(t, WorkloadOptions{SLO: slo})
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

// Eligible is what the service had its part in. Of overload the workload decides.
func TestEligible(t *testing.T) {
	finished := int64(len(outcomes) - 2) // without cancelled and aborted
	for sheds, dropped := range map[bool]int64{false: 2, true: 1} {
		l, _ := lived(t, WorkloadOptions{Sheds: sheds})
		if want := finished + dropped; l.Eligible != want {
			t.Errorf("sheds %v: %d eligible, want %d", sheds, l.Eligible, want)
		}
	}
}

func TestShares(t *testing.T) {
	f := func(share float64, ok bool, want float64, defined bool) {
		t.Helper()
		if share != want || ok != defined {
			t.Errorf("%v, %v; want %v, %v", share, ok, want, defined)
		}
	}
	l := Ledger{Expected: 40, Good: 10, Eligible: 20}
	share, ok := l.Attainment()
	f(share, ok, 0.25, true)
	share, ok = l.ServiceAttainment()
	f(share, ok, 0.5, true)
	l = Ledger{Expected: 3, Outcomes: map[Outcome]int64{Cancelled: 3}}
	share, ok = l.Attainment()
	f(share, ok, 0, true) // what was cancelled was expected, and is not good
	share, ok = l.ServiceAttainment()
	f(share, ok, 0, false)
	share, ok = Ledger{}.Attainment()
	f(share, ok, 0, false)
}

// In JSON nothing that is 0 stands in a map, and what comes back is what was written.
func TestLedgerAsJSON(t *testing.T) {
	l := Ledger{
		Expected: 8, InFlight: 1, Waiting: 2, Outcomes: map[Outcome]int64{OK: 3, HTTP5xx: 1}, Dropped: map[DropReason]int64{Overload: 1},
		Filtered: 5, Good: 2, Eligible: 5,
	}
	b, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"expected":8,"in_flight":1,"waiting":2,"outcomes":{"http_5xx":1,"ok":3},"dropped":{"overload":1},"filtered":5,"good":2,"eligible":5}`
	if string(b) != want {
		t.Errorf("\n got %s\nwant %s", b, want)
	}
	var back Ledger
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(l, back); diff != "" {
		t.Error(diff)
	}
	w := NewMeter(prometheus.NewRegistry()).Workload(labels, WorkloadOptions{})
	if b, err = json.Marshal(w.Ledger()); err != nil || string(b) != `{"expected":0,"in_flight":0,"waiting":0,"outcomes":{},"dropped":{},"filtered":0,"good":0,"eligible":0}` {
		t.Errorf("born: %s, %v", b, err)
	}
}

// The ledgers of shards add up to that of the whole, whatever each of them has.
func TestLedgersAddUp(t *testing.T) {
	a, _ := lived(t, WorkloadOptions{})
	b := Ledger{Expected: 3, Waiting: 1, Outcomes: map[Outcome]int64{OK: 2}, Dropped: map[DropReason]int64{}, Good: 2, Eligible: 2, OutputTokens: 7}
	sum := b.Add(a)
	if diff := cmp.Diff(sum, a.Add(b)); diff != "" {
		t.Errorf("not the same in both orders:\n%s", diff)
	}
	if err := sum.Balance(); err != nil || sum.Expected != a.Expected+3 || sum.Outcomes[OK] != 3 || sum.Good != a.Good+2 || sum.Eligible != a.Eligible+2 {
		t.Errorf("%+v, %v", sum, err)
	}
	if b.Outcomes[OK] != 2 {
		t.Error("adding changed a part")
	}
}

// One off in any count is found.
func TestBalance(t *testing.T) {
	l := Ledger{
		Expected: 4, InFlight: 1, Outcomes: map[Outcome]int64{OK: 2}, Dropped: map[DropReason]int64{Overload: 1}, Good: 2, Eligible: 3,
	}
	if err := l.Balance(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(l *Ledger){
		"expected":  func(l *Ledger) { l.Expected++ },
		"in flight": func(l *Ledger) { l.InFlight-- },
		"waiting":   func(l *Ledger) { l.Waiting++ },
		"outcomes":  func(l *Ledger) { l.Outcomes = map[Outcome]int64{OK: 3} },
		"dropped":   func(l *Ledger) { l.Dropped = nil },
		"good":      func(l *Ledger) { l.Good++ },
		"eligible":  func(l *Ledger) { l.Eligible = 1 },
		"filtered":  func(l *Ledger) { l.Filtered = -1 },
		"negative":  func(l *Ledger) { l.Waiting, l.InFlight = -1, 2 },
	} {
		wrong := l
		if change(&wrong); wrong.Balance() == nil {
			t.Errorf("%s: no error for %+v", name, wrong)
		}
	}
}
