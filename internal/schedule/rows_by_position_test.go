package schedule

import (
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"replayd/internal/scalar"
	"replayd/internal/trace"
)

// A key identifies one occurrence of a row: its number and its pass.
type key struct {
	number int
	pass   int64
}

func keys(list []Due) []key {
	out := make([]key, len(list))
	for i, d := range list {
		out[i] = key{d.Number, d.Passes()}
	}
	return out
}

func TestARateTakesTheTracesOrderAndNotItsTimes(t *testing.T) {
	src := at(0, 5*sec, 5*sec, 700*sec)
	f := func(o Options, want ...key) {
		t.Helper()
		o.Arrival, o.Mode, o.Rate = Constant, Once, 10
		p := plan(t, src, o)
		got := dues(t, p, p.Loop(epoch, epoch), epoch)
		if !slices.Equal(keys(got), want) {
			t.Errorf("%+v: %v, want %v", o, keys(got), want)
		}
		for i, d := range got {
			if d.At.Sub(epoch) != time.Duration(i+1)*100*ms {
				t.Errorf("%+v: row %d after %v", o, i, d.At.Sub(epoch))
			}
		}
	}
	f(Options{}, key{0, 0}, key{1, 0}, key{2, 0}, key{3, 0})
	f(Options{Rows: 2}, key{0, 0}, key{1, 0})
	f(Options{Rows: 6}, key{0, 0}, key{1, 0}, key{2, 0}, key{3, 0}, key{0, 1}, key{1, 1})
	f(Options{Duration: 300 * ms}, key{0, 0}, key{1, 0}, key{2, 0}) // the third row is due exactly at the end
	f(Options{Duration: 300*ms - 1}, key{0, 0}, key{1, 0})
	f(Options{Duration: 300 * ms, Rows: 2}, key{0, 0}, key{1, 0})
	f(Options{From: 1, To: 6 * sec}, key{1, 0}, key{2, 0})
	f(Options{From: 1, To: 6 * sec, Rows: 5}, key{1, 0}, key{2, 0}, key{1, 1}, key{2, 1}, key{1, 2})
	f(Options{From: 6 * sec, Rows: 2}, key{3, 0}, key{3, 1})
}

func TestRowsAndDurationOfATraceWithItsOwnTimes(t *testing.T) {
	src := at(0, 10*sec, 10*sec, 10*sec, 40*sec)
	f := func(o Options, want ...time.Duration) {
		t.Helper()
		o.Mode = Once
		p := plan(t, src, o)
		all := instants(t, p)
		if !slices.Equal(all, want) || p.length != want[len(want)-1] {
			t.Errorf("%+v: %v to %v, want %v", o, all, p.length, want)
		}
		for i, at := range want { // join at each row
			l := p.Loop(epoch, epoch)
			first := slices.Index(want, at)
			if got := after(dues(t, p, l, l.Start.Add(at))); !slices.Equal(got, want[first:]) {
				t.Errorf("%+v: from row %d: %v, want %v", o, i, got, want[first:])
			}
		}
	}
	f(Options{Rows: 1}, 0)
	f(Options{Rows: 3}, 0, 10*sec, 10*sec)
	f(Options{Rows: 5}, 0, 10*sec, 10*sec, 10*sec, 40*sec)
	f(Options{Rows: 2, From: 10 * sec}, 0, 0)
	f(Options{Pattern: Pattern{Speed: 2}, Rows: 2, From: 5 * sec}, 2500*ms, 2500*ms)
	f(Options{Duration: 10 * sec}, 0)
	f(Options{Duration: 10*sec + 1}, 0, 10*sec, 10*sec, 10*sec)
	f(Options{Pattern: Pattern{Speed: 2}, Duration: 5*sec + 1}, 0, 5*sec, 5*sec, 5*sec)
	f(Options{Duration: time.Hour, Rows: 2}, 0, 10*sec)
	// The tick is 20 s, the median of the gaps 10 s and 30 s: the rows at 10 s are spread over 20 s.
	f(Options{Pattern: Pattern{Arrival: Spread}, Rows: 3}, 0, 10*sec, 10*sec+20*sec/3)
	f(Options{Pattern: Pattern{Arrival: Spread}, Duration: 20 * sec}, 0, 10*sec, 10*sec+20*sec/3)
	f(Options{Pattern: Pattern{Arrival: Spread}, Duration: 10*sec + 20*sec/3, Rows: 4}, 0, 10*sec)
	// At speed 7, Duration covers 7 ns of the trace. The row at 4 ns is due at 0.57 ns, which is rounded to 1 ns
	// and thus not within Duration. The row before it is the last.
	src = at(0, 4, 100)
	f(Options{Pattern: Pattern{Speed: 7}, Duration: 1}, 0)
}

