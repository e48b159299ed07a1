package measure

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
