package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"replayd/internal/scalar"
	"replayd/internal/trace"
)

// twoSessions has a chain, a graph and a row without a session.
func twoSessions() Source {
	return FromRecords([]trace.Record{
		{Number: 0, Offset: 1 * sec, Session: "chain"},
		{Number: 1, Offset: 2 * sec, Session: "graph", After: []trace.Edge{}},
		{Number: 2, Offset: 2 * sec, Session: "chain", Delay: 3 * sec},
		{Number: 3, Offset: 3 * sec},
		{Number: 4, Offset: 4 * sec, Session: "graph", After: []trace.Edge{{Row: 1, Wait: 2 * sec}}, Floating: true},
		{Number: 5, Offset: 9 * sec, Session: "graph", After: []trace.Edge{}},
	}, true)
}

// shown has of each row its number and pass, its session's start, its edges and its time since the session's begin.
func shown(list []Due) (out []string) {
	for _, d := range list {
		s := fmt.Sprintf("%d.%d at %v after %v", d.Number, d.Passes(), d.At.Sub(epoch), d.After)
		if d.Since > 0 {
			s += fmt.Sprintf(" since %v", d.Since)
		}
		if d.Last {
			s += " last"
		}
		out = append(out, s)
	}
	return out
}

func TestARateOfSessions(t *testing.T) {
	f := func(o Options, from time.Duration, want ...string) {
		t.Helper()
		o.Arrival, o.RateOf, o.Rate, o.Mode = Constant, Starts, 0.1, Once
		p := plan(t, twoSessions(), o)
		if diff := cmp.Diff(want, shown(dues(t, p, p.Loop(epoch, epoch), epoch.Add(from)))); diff != "" {
			t.Error(diff)
		}
	}
	whole := []string{
		"0.0 at 10s after []", "2.0 at 10s after [{0 3s}] last",
		"1.0 at 20s after []", "4.0 at 20s after [{1 2s}]", "5.0 at 20s after [] since 7s last",
		"3.0 at 30s after []",
	}
	f(Options{}, 0, whole...)
	f(Options{}, 10*sec, whole...)
	f(Options{}, 10*sec+1, whole[2:]...)
	f(Options{Duration: 20 * sec}, 0, whole[:5]...)
	f(Options{From: 2 * sec}, 0, "1.0 at 10s after []", "4.0 at 10s after [{1 2s}]", "5.0 at 10s after [] since 7s last", "3.0 at 20s after []")
	f(Options{From: 2 * sec, To: 3 * sec}, 0, "1.0 at 10s after []", "4.0 at 10s after [{1 2s}]", "5.0 at 10s after [] since 7s last")
	f(Options{TurnDelay: &TurnDelay{Scale: 0.5, Max: sec}, Rows: 4}, 0, "0.0 at 10s after []", "2.0 at 10s after [{0 1s}] last", "1.0 at 20s after []", "4.0 at 20s after [{1 1s}]")
	f(Options{Rows: 7}, 0, append(slices.Clone(whole), "0.1 at 40s after []")...)
}

// A loop holds the starts of its sessions, which may outlive it: in a second of this loop begin as many sessions as in any other.
func TestALoopOfSessions(t *testing.T) {
	p := plan(t, twoSessions(), Options{Pattern: Pattern{Arrival: Constant, RateOf: Starts, Rate: 0.1}})
	l := p.Loop(epoch, epoch)
	if p.Period(l) != 30*sec {
		t.Errorf("got %v", p.Period(l))
	}
	next, ok := p.Next(l, epoch)
	if !ok || next.Start.Sub(epoch) != 30*sec {
		t.Errorf("got %+v, %v", next, ok)
	}
	if got := dues(t, p, next, next.Start); len(got) != 6 || got[0].At.Sub(epoch) != 40*sec {
		t.Errorf("got %v", shown(got))
	}
}