// rateOptions returns random options of a plan with a rate.
func rateOptions(rng *rand.Rand) Options {
	o := Options{
		Pattern: Pattern{Arrival: []Arrival{Constant, Poisson, Gamma, Users}[rng.IntN(4)], Speed: 1, Rate: 0.5 + 10*rng.Float64()},
		Repeat:  Repeat{Mode: Loops, Align: []Align{WallClock, Start}[rng.IntN(2)]},
		Seed:    rng.Uint64(),
	}
	if rng.IntN(2) == 0 {
		o.Rate = float64(1 + rng.IntN(10))
	}
	if o.Arrival == Gamma {
		o.Burstiness = []float64{0.1, 1, 7}[rng.IntN(3)]
	}
	if o.Arrival == Users {
		o.Users = 1 + rng.IntN(9)
	}
	if rng.IntN(2) == 0 {
		o.Rows = 1 + rng.IntN(500)
	}
	if rng.IntN(2) == 0 {
		o.Duration = 10*sec + time.Duration(rng.IntN(60))*sec
	}
	if o.Arrival != Users && rng.IntN(2) == 0 {
		o.Stages = []Stage{
			{Rate: 20 * rng.Float64(), Over: time.Duration(rng.IntN(20)) * sec, Hold: time.Duration(rng.IntN(10)) * sec},
			{Rate: 1 + 20*rng.Float64(), Over: time.Duration(rng.IntN(20)) * sec},
		}
	}
	return o
}

