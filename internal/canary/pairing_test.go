package canary

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// In thousands of lives with random delays, losses and closings, each row that came due is passed on once and in order, a pair is void only where a
// half is replayd's doing, and nothing stays open.
func TestPairingLives(t *testing.T) {
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 9))
		var passed []*Pair
		p := NewPairing(func(pair *Pair) { passed = append(passed, pair) })
		start := time.Unix(0, 0)
		type event struct {
			at     time.Duration
			settle bool
			side   Side
			row    int
		}
		var events []event
		rows := 1 + rng.IntN(40)
		lost := map[int]bool{}
		for row := range rows {
			due := time.Duration(row/3) * time.Second // bursts of three
			for _, side := range []Side{Baseline, Candidate} {
				events = append(events, event{due + time.Duration(row)*time.Microsecond, false, side, row})
				if rng.IntN(10) == 0 {
					lost[row] = true
					continue
				}
				events = append(events, event{due + time.Duration(1+rng.IntN(20_000))*time.Millisecond, true, side, row})
			}
		}
		slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
		at := func(row int) time.Time { return start.Add(time.Duration(row/3) * time.Second) }
		causes := map[int]Cause{}
		for _, e := range events {
			id := fmt.Sprint(e.row)
			if !e.settle {
				p.Due(e.side, id, at(e.row), 0)
				continue
			}
			cause := []Cause{None, None, None, Server, Client}[rng.IntN(5)]
			causes[e.row] = max(causes[e.row], cause)
			p.Settle(e.side, id, Half{Request: Request{E2E: time.Duration(e.row + 1)}, Cause: cause})
			p.Settle(e.side, id, Half{Cause: Client}) // the second word does not count
		}
		p.Close(start.Add(time.Hour))
		p.CloseAll()
		if len(p.rows) != 0 || len(passed) != rows {
			t.Fatalf("seed %d: %d of %d rows passed, %d open", seed, len(passed), rows, len(p.rows))
		}
		for row, pair := range passed {
			if !pair.At.Equal(at(row)) {
				t.Fatalf("seed %d: row %d is at %v, want %v", seed, row, pair.At, at(row))
			}
			if want := lost[row] || causes[row] == Client; pair.Void != want {
				t.Fatalf("seed %d: row %d is void: %t, want %t", seed, row, pair.Void, want)
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
	var passed []*Pair
	p := NewPairing(func(pair *Pair) { passed = append(passed, pair) })
	start := time.Unix(0, 0)
	half := Half{Request: Request{E2E: time.Second}}
	for i := range 600 {
		id := fmt.Sprint(i)
		p.Due(Baseline, id, start.Add(time.Duration(i)*time.Second), 0)
		p.Due(Candidate, id, start.Add(time.Duration(i)*time.Second), 0)
		p.Settle(Candidate, id, half)
		if i > 0 {
			p.Settle(Baseline, id, Half{Cause: Server})
		}
	}
	if len(passed) != 0 || len(p.rows) != 600 {
		t.Fatalf("%d passed, %d open behind the first", len(passed), len(p.rows))
	}
	p.Close(start.Add(24 * time.Hour)) // the request goes on
	p.Settle(Baseline, "0", half)
	if len(passed) != 600 || passed[0].Requests[Baseline].Bad || !passed[1].Requests[Baseline].Bad || passed[1].Requests[Candidate].Bad || passed[1].Void {
		t.Fatalf("%d passed; %+v, %+v", len(passed), passed[0], passed[1])
	}
	p.Due(Baseline, "late", start.Add(time.Hour), 0)
	p.Settle(Baseline, "late", half)
	p.Close(start.Add(time.Hour))
	if len(p.rows) != 1 {
		t.Error("a row was closed before its time")
	}
	p.Close(start.Add(2 * time.Hour))
	p.Settle(Candidate, "late", half)
	if len(passed) != 601 || !passed[600].Void {
		t.Errorf("a row without an answer: %+v", passed[len(passed)-1])
	}
}

// Turns that have drifted apart by more than a tenth of their gap cannot be compared.
func TestDrift(t *testing.T) {
	for _, c := range []struct {
		gap, drift time.Duration
		void       bool
	}{{0, time.Hour, false}, {10 * time.Second, time.Second, false}, {10 * time.Second, -1001 * time.Millisecond, true}} {
		var got *Pair
		p := NewPairing(func(pair *Pair) { got = pair })
		at := time.Unix(100, 0)
		p.Due(Baseline, "a", at, c.gap)
		p.Settle(Baseline, "a", Half{Ready: at})
		p.Settle(Candidate, "a", Half{Ready: at.Add(c.drift)})
		if got == nil || got.Void != c.void {
			t.Errorf("gap %v, drift %v: got %+v, want void: %t", c.gap, c.drift, got, c.void)
		}
	}
}

// Where a side has failed a session, the other one goes on at its own instants. The rows that it sent alone count against the first.
func TestInstantsAfterAFailure(t *testing.T) {
	for _, c := range []struct {
		cause Cause
		void  bool
	}{{None, true}, {Client, true}, {Server, false}} {
		var got *Pair
		p := NewPairing(func(pair *Pair) { got = pair })
		at := time.Unix(100, 0)
		p.Due(Baseline, "a", at, 0)
		p.Due(Candidate, "a", at.Add(time.Second), 0)
		p.Settle(Baseline, "a", Half{Ready: at})
		p.Settle(Candidate, "a", Half{Cause: c.cause})
		if got == nil || got.Void != c.void || got.Requests[Candidate].Bad != (c.cause == Server) {
			t.Errorf("cause %v: got %+v, want void: %t", c.cause, got, c.void)
		}
	}
}

// A side that is silent for ever costs bounded memory.
func TestOpenPairsAreBounded(t *testing.T) {
	void := 0
	p := NewPairing(func(pair *Pair) {
		if pair.Void {
			void++
		}
	})
	const rows = mostOpen + 5000
	for i := range rows {
		id := fmt.Sprint(i)
		p.Due(Candidate, id, time.Unix(int64(i), 0), 0)
		p.Settle(Candidate, id, Half{})
	}
	if len(p.rows) != mostOpen || void != rows-mostOpen || cap(p.order) > 4*mostOpen {
		t.Errorf("%d open, %d void, room for %d", len(p.rows), void, cap(p.order))
	}
}
