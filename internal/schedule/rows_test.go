package schedule

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"replayd/internal/scalar"
	"replayd/internal/trace"
)

func TestInstants(t *testing.T) {
	f := func(offset time.Duration, speed float64, want time.Duration) {
		t.Helper()
		p := plan(t, at(0, offset), Options{Pattern: Pattern{Speed: speed}, Repeat: Repeat{Mode: Once}})
		if got := after(dues(t, p, p.Loop(epoch, epoch), epoch))[1]; got != want {
			t.Errorf("%v at speed %v: due after %v, want %v", offset, speed, got, want)
		}
	}
	f(3*sec, 2, 1500*ms)
	f(3*sec, 1, 3*sec)
	f(sec, 3, 333_333_333)
	f(2*sec, 3, 666_666_667) // rounded to the nearest nanosecond
	f(sec, 0.1, 10*sec)
	f(3537*sec, 0.001, 3_537_000*sec)
	f(time.Hour, 1000, 3600*ms)
	f(100*day, 1, 100*day)
}

func TestADayAtSpeed20IsExactToTheNanosecond(t *testing.T) {
	p := plan(t, at(0, day), Options{Pattern: Pattern{Speed: 20}})
	for m := int64(0); m <= 86_400_000; m += 997 { // milliseconds; m ms / 20 = 50,000 m ns
		if got, want := p.wall(time.Duration(m)*ms), time.Duration(50_000*m); got != want {
			t.Fatalf("%d ms: %d ns, want %d", m, got, want)
		}
	}
}

func TestSpread(t *testing.T) {
	// Gaps 3, 3, 1 and 13 s: the typical tick is 3 s.
	src := at(0, 0, 0, 0, 3*sec, 3*sec, 3*sec, 6*sec, 7*sec, 7*sec, 20*sec, 20*sec, 20*sec)
	f := func(o Options, want ...time.Duration) {
		t.Helper()
		o.Arrival, o.Mode = Spread, Once
		p := plan(t, src, o)
		if got := after(dues(t, p, p.Loop(epoch, epoch), epoch)); !slices.Equal(got, want) {
			t.Errorf("%+v: %v, want %v", o, got, want)
		}
	}
	f(Options{}, 0, 750*ms, 1500*ms, 2250*ms, 3*sec, 4*sec, 5*sec, 6*sec, 7*sec, 8500*ms, 20*sec, 21*sec, 22*sec)
	f(Options{Pattern: Pattern{Speed: 2}}, 0, 375*ms, 750*ms, 1125*ms, 1500*ms, 2*sec, 2500*ms, 3*sec, 3500*ms, 4250*ms,
		10*sec, 10500*ms, 11*sec)
	// The rows' own timestamps decide which rows are in the window. The window does not change where rows are
	// spread to.
	f(Options{From: 2 * sec, To: 7 * sec}, sec, 2*sec, 3*sec, 4*sec)
	f(Options{From: 20 * sec}, 0, sec, 2*sec)
	// Each of two shards has every second row, at the time that the row has in the whole plan.
	f(Options{Shard: Shard{1, 2}}, 750*ms, 2250*ms, 4*sec, 6*sec, 8500*ms, 21*sec)

	// With a single timestamp there is no tick, so its rows are not spread.
	src = at(5*sec, 5*sec)
	f(Options{}, 5*sec, 5*sec)
	// Rows with distinct timestamps, as in Azure's trace, keep their times.
	src = at(0, 100*ms, 250*ms, 900*ms)
	f(Options{}, 0, 100*ms, 250*ms, 900*ms)
	// Three rows in a second: ⌊10⁹ / 3⌋ and ⌊2 × 10⁹ / 3⌋ nanoseconds.
	src = at(0, 0, 0, sec)
	f(Options{}, 0, 333_333_333, 666_666_666, sec)
	// A long tick with many rows: 4 × 10⁶ s are 4 × 10¹⁵ ns, which would overflow when multiplied by the row
	// number.
	var many []time.Duration
	for range 5000 {
		many = append(many, 0)
	}
	p := plan(t, at(append(many, 4e6*sec)...), Options{Pattern: Pattern{Arrival: Spread}, Repeat: Repeat{Mode: Once}})
	if got := dues(t, p, p.Loop(epoch, epoch), epoch); got[4999].At.Sub(epoch) != 4999*800*sec {
		t.Errorf("row 4999 of 5000 in 4e6 s: %v, want %v", got[4999].At.Sub(epoch), 4999*800*sec)
	}
}