func TestPropertiesOfRandomPlansAtARate(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for range 300 {
		rows := random(rng)
		src := memory(rows)
		o := rateOptions(rng)
		if rng.IntN(3) == 0 {
			o.From = time.Duration(rng.Int64N(int64(src.Last) + 1))
		}
		p, err := New(src, o)
		if err != nil { // no row is due within Duration
			continue
		}
		l := p.Loop(epoch, epoch.Add(time.Duration(rng.Int64N(int64(1000*day)))))
		all := dues(t, p, l, l.Start)

		inWindow := 0
		for _, r := range rows {
			if r.Offset >= o.From {
				inWindow++
			}
		}
		most := inWindow
		if o.Rows > 0 {
			most = o.Rows
		}
		if len(all) != p.rows || len(all) > most || o.Duration == 0 && len(all) != most {
			t.Fatalf("%+v: %d rows, want %d", o, len(all), most)
		}
		ids := map[string]bool{}
		for i, d := range all {
			at := d.At.Sub(l.Start)
			switch {
			case i > 0 && d.At.Before(all[i-1].At) || at < 0 || at > p.every || at == p.every && !p.o.byGaps():
				t.Fatalf("%+v: row %d at %v, in a loop of %v", o, i, at, p.every)
			case o.Duration > 0 && at > o.Duration:
				t.Fatalf("%+v: row %d at %v, after the end", o, i, at)
			case ids[d.ID()]:
				t.Fatalf("%+v: %s twice", o, d.ID())
			case o.Arrival != Users && d.Number != rows[len(rows)-inWindow+i%inWindow].Number:
				t.Fatalf("%+v: place %d has row %d", o, i, d.Number)
			}
			ids[d.ID()] = true
		}

		// Joining at any time gives the rest of the rows. The time at which a loop ends belongs to that loop.
		for range 10 {
			from := l.Start.Add(time.Duration(rng.Int64N(int64(p.every)) + 1))
			if rng.IntN(2) == 0 {
				from = all[rng.IntN(len(all))].At
			}
			if p.o.byGaps() && from.After(l.Start) {
				if got := p.Loop(l.Start.Add(-time.Duration(l.Number)*p.every), from); got.Number != l.Number || !got.Start.Equal(l.Start) {
					t.Fatalf("%+v: %v is in loop %d from %v, want %d from %v", o, from, got.Number, got.Start, l.Number, l.Start)
				}
			}
			tail := slices.IndexFunc(all, func(d Due) bool { return !d.At.Before(from) })
			if tail < 0 {
				tail = len(all)
			}
			if got := dues(t, p, l, from); !slices.EqualFunc(got, all[tail:], alike) {
				t.Fatalf("%+v: from %v: %d rows, want the last %d", o, from.Sub(l.Start), len(got), len(all)-tail)
			}
		}

		// The next loop has the same rows at the same times since its start.
		next, ok := p.Next(l, l.Start)
		again := dues(t, p, next, next.Start)
		if !ok || next.Number != l.Number+1 || !next.Start.Equal(l.Start.Add(p.every)) || !slices.EqualFunc(all, again, func(a, b Due) bool {
			return a.Number == b.Number && a.Pass == b.Pass && a.At.Sub(l.Start) == b.At.Sub(next.Start)
		}) {
			t.Fatalf("%+v: the next loop differs", o)
		}

		// The shards together have all rows at the same times, and a session is on one shard.
		of := 1 + rng.IntN(5)
		var union []Due
		home := map[string]int{}
		for i := range of {
			o.Shard = Shard{scalar.Auto(i), of}
			sharded, err := New(src, o)
			if err != nil || sharded.every != p.every {
				t.Fatalf("%+v: %v; every %v, the whole plan's is %v", o, err, sharded.every, p.every)
			}
			for _, d := range dues(t, sharded, l, l.Start) {
				if on, ok := home[d.Session]; ok && on != i && d.Session != "" {
					t.Fatalf("%+v: session %s is on shards %d and %d", o, d.Session, on, i)
				}
				home[d.Session] = i
				union = append(union, d)
			}
		}
		place := map[string]int{}
		for i, d := range all {
			place[d.ID()] = i
		}
		slices.SortFunc(union, func(a, b Due) int { return place[a.ID()] - place[b.ID()] })
		if !slices.EqualFunc(union, all, alike) {
			t.Fatalf("%+v: %d shards have %d rows, want %d", o, of, len(union), len(all))
		}
	}
}

func alike(a, b Due) bool {
	return same(a, b) && a.Pass == b.Pass && a.Gap == b.Gap && a.Turn == b.Turn
}

