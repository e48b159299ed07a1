package schedule

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestWallLoopsLieAtMultiplesOfEvery(t *testing.T) {
	f := func(every, offset time.Duration, now time.Time, number int64, start time.Time) {
		t.Helper()
		p := plan(t, at(0, sec), Options{Repeat: Repeat{Align: WallClock, Every: every, Offset: offset}})
		got := p.Loop(epoch, now)
		if got.Number != number || !got.Start.Equal(start) {
			t.Errorf("every %v offset %v at %v: loop %d from %v, want %d from %v", every, offset, now, got.Number, got.Start, number, start)
		}
	}
	unix := func(s int64) time.Time { return time.Unix(s, 0) }
	f(time.Hour, 0, unix(36_005), 10, unix(36_000))
	f(time.Hour, 0, unix(36_000), 10, unix(36_000))
	f(time.Hour, 0, unix(36_000).Add(-1), 9, unix(32_400))
	f(time.Hour, 10*time.Minute, unix(36_005), 9, unix(33_000))
	f(time.Hour, 10*time.Minute, unix(36_600), 10, unix(36_600))
	f(time.Hour, -10*time.Minute, unix(36_005), 10, unix(35_400))
	f(time.Hour, 0, unix(0), 0, unix(0))
	f(time.Hour, 0, unix(-1), -1, unix(-3600))
	f(time.Hour, 0, unix(-3600), -1, unix(-3600))
	f(time.Hour, 0, unix(-3601), -2, unix(-7200))
	f(7*sec, 0, unix(1_700_000_000), 242_857_142, unix(1_699_999_994))
	f(day, 0, time.Date(2026, 3, 29, 12, 0, 0, 0, time.UTC), 20_541, time.Date(2026, 3, 29, 0, 0, 0, 0, time.UTC))
}

func TestSummerTimeDoesNotMatter(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err) // the program has the zones in itself
	}
	for _, align := range []Align{WallClock, Start} {
		p := plan(t, at(0, sec), Options{Repeat: Repeat{Align: align, Every: time.Hour, Offset: 0}})
		start := time.Date(2026, 3, 28, 22, 30, 0, 0, time.UTC) // clocks go from 2:00 to 3:00 at 1:00 UTC on the 29th
		for m := range 600 {
			now := start.Add(time.Duration(m) * time.Minute)
			here, there := p.Loop(start, now), p.Loop(start.In(berlin), now.In(berlin))
			if here.Number != there.Number || !here.Start.Equal(there.Start) {
				t.Fatalf("%s at %v: %v, in Berlin %v", align, now, here, there)
			}
		}
	}
}

func TestLoopsTileTimeWithoutAGap(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		every := time.Duration(1+rng.Int64N(int64(3*day))) + sec
		o := Options{Repeat: Repeat{Align: []Align{WallClock, Start}[rng.IntN(2)], Every: every}}
		if o.Align == WallClock {
			o.Offset = time.Duration(rng.Int64N(int64(every)))
		}
		p := plan(t, at(0, sec), o)
		epoch := time.Unix(rng.Int64N(4e9)-2e9, rng.Int64N(1e9)) // from 1906
		now := epoch.Add(time.Duration(rng.Int64N(int64(1000 * day))))
		l := p.Loop(epoch, now)
		if end := l.Start.Add(every); now.Before(l.Start) || !now.Before(end) {
			t.Fatalf("%+v: the loop of %v is %v to %v", o, now, l.Start, end)
		}
		border := l.Start.Add(every)
		next, ok := p.Next(l, now)
		if !ok || next.Number != l.Number+1 || !next.Start.Equal(border) {
			t.Fatalf("%+v: after loop %d that ends at %v comes %d at %v", o, l.Number, border, next.Number, next.Start)
		}
		// At any time of the two loops, the plan returns the same loops.
		for at, want := range map[time.Time]Loop{l.Start: l, border.Add(-1): l, border: next, border.Add(every - 1): next} {
			if got := p.Loop(epoch, at); got.Number != want.Number || !got.Start.Equal(want.Start) {
				t.Fatalf("%+v: at %v loop %d from %v, want %d from %v", o, at, got.Number, got.Start, want.Number, want.Start)
			}
		}
	}
}