func TestWindow(t *testing.T) {
	src := at(0, 100*sec, 150*sec, 150*sec, 200*sec)
	for _, c := range []struct {
		from, to time.Duration
		want     []time.Duration
	}{
		{0, 0, []time.Duration{0, 100 * sec, 150 * sec, 150 * sec, 200 * sec}},
		{50 * sec, 0, []time.Duration{50 * sec, 100 * sec, 100 * sec, 150 * sec}},
		{100 * sec, 150 * sec, []time.Duration{0}},
		{100 * sec, 151 * sec, []time.Duration{0, 50 * sec, 50 * sec}},
		{0, 500 * sec, []time.Duration{0, 100 * sec, 150 * sec, 150 * sec, 200 * sec}},
		{200 * sec, 0, []time.Duration{0}},
	} {
		p := plan(t, src, Options{Repeat: Repeat{Mode: Once}, From: c.from, To: c.to})
		if got := after(dues(t, p, p.Loop(epoch, epoch), epoch)); !slices.Equal(got, c.want) {
			t.Errorf("%v to %v: %v, want %v", c.from, c.to, got, c.want)
		}
	}
}

func TestReadingFromOutsideOfALoop(t *testing.T) {
	p := plan(t, at(0, sec, 2*sec), Options{Pattern: Pattern{Arrival: Spread, Speed: 1000}})
	l := p.Loop(epoch, epoch)
	for from, want := range map[time.Time]int{
		{}:                              3, // the zero time, at least 292 years earlier
		epoch.Add(-time.Hour):           3,
		epoch.Add(time.Hour):            0,
		epoch.Add(p.every):              0,
		time.Unix(1<<40, 0):             0,
		epoch.Add(2 * time.Millisecond): 1,
	} {
		if got := len(dues(t, p, l, from)); got != want {
			t.Errorf("from %v: %d rows, want %d", from, got, want)
		}
	}
}

// FNV-1a of "a" and "foobar", as published by its authors: af63dc4c8601ec8c, 85944171f73967e8.
func TestShardKeys(t *testing.T) {
	for session, key := range map[string]uint64{"a": 0xaf63dc4c8601ec8c, "foobar": 0x85944171f73967e8} {
		for of := 1; of <= 7; of++ {
			for i := range of {
				r := trace.Record{Number: i + 1, Session: session}
				if got, want := (Shard{scalar.Auto(i), of}).has(&r), key%uint64(of) == uint64(i); got != want {
					t.Errorf("session %s on shard %d of %d: %v, want %v", session, i, of, got, want)
				}
			}
		}
	}
	for number := range 20 {
		if got, want := (Shard{2, 3}).has(&trace.Record{Number: number}), number%3 == 2; got != want {
			t.Errorf("record %d on shard 2 of 3: %v, want %v", number, got, want)
		}
	}
}

func TestAPlanKeepsTheMonotonicClock(t *testing.T) {
	now := time.Now()
	p := plan(t, at(0, sec), Options{Repeat: Repeat{Align: WallClock}})
	l := p.Loop(time.Time{}, now)
	next, _ := p.Next(l, now)
	for _, l := range []Loop{l, next} {
		for _, d := range dues(t, p, l, l.Start) {
			if !monotonic(d.At) {
				t.Errorf("row %d of loop %d has no monotonic reading: %v", d.Number, l.Number, d.At)
			}
		}
	}
}

func monotonic(t time.Time) bool { return fmt.Sprint(t) != fmt.Sprint(t.Round(0)) }
