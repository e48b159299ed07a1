package canary

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// late is VoidLate if so is true.
func late(so bool) Void {
	if so {
		return VoidLate
	}
	return NotVoid
}

// A paired collects what a pairing passes on.
type paired struct {
	*Pairing
	passed []*Pair
}

func newPaired() *paired {
	p := &paired{}
	p.Pairing = NewPairing(NewCounters(), func(pair *Pair) { p.passed = append(p.passed, pair) })
	return p
}

// open is how many rows came due and were not passed on.
func (p *paired) open() int64 { return p.counters.Totals().Due - int64(len(p.passed)) }

// due lets a row come due on a side, by both clocks at one instant.
func (p *paired) due(side Side, id string, at time.Time) {
	p.Due(side, Due{Key: Key{ID: id}, At: at, Planned: at}, at)
}

func (p *paired) settle(side Side, id string, h Half) { p.Settle(side, Key{ID: id}, h) }

// In thousands of lives with random delays, drops, losses, closings, restarts, and instants in no order, each row that came due on either side is
// passed on exactly once, pairs are in the order of their instants, and a pair is void only for a reason of replayd's own.
func TestPairingLives(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 9))
		p := newPaired()
		start := time.Unix(0, 0)
		type event struct {
			at     time.Duration
			settle bool
			side   Side
			row    int
		}
		var events []event
		rows := 1 + rng.IntN(40)
		came, lost, causes := map[int]bool{}, map[int]bool{}, map[int]Void{}
		for row := range rows {
			due := time.Duration(row/3) * time.Second // bursts of three
			alone := rng.IntN(10) == 0                // as after a failure of the other side's session
			for _, side := range []Side{Baseline, Candidate} {
				if rng.IntN(12) == 0 { // never due there
					lost[row] = true
					continue
				}
				came[row] = true
				at := due + time.Duration(row)*time.Microsecond
				if alone && side == Candidate {
					at += time.Duration(rng.IntN(50)) * time.Second
				}
				events = append(events, event{at, false, side, row})
				if rng.IntN(12) == 0 { // goes on for ever
					lost[row] = true
					continue
				}
				events = append(events, event{at + time.Duration(1+rng.IntN(20_000))*time.Millisecond, true, side, row})
			}
		}
		slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
		restart := len(events)
		if rng.IntN(3) == 0 {
			restart = rng.IntN(len(events) + 1)
		}
		ids := map[string]int{}
		judge := func() {
			for _, pair := range p.passed {
				ids[pair.ID]++
			}
			if !slices.IsSortedFunc(p.passed, func(a, b *Pair) int { return a.At.Compare(b.At) }) {
				t.Fatalf("seed %d: pairs are not in the order of their instants", seed)
			}
		}
		over := false
		for n, e := range events {
			if n == restart {
				p.CloseAll(VoidRestarted)
				if n := p.open(); n != 0 {
					t.Fatalf("seed %d: %d open after a restart", seed, n)
				}
				over = true
			}
			id := fmt.Sprint(e.row)
			p.Close(start.Add(e.at - time.Minute))
			if !e.settle {
				at := start.Add(e.at)
				p.Due(e.side, Due{Key{ID: id}, at, start.Add(time.Duration(e.row/3) * time.Second), 0}, at)
				continue
			}
			h := Half{Request: Request{E2E: time.Duration(e.row + 1)}, Written: rng.IntN(4) > 0, Ready: start.Add(e.at)}
			switch rng.IntN(5) {
			case 0:
				h.Fault = true
			case 1:
				h.Void = Voids[rng.IntN(len(Voids))]
				if causes[e.row] == NotVoid || h.Void < causes[e.row] {
					causes[e.row] = h.Void
				}
			}
			p.settle(e.side, id, h)
		}
		p.Close(start.Add(time.Hour))
		p.CloseAll(VoidShutdown)
		judge()
		if n := p.open(); n != 0 || len(p.passed) != len(came) {
			t.Fatalf("seed %d: %d rows came due, %d were passed on, %d are open", seed, len(came), len(p.passed), n)
		}
		for row := range came {
			if n := ids[fmt.Sprint(row)]; n != 1 {
				t.Fatalf("seed %d: row %d was passed on %d times", seed, row, n)
			}
		}
		for _, pair := range p.passed {
			var row int
			_, _ = fmt.Sscan(pair.ID, &row)
			if want := lost[row] || causes[row] != NotVoid; !over && (pair.Void != NotVoid) != want {
				t.Fatalf("seed %d: row %d is void because of %q, want void: %t", seed, row, pair.Void, want)
			}
			for _, r := range pair.Requests {
				if r.E2E != 0 && r.E2E != time.Duration(row+1) {
					t.Fatalf("seed %d: row %d has the request of row %d", seed, row, r.E2E-1)
				}
			}
		}
	}
}