func TestSessionsAtOnce(t *testing.T) {
	o := Options{Pattern: Pattern{Arrival: Sessions, AtOnce: 2}, Repeat: Repeat{Mode: Loops}}
	p := plan(t, twoSessions(), o)
	if !p.Closed() || p.SessionsAtOnce() != 2 {
		t.Errorf("got %v, %d", p.Closed(), p.SessionsAtOnce())
	}
	l := p.Loop(epoch, epoch)
	whole := []string{
		"0.0 at 0s after []", "2.0 at 0s after [{0 3s}] last",
		"1.0 at 0s after []", "4.0 at 0s after [{1 2s}]", "5.0 at 0s after [] since 7s last",
		"3.0 at 0s after []",
	}
	if diff := cmp.Diff(whole, shown(dues(t, p, l, epoch))); diff != "" {
		t.Error(diff)
	}
	next, _ := p.Next(l, epoch)
	if got := dues(t, p, next, epoch); len(got) != 6 || got[0].Passes() != 1 {
		t.Errorf("got %v", shown(got))
	}

	// The first two sessions begin in the middle, in the first loop.
	o.Within = scalar.Within{0.5, 0.5}
	p = plan(t, twoSessions(), o)
	if diff := cmp.Diff([]string{
		"2.0 at 0s after [] last",
		"4.0 at 0s after [{1 2s}]", "5.0 at 0s after [] since 5s last",
		"3.0 at 0s after []",
	}, shown(dues(t, p, l, epoch))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(6, len(dues(t, p, next, epoch))); diff != "" {
		t.Error(diff)
	}

	// With more places than the loop has sessions, those of the next loops begin in the middle as well, until each place was taken once.
	o.AtOnce = 4
	p = plan(t, twoSessions(), o)
	for loop, want := range []int{4, 5, 6} {
		if got := dues(t, p, Loop{Number: int64(loop)}, epoch); len(got) != want {
			t.Errorf("loop %d: want %d rows, got %v", loop, want, shown(got))
		}
	}
}

// Generated rows can be played session by session if they have an end.
func TestGeneratedSessions(t *testing.T) {
	n := 0
	src := Generated(4, func() func() trace.Record {
		n = 0
		return func() trace.Record {
			n++
			return trace.Record{Number: n - 1, Session: fmt.Sprint((n - 1) / 2)}
		}
	})
	p := plan(t, src, Options{Pattern: Pattern{Arrival: Constant, RateOf: Starts, Rate: 1}, Repeat: Repeat{Mode: Once}})
	want := []string{"0.0 at 1s after []", "1.0 at 1s after [{0 0s}] last", "2.0 at 2s after []", "3.0 at 2s after [{2 0s}] last"}
	if diff := cmp.Diff(want, shown(dues(t, p, p.Loop(epoch, epoch), epoch))); diff != "" {
		t.Error(diff)
	}
}

// The shares at which sessions begin lie evenly between the two bounds, and are the same each time.
func TestStartWithin(t *testing.T) {
	rows := make([]trace.Record, 0, 100_000)
	for i := range 1000 {
		for range 100 {
			rows = append(rows, trace.Record{Number: len(rows), Session: fmt.Sprint(i)})
		}
	}
	src := FromRecords(rows, false)
	var left [2]int
	for run := range left {
		p := plan(t, src, Options{
			Pattern: Pattern{Arrival: Sessions, AtOnce: 1000, Within: scalar.Within{0.25, 0.75}},
			Repeat:  Repeat{Mode: Once}, Seed: 7,
		})
		rows := map[string]int{}
		for _, d := range dues(t, p, p.Loop(epoch, epoch), epoch) {
			rows[d.Session]++
		}
		for session, n := range rows {
			if n < 25 || n > 75 {
				t.Fatalf("session %s: %d rows left", session, n)
			}
			left[run] += n
		}
	}
	if left[0] != left[1] || left[0] < 49_000 || left[0] > 52_000 {
		t.Errorf("rows left of 100,000: %v", left)
	}
}

// Each shard plays its own sessions, at the instants of the whole plan.
func TestShardsOfSessions(t *testing.T) {
	o := Options{Pattern: Pattern{Arrival: Poisson, RateOf: Starts, Rate: 1}, Repeat: Repeat{Mode: Once}, Seed: 3}
	whole := plan(t, twoSessions(), o)
	l := whole.Loop(epoch, epoch)
	want := shown(dues(t, whole, l, epoch))
	var got []string
	for i := range 3 {
		o.Shard = Shard{scalar.Auto(i), 3}
		p := plan(t, twoSessions(), o)
		got = append(got, shown(dues(t, p, l, epoch))...)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFaultsOfSessions(t *testing.T) {
	f := func(o Options, want string) {
		t.Helper()
		o.Speed, o.Mode = 1, Once
		if _, err := New(twoSessions(), o); err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	f(Options{Pattern: Pattern{Arrival: Exact, RateOf: Starts}},
		`rate_of: needs arrival constant, poisson or gamma for "sessions", got arrival exact`)
	f(Options{Pattern: Pattern{Arrival: Constant, Rate: 1, RateOf: "x"}}, `rate_of: want requests or sessions, got "x"`)
	f(Options{Pattern: Pattern{Arrival: Exact, AtOnce: 3}}, `sessions_at_once: needs arrival sessions, got arrival exact`)
	f(Options{Pattern: Pattern{Arrival: Sessions}}, `sessions_at_once: want 1 to 1048576 for arrival sessions, got 0`)
	f(Options{Pattern: Pattern{Arrival: Sessions, AtOnce: 3, Within: scalar.Within{0.8, 0.7}}},
		`start_within: want shares of 0 to 1, the first not above the second, got 0.8 to 0.7`)
	f(Options{Pattern: Pattern{Arrival: Exact, Within: scalar.Within{0, 1}}},
		`start_within: needs arrival sessions, got arrival exact`)
	f(Options{Pattern: Pattern{Arrival: Sessions, AtOnce: 3}, From: 8 * sec, To: 9 * sec},
		`trace.from: want a window in which a session begins, got 8s to 9s`)
	o := Options{Pattern: Pattern{Arrival: Sessions, AtOnce: 3, Speed: 1}, Repeat: Repeat{Mode: Once}, Rows: 3}
	want := `rows: want a number of rows to play them session by session, got rows without an end`
	if _, err := New(untimed(0), o); err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