func TestLoopsAtARateGoOnAsIfThereWasNoBorder(t *testing.T) {
	f := func(o Options, every time.Duration) {
		t.Helper()
		p := plan(t, untimed(100), o)
		if p.every != every || p.Period(Loop{}) != every {
			t.Errorf("%+v: every %v, want %v", o, p.every, every)
		}
	}
	f(Options{Pattern: Pattern{Arrival: Constant, Rate: 10}}, 10*sec)
	f(Options{Pattern: Pattern{Arrival: Constant, Rate: 10}, Repeat: Repeat{Every: 30 * sec}}, 30*sec)
	f(Options{Pattern: Pattern{Arrival: Constant, Rate: 10}, Rows: 250}, 25*sec)
	// the next row would be due after the end
	f(Options{Pattern: Pattern{Arrival: Constant, Rate: 10}, Duration: 3500*ms + 1}, 3500*ms+1)
	f(Options{Pattern: Pattern{Arrival: Constant, Rate: 10}, Duration: 20 * sec}, 10*sec)
	f(Options{Pattern: Pattern{Arrival: Constant, Rate: 10}, Repeat: Repeat{Align: WallClock}}, time.Minute)
	// the last row is at the border
	f(Options{Pattern: Pattern{Arrival: Constant, Rate: 10}, Repeat: Repeat{Align: WallClock}, Rows: 600}, time.Minute)
	f(Options{Pattern: Pattern{Arrival: Constant, Rate: 10}, Repeat: Repeat{Align: WallClock}, Rows: 601}, 2*time.Minute)
	f(Options{Pattern: Pattern{Arrival: Constant, Rate: 10}, Repeat: Repeat{Align: WallClock, Every: 10 * sec}}, 10*sec)
	f(Options{Pattern: Pattern{Arrival: Constant, Stages: []Stage{{Rate: 10, Over: 10 * sec}}}}, 15*sec) // 50 rows in the ramp
	f(Options{Pattern: Pattern{Arrival: Constant, Stages: []Stage{{Rate: 10, Hold: 3 * sec}, {Rate: 0}}}}, 3*sec)
	f(Options{Pattern: Pattern{Arrival: Constant, Stages: []Stage{{Rate: 10, Hold: 3 * sec}, {Rate: 0}}}, Duration: 2 * sec}, 2*sec)
	f(Options{Pattern: Pattern{Arrival: Users, Users: 5, Rate: 10}}, 10*sec) // the first row is at 0, the last at 9.9 s
	f(Options{Pattern: Pattern{Arrival: Users, Users: 5, Rate: 10}, Repeat: Repeat{Align: WallClock}, Rows: 600}, time.Minute)

	// The second loop of Poisson arrivals starts at the last row of the first loop and begins with the same first
	// gap.
	p := plan(t, untimed(100), Options{Pattern: Pattern{Arrival: Poisson, Rate: 10}, Seed: 5})
	l := p.Loop(epoch, epoch)
	next, _ := p.Next(l, epoch)
	all, again := dues(t, p, l, l.Start), dues(t, p, next, next.Start)
	if !all[99].At.Equal(next.Start) || again[0].At.Sub(next.Start) != all[0].At.Sub(l.Start) {
		t.Errorf("the last row at %v, the next loop from %v, its first row at %v", all[99].At, next.Start, again[0].At)
	}
	if got := p.Position(l, l.Start.Add(2*sec)); got != 2*sec {
		t.Errorf("position %v after 2 s", got)
	}
	if got := p.Position(l, l.Start.Add(time.Hour)); got != p.length {
		t.Errorf("position %v after the last row, want %v", got, p.length)
	}
}

func TestARateByCron(t *testing.T) {
	p := plan(t, untimed(0), Options{
		Pattern: Pattern{Arrival: Constant, Rate: 2},
		Repeat:  Repeat{Mode: Cron, Cron: "0 3 * * *", Timezone: "Europe/Berlin"}, Duration: 10 * time.Minute,
	})
	l := p.Loop(time.Time{}, utc("2026-03-28 12:00:00"))
	all := dues(t, p, l, l.Start)
	if !l.Start.Equal(utc("2026-03-29 01:00:00")) || len(all) != 1200 || all[1199].At.Sub(l.Start) != 10*time.Minute {
		t.Errorf("%d rows from %v to %v", len(all), l.Start, all[len(all)-1].At)
	}
}