func TestLoopsFromAnEpoch(t *testing.T) {
	p := plan(t, at(0, sec), Options{Repeat: Repeat{Align: Start, Every: time.Minute}})
	once := plan(t, at(0, sec), Options{Repeat: Repeat{Mode: Once}})
	for _, c := range []struct {
		passed time.Duration
		number int64
	}{{0, 0}, {59 * sec, 0}, {time.Minute, 1}, {time.Hour + sec, 60}, {-time.Hour, 0}} {
		now := epoch.Add(c.passed)
		if got, want := p.Loop(epoch, now), epoch.Add(time.Duration(c.number)*time.Minute); got.Number != c.number || !got.Start.Equal(want) {
			t.Errorf("%v after the epoch: loop %d from %v, want %d from %v", c.passed, got.Number, got.Start, c.number, want)
		}
		if got := once.Loop(epoch, now); got.Number != 0 || !got.Start.Equal(epoch) {
			t.Errorf("once, %v after the epoch: loop %d from %v, want 0 from %v", c.passed, got.Number, got.Start, epoch)
		}
	}
	if l, ok := once.Next(once.Loop(epoch, epoch), epoch); ok {
		t.Errorf("after the only loop comes %v", l)
	}
}

// An epoch from the command line has no monotonic reading, an epoch taken by the process has one. Both give the
// same loop. Its start is as long before now on the monotonic clock as on the wall clock.
func TestStartHasNowsMonotonicReading(t *testing.T) {
	now := time.Now()
	for _, align := range []Align{WallClock, Start} {
		p := plan(t, at(0, sec), Options{Repeat: Repeat{Align: align, Every: time.Hour}})
		epoch := now.Add(-90 * time.Minute)
		a, b := p.Loop(epoch, now), p.Loop(epoch.Round(0), now)
		if a != b || !monotonic(a.Start) {
			t.Errorf("%s: %v with a monotonic epoch, %v without", align, a, b)
		}
		if mono, wall := now.Sub(a.Start), now.Round(0).Sub(a.Start.Round(0)); mono != wall {
			t.Errorf("%s: %v before now, by the wall clock %v", align, mono, wall)
		}
	}
}

func TestTheWallClockIsReadAgainAtTheBorder(t *testing.T) {
	p := plan(t, at(0, sec), Options{Repeat: Repeat{Align: WallClock, Every: time.Hour}})
	hour := func(h int64, d time.Duration) time.Time { return time.Unix(3600*h, 0).Add(d) }
	f := func(what string, now time.Time, number int64) {
		t.Helper()
		got, ok := p.Next(Loop{Number: 10, Start: hour(10, 0)}, now)
		if !ok || got.Number != number || !got.Start.Equal(hour(number, 0)) {
			t.Errorf("%s: %d from %v, want %d from %v", what, got.Number, got.Start, number, hour(number, 0))
		}
	}
	f("at the border", hour(11, 0), 11)
	f("read a little ahead", hour(11, -5*sec), 11)
	f("read ahead into the loop before", hour(10, -5*sec), 11)
	f("set on by a second", hour(11, sec), 11)
	f("set back by a second", hour(11, -sec), 11)
	f("set on by most of an hour", hour(11, 59*time.Minute), 11)
	f("asleep until loop 19", hour(19, 7*sec), 19)
	f("exactly when the successor is over", hour(12, 0), 12)
	f("set back by five hours", hour(6, 0), 7)
	f("set back by a loop and a minute", hour(9, -time.Minute), 11)
	f("set back by more than a loop and a minute", hour(9, -time.Minute-1), 9)

	// The next loop starts at the border by the current clocks, not at the border that was expected when loop 10
	// began. The start without a monotonic reading stands for a wall clock that was set by 250 ms in between.
	now := time.Now()
	l := Loop{Number: 1, Start: now.Round(0).Add(-time.Hour + 250*ms)}
	next, _ := p.Next(l, now)
	if got := next.Start.Sub(now); got != 250*ms || !monotonic(next.Start) {
		t.Errorf("the next loop begins in %v on the monotonic clock, want 250ms", got)
	}
}