// A server's fault counts against its side. An answer of ten minutes holds the pairs behind it, however long it takes. A side that
// never says that a row came due is not waited for.
func TestPairing(t *testing.T) {
	p := newPaired()
	start := time.Unix(0, 0)
	half := Half{Request: Request{E2E: time.Second}, Written: true}
	for i := range 600 {
		id, at := fmt.Sprint(i), start.Add(time.Duration(i)*time.Second)
		p.due(Baseline, id, at)
		p.due(Candidate, id, at)
		p.settle(Candidate, id, half)
		if i > 0 {
			p.settle(Baseline, id, Half{Fault: true})
		}
	}
	if len(p.passed) != 0 || p.open() != 600 {
		t.Fatalf("%d passed, %d open behind the first", len(p.passed), p.open())
	}
	p.Close(start.Add(24 * time.Hour)) // the request goes on
	p.settle(Baseline, "0", half)
	if got := p.passed; len(got) != 600 || got[0].Requests[Baseline].Bad || !got[1].Requests[Baseline].Bad || got[1].Requests[Candidate].Bad || got[1].Void != NotVoid {
		t.Fatalf("%d passed; %+v, %+v", len(got), got[0], got[1])
	}
	p.due(Baseline, "late", start.Add(time.Hour))
	p.settle(Baseline, "late", half)
	p.Close(start.Add(time.Hour))
	if p.open() != 1 {
		t.Error("a row was closed before its time")
	}
	p.Close(start.Add(61 * time.Minute))
	p.due(Candidate, "late", start.Add(62*time.Minute))
	p.settle(Candidate, "late", half)
	if len(p.passed) != 601 || p.passed[600].Void != VoidOneSide || p.open() != 0 {
		t.Errorf("a row that the other side came to too late: %+v", p.passed[len(p.passed)-1])
	}
}

// The rest of a session that has failed on one side is dropped there at once, with instants long past or yet to come. The other side goes on alone, for
// however long. These rows are pairs, bad on the side that failed, and hold no others back meanwhile.
func TestRestOfAFailedSession(t *testing.T) {
	p := newPaired()
	start := time.Unix(0, 0)
	ok := Half{Request: Request{E2E: time.Second}, Written: true}
	for side := range 2 {
		p.due(Side(side), "first", start.Add(time.Hour))
	}
	p.settle(Baseline, "first", ok)
	p.settle(Candidate, "first", Half{Request: Request{Bad: true}, Written: true})
	for row := range 11 {
		id := fmt.Sprint(row)
		p.due(Candidate, id, start.Add(time.Duration(row)*time.Minute)) // planned before the first row
		p.settle(Candidate, id, Half{Fault: true})
	}
	for side := range 2 {
		p.due(Side(side), "other", start.Add(61*time.Minute))
		p.settle(Side(side), "other", ok)
	}
	if len(p.passed) != 2 {
		t.Fatalf("%d pairs were passed on, want the first row and that of another session", len(p.passed))
	}
	for row := range 11 {
		id, at := fmt.Sprint(row), start.Add(time.Duration(65+10*row)*time.Minute)
		p.Close(at.Add(-time.Minute))
		p.due(Baseline, id, at)
		p.settle(Baseline, id, Half{Request: ok.Request, Written: true, Ready: at})
	}
	if len(p.passed) != 13 {
		t.Fatalf("got %d pairs, want 13", len(p.passed))
	}
	for _, pair := range p.passed[2:] {
		if pair.Void != NotVoid || !pair.Requests[Candidate].Bad || pair.Requests[Baseline].Bad {
			t.Errorf("row %s: %+v", pair.ID, pair)
		}
	}
	want := [2]Requests{{Sent: 13}, {Sent: 2, Unsent: 11}}
	if got := p.counters.Totals(); got.Requests != want || got.Due != 13 {
		t.Errorf("got %+v, want %+v of 13 rows", got, want)
	}
}

// Lateness makes pairs with a failed request void as often as others, so that void pairs leave the share of bad requests as it is. A request that could
// not be sent for its server's sake is never late.
func TestLateFailures(t *testing.T) {
	ok, failed := Request{TTFT: 100 * time.Millisecond, E2E: time.Second}, Request{Bad: true}
	for _, c := range []struct {
		base, cand Half
		want       Void
	}{
		{Half{Request: ok, Late: 5 * time.Millisecond}, Half{Request: ok}, NotVoid},
		{Half{Request: ok, Late: 6 * time.Millisecond}, Half{Request: ok}, VoidLate},
		{Half{Request: ok, Late: 6 * time.Millisecond}, Half{Request: failed}, VoidLate},
		{Half{Request: ok}, Half{Request: failed, Late: 5 * time.Millisecond}, NotVoid},
		{Half{Request: ok}, Half{Request: failed, Late: 6 * time.Millisecond}, VoidLate},
		{Half{Request: Request{E2E: time.Second}}, Half{Request: failed, Late: 6 * time.Millisecond}, NotVoid}, // not streamed
		{Half{Request: ok}, Half{Fault: true}, NotVoid},
		{Half{Request: failed, Late: time.Second}, Half{Request: failed, Late: time.Second}, NotVoid}, // nothing to hold it against
	} {
		p := newPaired()
		at := time.Unix(100, 0)
		for side, h := range []Half{c.base, c.cand} {
			p.due(Side(side), "a", at)
			p.settle(Side(side), "a", h)
		}
		if got := p.passed[0].Void; got != c.want {
			t.Errorf("baseline %+v, candidate %+v: got %q, want %q", c.base, c.cand, got, c.want)
		}
	}
}

