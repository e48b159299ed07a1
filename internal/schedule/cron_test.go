package schedule

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// day24 returns the starts and the rows of all loops that begin in a local day of Berlin. It starts in the middle
// of the loop before.
func day24(t *testing.T, p *Plan, from, to time.Time) (starts []time.Time, rows []Due) {
	t.Helper()
	for l := p.Loop(from, from.Add(-20*time.Minute)); l.Start.Before(to); {
		all := dues(t, p, l, l.Start)
		if !l.Start.Before(from) {
			starts, rows = append(starts, l.Start), append(rows, all...)
		}
		next, ok := p.Next(l, all[len(all)-1].At)
		if !ok {
			t.Fatal("no next loop")
		}
		l = next
	}
	return starts, rows
}

// The days on which the clocks change in Berlin, row by row: they have 23 and 25 hours.
func TestWholeDaysAcrossDaylightSaving(t *testing.T) {
	src := at(0, 700*ms, 20*time.Minute, 20*time.Minute, 58*time.Minute+56*sec+999*ms)
	offsets := []time.Duration{0, 350 * ms, 10 * time.Minute, 10 * time.Minute, 29*time.Minute + 28*sec + 499_500*time.Microsecond} // at speed 2
	hours := func(h ...float64) (list []time.Duration) {
		for _, h := range h {
			list = append(list, time.Duration(h*float64(time.Hour)))
		}
		return list
	}
	every := func(n int, step time.Duration) (list []time.Duration) {
		for i := range n {
			list = append(list, time.Duration(i)*step)
		}
		return list
	}
	for _, c := range []struct {
		name, midnight string // in UTC
		hours          int
		options        Options
		starts         []time.Duration // since midnight
	}{
		{"spring, each hour", "2026-03-28 23:00:00", 23, Options{Repeat: Repeat{Mode: Cron, Cron: "0 * * * *"}}, every(23, time.Hour)},
		{"autumn, each hour", "2026-10-24 22:00:00", 25, Options{Repeat: Repeat{Mode: Cron, Cron: "0 * * * *"}}, every(25, time.Hour)},
		{
			"spring, each half hour", "2026-03-28 23:00:00", 23,
			Options{Repeat: Repeat{Mode: Cron, Cron: "*/30 * * * *"}},
			every(46, 30*time.Minute),
		},
		{
			"autumn, each half hour", "2026-10-24 22:00:00", 25,
			Options{Repeat: Repeat{Mode: Cron, Cron: "*/30 * * * *"}},
			every(50, 30*time.Minute),
		},
		{"spring, nightly", "2026-03-28 23:00:00", 23, Options{Repeat: Repeat{Mode: Cron, Cron: "30 2 * * *"}}, hours(2)},
		{"autumn, nightly", "2026-10-24 22:00:00", 25, Options{Repeat: Repeat{Mode: Cron, Cron: "30 2 * * *"}}, hours(2.5)},
		{
			"spring, three times", "2026-03-28 23:00:00", 23,
			Options{Repeat: Repeat{Mode: Cron, Cron: "30 1,2,23 * * *"}},
			hours(1.5, 2, 22.5),
		},
		{
			"autumn, three times", "2026-10-24 22:00:00", 25,
			Options{Repeat: Repeat{Mode: Cron, Cron: "30 1,2,23 * * *"}},
			hours(1.5, 2.5, 24.5),
		},
		{"spring, skipped", "2026-03-28 23:00:00", 23, Options{Repeat: Repeat{Mode: Cron, Cron: "45 1-2 * * *"}}, hours(1.75)},
		{
			"spring, queued", "2026-03-28 23:00:00", 23,
			Options{Repeat: Repeat{Mode: Cron, Cron: "45 1-2 * * *", Overlap: Queue}},
			[]time.Duration{
				105 * time.Minute,
				105*time.Minute + offsets[4],
			},
		},
		{
			"spring, loops of the wall clock", "2026-03-28 23:00:00", 23,
			Options{Repeat: Repeat{Align: WallClock, Every: time.Hour}},
			every(23, time.Hour),
		},
		{
			"autumn, loops of the wall clock", "2026-10-24 22:00:00", 25,
			Options{Repeat: Repeat{Align: WallClock, Every: 30 * time.Minute}},
			every(50, 30*time.Minute),
		},
		// 22:00 UTC is 2 h + 99,600 × 5 h after 1970
		{
			"autumn, shifted loops", "2026-10-24 22:00:00", 25,
			Options{Repeat: Repeat{Align: WallClock, Every: 5 * time.Hour, Offset: 2 * time.Hour}},
			hours(0, 5, 10, 15, 20),
		},
		{
			"spring, loops from a start", "2026-03-28 23:00:00", 23,
			Options{Repeat: Repeat{Align: Start, Every: time.Hour}},
			every(23, time.Hour),
		},
	} {
		c.options.Speed = 2
		if c.options.Mode == Cron {
			c.options.Timezone = "Europe/Berlin"
		}
		midnight := utc(c.midnight)
		berlin, err := time.LoadLocation("Europe/Berlin")
		if err != nil {
			t.Fatal(err)
		}
		if next := midnight.In(berlin).AddDate(0, 0, 1); midnight.In(berlin).Hour() != 0 || next.Sub(midnight) != time.Duration(c.hours)*time.Hour {
			t.Fatalf("%s: %v to %v are no day of %d hours", c.name, midnight.In(berlin), next, c.hours)
		}
		p := plan(t, src, c.options)
		starts, rows := day24(t, p, midnight, midnight.Add(time.Duration(c.hours)*time.Hour))
		var want, instants []time.Time
		for _, s := range c.starts {
			want = append(want, midnight.Add(s))
			for _, o := range offsets {
				instants = append(instants, midnight.Add(s).Add(o))
			}
		}
		if !slices.EqualFunc(starts, want, time.Time.Equal) {
			t.Errorf("%s: loops from %v\nwant %v", c.name, starts, want)
			continue
		}
		if !slices.EqualFunc(rows, instants, func(d Due, at time.Time) bool { return d.At.Equal(at) }) {
			t.Errorf("%s: rows not at the instants that they should have", c.name)
		}

		// A process that restarts at any time of the day continues with the same row, and so does each shard.
		o := c.options
		shards := []*Plan{plan(t, src, with(o, Shard{0, 2})), plan(t, src, with(o, Shard{1, 2}))}
		rng := rand.New(rand.NewPCG(13, 14))
		for range 200 {
			from := midnight.Add(time.Duration(rng.Int64N(int64(c.hours) * int64(time.Hour))))
			if rng.IntN(2) == 0 {
				from = instants[rng.IntN(len(instants))]
			}
			i := slices.IndexFunc(rows, func(d Due) bool { return !d.At.Before(from) })
			if i < 0 {
				continue
			}
			l := p.Loop(midnight.Add(-time.Hour), from)
			if rest := dues(t, p, l, from); len(rest) == 0 { // in the pause after the last row
				l, _ = p.Next(l, from)
			}
			rest := dues(t, p, l, from)
			if !slices.EqualFunc(rest, rows[i:i+len(rest)], func(a, b Due) bool { return a.Number == b.Number && a.At.Equal(b.At) }) {
				t.Fatalf("%s: from %v on %d rows, of loop %d, want those from row %d of the day on", c.name, from, len(rest), l.Number, i)
			}
			for k, shard := range shards {
				sl := shard.Loop(midnight.Add(-time.Hour), l.Start.Add(1))
				if sl.Number != l.Number || !sl.Start.Equal(l.Start) {
					t.Fatalf("%s: shard %d has loop %v, want %v", c.name, k, sl, l)
				}
				for _, d := range dues(t, shard, sl, from) {
					if j := slices.IndexFunc(rest, func(r Due) bool { return r.Number == d.Number }); d.Number%2 != k || j < 0 || !rest[j].At.Equal(d.At) {
						t.Fatalf("%s: shard %d has row %d at %v", c.name, k, d.Number, d.At)
					}
				}
			}
		}
	}
}

