package measure

import (
	"encoding/json"
	"slices"
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
	f(share, ok, 0, true) // cancelled requests are expected and not good
	share, ok = l.ServiceAttainment()
	f(share, ok, 0, false)
	share, ok = Ledger{}.Attainment()
	f(share, ok, 0, false)
}

// The JSON form leaves zero counts out of its maps, and reading it back gives the same ledger.
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

// Balance detects an error of one in any count.
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

// The sum of the ledgers of shards is the ledger of the whole, in either order. Add does not change its operands.
func TestLedgersOfShardsAddUp(t *testing.T) {
	a := Ledger{
		Expected: 9, InFlight: 1, Outcomes: map[Outcome]int64{OK: 4, HTTP5xx: 1}, Dropped: map[DropReason]int64{Overload: 3}, Filtered: 2, Good: 3, Eligible: 8,
		Retries: 1, PromptTokens: 50, Broken: map[string]int64{"ttft": 1},
	}
	b := Ledger{Expected: 3, Waiting: 1, Outcomes: map[Outcome]int64{OK: 2}, Good: 2, Eligible: 2, OutputTokens: 7}
	want := Ledger{
		Expected: 12, InFlight: 1, Waiting: 1, Outcomes: map[Outcome]int64{OK: 6, HTTP5xx: 1}, Dropped: map[DropReason]int64{Overload: 3}, Filtered: 2, Good: 5, Eligible: 10,
		Retries: 1, PromptTokens: 50, OutputTokens: 7, Broken: map[string]int64{"ttft": 1},
	}
	for _, sum := range []Ledger{a.Add(b), b.Add(a)} {
		if diff := cmp.Diff(want, sum); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if err := sum.Balance(); err != nil {
			t.Error(err)
		}
	}
	if a.Outcomes[OK] != 4 || b.Outcomes[OK] != 2 {
		t.Error("adding changed a part")
	}
}

// Eligible are all requests that were sent and not ended by replayd, rows dropped because of a failed session, and rows
// dropped by an overload unless the workload sheds load on purpose.
func TestEligibleByEnd(t *testing.T) {
	for _, o := range Outcomes() {
		if want := o != Cancelled && o != Aborted; o.Eligible() != want {
			t.Errorf("%s: want %v, got %v", o, want, o.Eligible())
		}
		if want := o != OK && o != Cancelled; o.Failed() != want {
			t.Errorf("%s failed: want %v, got %v", o, want, o.Failed())
		}
	}
	for _, why := range DropReasons() {
		for _, sheds := range []bool{false, true} {
			if want := why == SessionFailed || why == Overload && !sheds; why.Eligible(sheds) != want {
				t.Errorf("%s, sheds %v: want %v, got %v", why, sheds, want, why.Eligible(sheds))
			}
		}
	}
}

// No list contains a name twice.
func TestLists(t *testing.T) {
	for what, n := range map[string][2]int{
		"outcomes": {len(slices.Compact(slices.Sorted(slices.Values(Outcomes())))), NumOutcomes},
		"drops":    {len(slices.Compact(slices.Sorted(slices.Values(DropReasons())))), NumDropReasons},
	} {
		if n[0] != n[1] {
			t.Errorf("%s: want %d names, got %d", what, n[1], n[0])
		}
	}
}