// Turns that have drifted apart by more than a tenth of their gap cannot be compared.
func TestDrift(t *testing.T) {
	for _, c := range []struct {
		gap, drift time.Duration
		void       Void
	}{{0, time.Hour, NotVoid}, {10 * time.Second, time.Second, NotVoid}, {10 * time.Second, -1001 * time.Millisecond, VoidApart}} {
		p := newPaired()
		at := time.Unix(100, 0)
		for side, ready := range []time.Time{at, at.Add(c.drift)} {
			p.Due(Side(side), Due{Key{ID: "a"}, at, at, c.gap}, at)
			p.settle(Side(side), "a", Half{Ready: ready, Written: true})
		}
		if len(p.passed) != 1 || p.passed[0].Void != c.void {
			t.Errorf("gap %v, drift %v: got %+v, want void: %q", c.gap, c.drift, p.passed[0], c.void)
		}
	}
}

// Rows of different instants are no pair, by both clocks: the wall clock may have been set between the readings of the two sides. Where a side has failed a
// session, the other one goes on at its own instants, and the rows that it sent alone count against the first.
func TestInstants(t *testing.T) {
	for _, c := range []struct {
		own, planned time.Duration
		half         Half
		void         Void
	}{
		{0, 0, Half{}, NotVoid},
		{time.Second, time.Second, Half{}, VoidApart},
		{10 * time.Millisecond, 0, Half{}, NotVoid},
		{0, 24 * time.Hour, Half{}, NotVoid},
		{time.Second, time.Second, Half{Void: VoidPaused}, VoidPaused},
		{time.Second, time.Second, Half{Fault: true}, NotVoid},
	} {
		p := newPaired()
		at := time.Unix(100, 0)
		p.due(Baseline, "a", at)
		p.Due(Candidate, Due{Key{ID: "a"}, at.Add(c.own), at.Add(c.planned), 0}, at)
		p.settle(Baseline, "a", Half{Ready: at})
		p.settle(Candidate, "a", c.half)
		if got := p.passed; len(got) != 1 || got[0].Void != c.void || got[0].Requests[Candidate].Bad != c.half.Fault {
			t.Errorf("%+v: got %+v", c, got)
		}
	}
}

// Rows of a trace that was replaced are void, and are no pairs with those of the new one.
func TestTraceChanges(t *testing.T) {
	p := newPaired()
	at := time.Unix(100, 0)
	comes := func(side Side, trace int) {
		k := Key{trace, "a"}
		p.Due(side, Due{k, at, at, 0}, at)
		p.Settle(side, k, Half{Written: true})
	}
	comes(Baseline, 0)
	p.Trace(1)
	comes(Baseline, 1)
	comes(Candidate, 0)
	comes(Candidate, 1)
	if got := p.passed; len(got) != 2 || got[0].Void != VoidTraceChanged || got[1].Void != NotVoid {
		t.Errorf("got %+v", got)
	}
}

// After the wall clock was set far back, rows come due again under the ids that they had.
func TestRowsComeAgain(t *testing.T) {
	p := newPaired()
	at := time.Unix(100, 0)
	for n := range 3 {
		for side := range 2 {
			p.due(Side(side), "a", at.Add(time.Duration(n)*time.Second))
		}
	}
	for n := range 3 {
		for side := range 2 {
			p.settle(Side(side), "a", Half{Written: true, Request: Request{E2E: time.Duration(n + 1)}})
		}
	}
	if len(p.passed) != 3 || len(p.rows) != 0 {
		t.Fatalf("%d passed, %d are left", len(p.passed), len(p.rows))
	}
	for n, pair := range p.passed {
		if pair.Void != NotVoid || pair.Requests[0].E2E != time.Duration(n+1) || pair.Requests[1].E2E != time.Duration(n+1) {
			t.Errorf("pair %d: %+v", n, pair)
		}
	}
}

// A side that is silent for ever costs bounded memory.
func TestOpenPairsAreBounded(t *testing.T) {
	p := newPaired()
	const rows = maxOpen + 5000
	for i := range rows {
		id := fmt.Sprint(i)
		p.due(Candidate, id, time.Unix(int64(i), 0))
		p.settle(Candidate, id, Half{Written: i%2 == 0})
	}
	if len(p.rows) != maxOpen || len(p.passed) != rows-maxOpen || len(p.holding) > 2*maxOpen {
		t.Errorf("%d open, %d passed", len(p.rows), len(p.passed))
	}
	for _, pair := range p.passed {
		if pair.Void != VoidOverflow {
			t.Fatalf("row %s is void because of %q", pair.ID, pair.Void)
		}
	}
	p.Close(time.Unix(rows, 0).Add(time.Hour))
	if p.CloseAll(VoidShutdown); len(p.passed) != rows {
		t.Errorf("%d of %d rows were passed on", len(p.passed), rows)
	}
}