func with(o Options, s Shard) Options {
	o.Shard = s
	return o
}

func TestCronFaults(t *testing.T) {
	good := Options{Pattern: Pattern{Arrival: Exact, Speed: 1}, Repeat: Repeat{Mode: Cron, Cron: "0 3 * * *"}}
	f := func(change func(*Options), want string) {
		t.Helper()
		o := good
		change(&o)
		if p, err := New(at(0, sec), o); p != nil || err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
	f(func(o *Options) {
		o.Speed, o.Every, o.Offset, o.Cron, o.Timezone, o.Overlap, o.Shard = 0, 1, 3, "0 3 30 2 *", "Berlin", "both", Shard{2, 2}
	}, "speed: want 0.001 to 1000, got 0\n"+
		`repeat.every: needs mode "loop", got mode "cron"`+"\n"+`repeat.offset: needs mode "loop", got mode "cron"`+"\n"+
		`repeat.overlap: want skip or queue, got "both"`+"\n"+
		`repeat.cron: want a day that there is, got "0 3 30 2 *", which never comes`+"\n"+
		`repeat.timezone: want a name of the IANA database such as Europe/Berlin, got "Berlin"`+"\n"+
		"shard.index: want an index < 2, got 2")
	f(func(o *Options) { o.From, o.To, o.Cron = 1, 2, "x" }, "trace.from: want a window with a row in it, got 1ns to 2ns\n"+
		`repeat.cron: want five fields, minute, hour, day of month, month and day of week, such as "0 3 * * 1-5", got "x"`)
	f(func(o *Options) { o.Mode, o.Align, o.Timezone, o.Overlap = Loops, WallClock, "UTC", Skip },
		`repeat.cron: needs mode "cron", got mode "loop"`+"\n"+`repeat.timezone: needs mode "cron", got mode "loop"`+"\n"+`repeat.overlap: needs mode "cron", got mode "loop"`)
	f(func(o *Options) { o.Mode = Once }, `repeat.cron: needs mode "cron", got mode "once"`)
}

func TestPeriodAndWhoFollowsTheWallClock(t *testing.T) {
	f := func(o Options, now string, period time.Duration, wall bool) {
		t.Helper()
		p := plan(t, at(0, 90*time.Minute), o)
		l := p.Loop(utc(now), utc(now))
		if got := p.Period(l); got != period || p.FollowsWall() != wall {
			t.Errorf("%+v: %v to the next loop, wall %v, want %v, %v", o, got, p.FollowsWall(), period, wall)
		}
	}
	f(Options{Repeat: Repeat{Mode: Once}}, "2026-03-29 00:00:00", 90*time.Minute, false)
	f(Options{Repeat: Repeat{Align: Start}}, "2026-03-29 00:00:00", 2*time.Hour, false)
	f(Options{Repeat: Repeat{Align: WallClock, Every: 3 * time.Hour}}, "2026-03-29 00:00:00", 3*time.Hour, true)
	f(Options{Repeat: Repeat{Mode: Cron, Cron: "0 1 * * *", Timezone: "Europe/Berlin"}}, "2026-03-29 00:30:00", 23*time.Hour, true)
	f(Options{Repeat: Repeat{Mode: Cron, Cron: "0 1 * * *", Timezone: "Europe/Berlin"}}, "2026-10-25 00:30:00", 25*time.Hour, true)
	f(Options{Repeat: Repeat{Mode: Cron, Cron: "0 * * * *"}}, "2026-03-29 00:30:00", 2*time.Hour, true)
	f(Options{Repeat: Repeat{Mode: Cron, Cron: "0,5 1 * * *", Overlap: Queue}}, "2026-03-29 01:30:00", 90*time.Minute, true)
	f(Options{Repeat: Repeat{Mode: Cron, Cron: "0 1 * * 1"}}, "2026-03-29 01:30:00", week, true) // from one Monday to the next
}

func TestAClockThatIsSetBetweenTwoRuns(t *testing.T) {
	f := func(expression, l, now, want string) {
		t.Helper()
		p := cronPlan(t, expression, "", Skip, 40*time.Minute)
		start := utc(l)
		got, ok := p.Next(Loop{Number: start.Unix() / 60, Start: start}, utc(now))
		if !ok || !got.Start.Equal(utc(want)) || got.Number != got.Start.Unix()/60 {
			t.Errorf("%q at %s: run %d from %v, want it from %s", expression, now, got.Number, got.Start, want)
		}
	}
	const daily, hourly = "0 3 * * *", "0 * * * *"
	f(daily, "2026-03-03 03:00:00", "2026-03-03 03:40:00", "2026-03-04 03:00:00")
	f(daily, "2026-03-03 03:00:00", "2026-03-03 02:59:55", "2026-03-04 03:00:00") // asked 5 s before the run
	f(daily, "2026-03-03 03:00:00", "2026-03-04 03:40:00", "2026-03-04 03:00:00") // set forward, or asleep: the last row is due now
	f(daily, "2026-03-03 03:00:00", "2026-03-04 03:40:01", "2026-03-05 03:00:00") // the last row is missed
	f(daily, "2026-03-03 03:00:00", "2026-06-01 03:20:00", "2026-06-01 03:00:00") // the run that contains now
	f(daily, "2026-03-03 03:00:00", "2026-06-01 05:00:00", "2026-06-02 03:00:00")
	f(daily, "2026-03-03 03:00:00", "2026-03-02 03:00:00", "2026-03-04 03:00:00") // set back by a day: wait
	f(daily, "2026-03-03 03:00:00", "2026-03-02 02:59:00", "2026-03-04 03:00:00")
	f(daily, "2026-03-03 03:00:00", "2026-03-02 02:58:59", "2026-03-02 03:00:00") // set back further: the next run by the new clock
	f(daily, "2026-03-03 03:00:00", "2026-01-20 03:20:00", "2026-01-21 03:00:00") // the run after the current one
	f(hourly, "2026-03-03 03:00:00", "2026-03-03 01:50:00", "2026-03-03 02:00:00")
	f(hourly, "2026-03-03 03:00:00", "2026-03-03 00:30:00", "2026-03-03 01:00:00")
	f(hourly, "2026-03-03 03:00:00", "2026-03-03 00:41:00", "2026-03-03 01:00:00")
	// Between runs, Loop returns a run in the future. Next returns the run after it, however far away it is.
	f("0,50 8 * * 1", "2026-03-09 08:00:00", "2026-03-03 12:00:00", "2026-03-09 08:50:00")
	f("0,50 8 * * 1", "2026-03-16 08:00:00", "2026-03-03 12:00:00", "2026-03-09 08:00:00")
}

// Times may or may not have a monotonic reading. A start has one if now has one.
func TestRunsWithAMonotonicClock(t *testing.T) {
	now := time.Now()
	p := cronPlan(t, "*/20 * * * *", "Asia/Kathmandu", Queue, 7*time.Minute)
	l, wall := p.Loop(time.Time{}, now), p.Loop(time.Time{}, now.Round(0))
	for range 3 {
		if l.Number != wall.Number || l.Start.Round(0) != wall.Start || !monotonic(l.Start) || monotonic(wall.Start) {
			t.Fatalf("%v with a monotonic reading, %v without", l, wall)
		}
		if mono, wall := l.Start.Sub(now), l.Start.Round(0).Sub(now.Round(0)); mono != wall {
			t.Fatalf("%v after now, by the wall clock %v", mono, wall)
		}
		rows := dues(t, p, l, now.Round(0))
		if want := dues(t, p, wall, now.Round(0)); len(rows) != len(want) || len(rows) > 0 && !rows[0].At.Round(0).Equal(want[0].At) {
			t.Fatalf("%v, without monotonic reading %v", rows, want)
		}
		l, _ = p.Next(l, now)
		wall, _ = p.Next(wall, now.Round(0))
	}

	// The start without a monotonic reading stands for a wall clock that was set since the run began. The next run
	// starts by the current wall clock.
	late := Loop{Number: l.Number, Start: l.Start.Round(0)}
	next, _ := p.Next(late, now)
	if got, want := next.Start.Sub(now), next.Start.Round(0).Sub(now.Round(0)); got != want || next.Start.Round(0).Second() != 0 {
		t.Errorf("the next run begins in %v, want %v", got, want)
	}
}

// Loops of all modes also work with times that have no monotonic reading.
func TestLoopsWithoutAMonotonicClock(t *testing.T) {
	now := time.Now()
	for _, o := range []Options{
		{Repeat: Repeat{Mode: Once}},
		{Repeat: Repeat{Align: Start}},
		{Repeat: Repeat{Align: WallClock}},
		{Repeat: Repeat{Mode: Cron, Cron: "* * * * *"}},
	} {
		p := plan(t, at(0, 10*sec, 50*sec), o)
		epoch := now.Add(-3 * time.Hour)
		a, b := p.Loop(epoch, now), p.Loop(epoch.Round(0), now.Round(0))
		for range 3 {
			if a.Number != b.Number || a.Start.Round(0) != b.Start || monotonic(b.Start) {
				t.Fatalf("%+v: %v with a monotonic reading, %v without", o, a, b)
			}
			rows, want := dues(t, p, b, b.Start.Add(10*sec)), dues(t, p, a, a.Start.Add(10*sec))
			if len(rows) != 2 || len(want) != 2 || rows[1].At != want[1].At.Round(0) || p.Position(b, rows[0].At) != 10*sec {
				t.Fatalf("%+v: %v without a monotonic reading, want %v", o, rows, want)
			}
			var ok bool
			if a, ok = p.Next(a, now); !ok {
				break
			}
			b, _ = p.Next(b, now.Round(0))
		}
	}
}

// The number of a run is its start in minutes since the Unix epoch. Numbers increase from run to run, whatever the
// length of the runs.
func TestNumbersOfRunsAreTheirOwn(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for _, length := range []time.Duration{0, 59 * sec, time.Minute, time.Minute + 1, 61 * sec, 2*time.Minute - 1} {
		for _, overlap := range []Overlap{Skip, Queue} {
			p := cronPlan(t, "* * * * *", "Europe/Berlin", overlap, length)
			last := int64(math.MinInt64)
			for _, l := range follow(t, p, utc("2026-10-24 23:00:00"), utc("2026-10-25 03:00:00"), 1000, rng) {
				if l.Number <= last || l.Number != l.Start.Unix()/60 {
					t.Fatalf("%v %s: after run %d comes %d, from %v", length, overlap, last, l.Number, l.Start)
				}
				last = l.Number
			}
		}
	}
}

func TestOverlaps(t *testing.T) {
	for _, c := range []struct {
		expression string
		length     time.Duration
		interval   time.Duration
		want       bool
	}{
		{"* * * * *", 90 * sec, time.Minute, true},
		{"* * * * *", time.Minute, time.Minute, false},       // over at the activation
		{"0 3 * * *", 12 * time.Hour, 23 * time.Hour, false}, // the day of 23 hours
		{"0 9,10 * * mon", 2 * time.Hour, time.Hour, true},
		{"0 0 29 2 *", time.Hour, 4*365*day + day, false},
	} {
		pass, interval, ok := cronPlan(t, c.expression, "Europe/Berlin", Skip, c.length).Overlaps(utc("2026-03-06 00:00:00"))
		if pass != c.length || interval != c.interval || ok != c.want {
			t.Errorf("%q with passes of %v: want %v, %v, got %v, %v, %v", c.expression, c.length, c.interval, c.want, pass, interval, ok)
		}
	}
	if _, _, ok := plan(t, at(0, sec), Options{Repeat: Repeat{Mode: Loops, Align: WallClock}}).Overlaps(utc("2026-03-06 00:00:00")); ok {
		t.Error("a plan without activations overlaps with them")
	}
}