func TestFailuresOfASourceAtARateArePassedOn(t *testing.T) {
	broken := errors.New("broken")
	good := FromRecords([]trace.Record{{Number: 0}, {Number: 1, Session: "a"}, {Number: 2}}, false)
	f := func(o Options, count int) {
		t.Helper()
		for calls := range 14 {
			n := 0
			src := good
			src.Count = count
			src.Rows = func(from time.Duration) (func() (trace.Record, error), error) {
				next, _ := good.Rows(from)
				if n++; n > calls {
					return nil, broken
				}
				return func() (trace.Record, error) {
					if n++; n > calls {
						return trace.Record{}, broken
					}
					return next()
				}, nil
			}
			o.Speed, o.Mode, o.Rows = 1, Once, 100
			p, err := New(src, o)
			if err == nil {
				l := p.Loop(epoch, epoch)
				var rows *Rows
				if rows, err = p.Rows(l, l.Start.Add(5*sec)); err == nil {
					for err == nil {
						_, err = rows.Next()
					}
				}
			}
			if !errors.Is(err, broken) && p == nil || p != nil && p.users == nil && !errors.Is(err, broken) {
				t.Errorf("%+v after %d calls: got %v", o, calls, err)
			}
		}
	}
	for _, count := range []int{0, 3} {
		f(Options{Pattern: Pattern{Arrival: Constant, Rate: 1}}, count)
		f(Options{Pattern: Pattern{Arrival: Concurrency}}, count)
		f(Options{Pattern: Pattern{Arrival: Users, Users: 2, Rate: 1}}, count)
	}

	// A source that has no rows when it is opened again.
	gone := good
	reads := 0
	gone.Rows = func(from time.Duration) (func() (trace.Record, error), error) {
		if reads++; reads == 1 {
			return good.Rows(from)
		}
		return func() (trace.Record, error) { return trace.Record{}, io.EOF }, nil
	}
	p := plan(t, gone, Options{Pattern: Pattern{Arrival: Constant, Rate: 1}, Repeat: Repeat{Mode: Once}, Rows: 9})
	reads = 1
	rows, err := p.Rows(p.Loop(epoch, epoch), epoch)
	if err == nil {
		_, err = rows.Next()
	}
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

func TestSourcesInMemory(t *testing.T) {
	rows := []trace.Record{{Number: 0, Offset: 4 * sec}, {Number: 1}, {Number: 2, Offset: 4 * sec}, {Number: 3, Offset: sec}}
	src := FromRecords(rows, true) // gaps 1 and 3 s
	if src.Last != 4*sec || src.Tick != 2*sec || !src.HasTimestamps || src.Count != 4 {
		t.Errorf("%+v", src)
	}
	p := plan(t, src, Options{Repeat: Repeat{Mode: Once}})
	if got := dues(t, p, p.Loop(epoch, epoch), epoch.Add(sec)); !slices.Equal(keys(got), []key{{3, 0}, {0, 0}, {2, 0}}) {
		t.Errorf("%v", keys(got))
	}
	if rows[0].Number != 0 {
		t.Error("the caller's rows were moved")
	}
	p = plan(t, FromRecords(rows, false), Options{Pattern: Pattern{Arrival: Constant, Rate: 1}, Repeat: Repeat{Mode: Once}})
	if got := dues(t, p, p.Loop(epoch, epoch), epoch); !slices.Equal(keys(got), []key{{0, 0}, {1, 0}, {2, 0}, {3, 0}}) {
		t.Errorf("%v", keys(got))
	}
	p = plan(t, untimed(3), Options{Pattern: Pattern{Arrival: Constant, Rate: 1}, Repeat: Repeat{Mode: Once}, Rows: 7})
	if got := dues(t, p, p.Loop(epoch, epoch), epoch); !slices.Equal(keys(got), []key{{0, 0}, {1, 0}, {2, 0}, {0, 1}, {1, 1}, {2, 1}, {0, 2}}) {
		t.Errorf("%v", keys(got))
	}
	for i, want := range []string{"0/0", "0/1", "0/2", "0/0.1", "0/1.1", "0/2.1", "0/0.2"} {
		if d := dues(t, p, p.Loop(epoch, epoch), epoch)[i]; d.ID() != want {
			t.Errorf("row %d: %s, want %s", i, d.ID(), want)
		}
	}
	p = plan(t, untimed(0), Options{Pattern: Pattern{Arrival: Constant, Rate: 1}, Repeat: Repeat{Mode: Once}, Rows: 7})
	if got := dues(t, p, p.Loop(epoch, epoch), epoch.Add(6*sec)); len(got) != 2 || got[1].Number != 6 || got[1].Pass != 0 {
		t.Errorf("%v", keys(got))
	}
}
