package schedule

import (
	"slices"
	"testing"
	"time"
)

// A closed plan has an order of rows, but no planned times.
func TestClosedPlans(t *testing.T) {
	f := func(src Source, o Options, loops int, want ...key) {
		t.Helper()
		o.Arrival = Concurrency
		p := plan(t, src, o)
		now := epoch.Add(time.Hour) // the time of the call does not matter
		l := p.Loop(epoch, now)
		if !p.Closed() || p.FollowsWall() || l.Number != 0 || !l.Start.Equal(epoch) {
			t.Errorf("%+v: closed %v, wall %v, loop %+v", o, p.Closed(), p.FollowsWall(), l)
		}
		var all []Due
		ids := map[string]bool{}
		for n := range loops {
			list := dues(t, p, l, now)
			if n == 0 && !slices.Equal(keys(list), want) {
				t.Errorf("%+v: %v, want %v", o, keys(list), want)
			}
			all = append(all, list...)
			if p.Period(l) != 0 || p.Position(l, now) != 0 {
				t.Errorf("%+v: period %v, position %v", o, p.Period(l), p.Position(l, now))
			}
			next, ok := p.Next(l, now.Add(time.Hour))
			if ok == (o.Mode == Once) {
				t.Fatalf("%+v: a loop follows loop %d: %v", o, n, ok)
			}
			if ok && (next.Number != l.Number+1 || !next.Start.Equal(l.Start)) {
				t.Errorf("%+v: after %+v comes %+v", o, l, next)
			}
			l = next
		}
		seen := map[key]bool{}
		for i, d := range all {
			if k := keys(all)[i]; ids[d.ID()] || seen[k] || !d.At.Equal(epoch) {
				t.Fatalf("%+v: row %s, %v, at %v", o, d.ID(), k, d.At)
			}
			ids[d.ID()], seen[keys(all)[i]] = true, true
		}
	}
	trace := at(0, sec, sec)
	f(trace, Options{Repeat: Repeat{Mode: Once}}, 1, key{0, 0}, key{1, 0}, key{2, 0})
	f(trace, Options{Repeat: Repeat{Mode: Once}, Rows: 5}, 1, key{0, 0}, key{1, 0}, key{2, 0}, key{0, 1}, key{1, 1})
	f(trace, Options{Repeat: Repeat{Mode: Once}, From: 1}, 1, key{1, 0}, key{2, 0})
	f(trace, Options{Repeat: Repeat{Mode: Once}, Shard: Shard{1, 2}, Rows: 5}, 1, key{1, 0}, key{1, 1})
	f(trace, Options{Repeat: Repeat{Align: WallClock}}, 4, key{0, 0}, key{1, 0}, key{2, 0})
	f(trace, Options{Repeat: Repeat{Align: Start}, Rows: 4}, 4, key{0, 0}, key{1, 0}, key{2, 0}, key{0, 1})
	f(untimed(2), Options{Rows: 2}, 3, key{0, 0}, key{1, 0})
	f(untimed(0), Options{Rows: 2}, 3, key{0, 0}, key{1, 0})

	// Passes are counted across loops: each loop of ten rows begins four passes of three rows.
	p := plan(t, trace, Options{Pattern: Pattern{Arrival: Concurrency}, Rows: 10})
	l, _ := p.Next(p.Loop(epoch, epoch), epoch)
	if got := dues(t, p, l, epoch); l.Pass != 4 || got[0].Passes() != 4 || got[9].Passes() != 7 || got[0].ID() != "1/0" || got[9].ID() != "1/0.3" {
		t.Errorf("loop %+v: passes %d and %d, %s and %s", l, got[0].Passes(), got[9].Passes(), got[0].ID(), got[9].ID())
	}

	// Without Rows, an endless source gives one endless loop.
	p = plan(t, untimed(0), Options{Pattern: Pattern{Arrival: Concurrency}, Duration: time.Minute})
	l = p.Loop(epoch, epoch)
	rows, err := p.Rows(l, epoch)
	for i := 0; err == nil && i < 1000; i++ {
		var d Due
		if d, err = rows.Next(); d.Number != i || d.Pass != 0 {
			t.Fatalf("row %d is %d of pass %d", i, d.Number, d.Pass)
		}
	}
	if _, ok := p.Next(l, epoch); ok || err != nil {
		t.Errorf("a loop follows one without an end; %v", err)
	}
}
