package measure

import (
	"math/rand/v2"
	"testing"
	"time"
)

// For random rows one after the other, with instants in any order, no part is negative and the parts add up to the time from the session's
// begin to the path's end exactly. The path does not change when another row goes on from the same one.
func TestPathsAddUp(t *testing.T) {
	for seed := range uint64(2000) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		draw := func(after time.Time) time.Time {
			return after.Add(time.Duration(rnd.Int64N(int64(time.Second))) - 100*milli)
		}
		var p SessionPath
		at := begin.Add(time.Duration(rnd.Int64N(3)) * time.Minute)
		for range 1 + rnd.IntN(20) {
			ready := draw(at)
			write := draw(ready)
			first := draw(write)
			if rnd.IntN(4) == 0 {
				first = time.Time{}
			}
			at = at.Add(time.Duration(rnd.Int64N(int64(3 * time.Second))))
			before := p
			_ = p.Then(at, at, at, at.Add(time.Hour))
			if p != before {
				t.Fatalf("seed %d: the path has changed from %+v to %+v", seed, before, p)
			}
			p = p.Then(ready, write, first, at)
		}
		begun := begin.Add(-time.Duration(rnd.Int64N(int64(time.Minute))))
		spent := p.Since(begun)
		for part, d := range spent {
			if d < 0 {
				t.Fatalf("seed %d: %v of %v", seed, SessionPart(part), d)
			}
		}
		if got, want := spent.Sum(), p.End().Sub(begun); got != want {
			t.Fatalf("seed %d: %v add up to %v, want %v", seed, spent, got, want)
		}
	}
}

func TestPath(t *testing.T) {
	at := func(ms int) time.Time { return begin.Add(time.Duration(ms) * milli) }
	f := func(name string, p SessionPath, want ...time.Duration) {
		t.Helper()
		got := p.Since(begin)
		for part, d := range got {
			if d != want[part]*milli {
				t.Errorf("%s: %v is %v, want %v", name, SessionPart(part), d, want[part]*milli)
			}
		}
	}
	var none SessionPath
	f("no row", none, 0, 0, 0, 0)
	root := none.Then(at(0), at(3), at(10), at(30))
	f("a row", root, 0, 3, 7, 20)
	f("a later root", none.Then(at(100), at(103), at(110), at(130)), 100, 3, 7, 20)
	f("another after it", root.Then(at(50), at(51), at(60), at(100)), 20, 4, 16, 60)
	f("an answer that is not streamed", root.Then(at(30), at(31), time.Time{}, at(100)), 0, 4, 76, 20)
	f("a request that was never written", root.Then(at(40), time.Time{}, time.Time{}, at(50)), 10, 3, 17, 20)
}

func TestSessionJudgment(t *testing.T) {
	bound := SessionSLO{Makespan: time.Minute}
	f := func(name string, b SessionSLO, o SessionOutcome, makespan time.Duration, want bool) {
		t.Helper()
		if got := b.Good(&Session{Outcome: o, Time: SessionTime{Decode: makespan}}); got != want {
			t.Errorf("%s: good is %v, want %v", name, got, want)
		}
	}
	f("at the bound", bound, SessionOK, time.Minute, true)
	f("over it", bound, SessionOK, time.Minute+1, false)
	f("failed in time", bound, SessionNotOK, time.Second, false)
	f("cut in time", bound, SessionCut, time.Second, false)
	f("no bound", SessionSLO{}, SessionOK, 99*time.Hour, true)
}