// With align start the loops follow one another on the monotonic clock. Those that are over by now are left out, and
// those after them have the numbers and the begins that they have in a plan that is played whole.
func TestLoopsWithAlignStartThatAreOver(t *testing.T) {
	p := plan(t, at(0, sec), Options{Repeat: Repeat{Align: Start, Every: time.Hour}})
	l := p.Loop(epoch, epoch.Add(3*time.Hour))
	for now, want := range map[time.Time]int64{
		{}: 4, epoch.Add(-day): 4, epoch.Add(4 * time.Hour): 4, epoch.Add(5*time.Hour - 1): 4,
		epoch.Add(5 * time.Hour): 5, epoch.Add(1000 * time.Hour): 1000,
	} {
		next, ok := p.Next(l, now)
		if start := epoch.Add(time.Duration(want) * time.Hour); !ok || next.Number != want || !next.Start.Equal(start) {
			t.Errorf("at %v: loop %d from %v, want %d from %v", now, next.Number, next.Start, want, start)
		}
		if n := p.LeftOut(l, next); n != want-4 {
			t.Errorf("at %v: %d loops left out, want %d", now, n, want-4)
		}
	}
}

// The loops between two are counted in each mode: with cron by the calendar, since the numbers are minutes, and no more
// than those of ten weeks of minutes.
func TestLoopsLeftOut(t *testing.T) {
	hour := func(h int64) time.Time { return time.Unix(3600*h, 0) }
	wall := plan(t, at(0, sec), Options{Repeat: Repeat{Align: WallClock, Every: time.Hour}})
	hourly, nightly := cronPlan(t, "0 * * * *", "", Skip, time.Minute), cronPlan(t, "0 3 * * *", "", Skip, time.Minute)
	minutely := cronPlan(t, "* * * * *", "", Skip, time.Minute-1)
	for _, c := range []struct {
		name     string
		p        *Plan
		from, to int64 // hours
		want     int64
	}{
		{"wall clock, none", wall, 10, 11, 0},
		{"wall clock", wall, 10, 60, 49},
		{"wall clock, set back", wall, 10, 7, 0},
		{"hourly, none", hourly, 10, 11, 0},
		{"hourly", hourly, 10, 60, 49},
		{"hourly, set back", hourly, 10, 7, 0},
		{"nightly", nightly, 3, 24*9 + 3, 8},
		{"each minute", minutely, 0, 24, 24*60 - 1},
		{"each minute of a year", minutely, 0, 24 * 365, mostCounted},
	} {
		l, next := c.p.Loop(hour(0), hour(c.from)), c.p.Loop(hour(0), hour(c.to))
		if n := c.p.LeftOut(l, next); n != c.want {
			t.Errorf("%s: %d loops left out, want %d", c.name, n, c.want)
		}
	}
}

func TestPosition(t *testing.T) {
	f := func(o Options, passed, want time.Duration) {
		t.Helper()
		p := plan(t, at(0, 100*sec, 300*sec), o)
		if got := p.Position(p.Loop(epoch, epoch), epoch.Add(passed)); got != want {
			t.Errorf("%+v: %v into the loop at %v, want %v", o, passed, got, want)
		}
	}
	f(Options{}, 0, 0)
	f(Options{}, 70*sec, 70*sec)
	f(Options{Pattern: Pattern{Speed: 2}}, 70*sec, 140*sec)
	f(Options{}, 300*sec, 300*sec)
	f(Options{}, 309*sec, 300*sec) // in the pause before the next loop
	f(Options{}, -sec, 0)
	f(Options{From: 100 * sec}, 0, 100*sec)
	f(Options{Pattern: Pattern{Speed: 10}, From: 100 * sec}, 5*sec, 150*sec)
	f(Options{From: 100 * sec, To: 300 * sec}, 50*sec, 100*sec) // the window's only row is at its start
	f(Options{Repeat: Repeat{Mode: Once}}, time.Hour, 300*sec)
}
