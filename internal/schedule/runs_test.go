package schedule

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// cronPlan returns a cron plan for a trace with two rows, at 0 and at length.
func cronPlan(t testing.TB, expression, zone string, overlap Overlap, length time.Duration) *Plan {
	t.Helper()
	return plan(t, at(0, length), Options{Repeat: Repeat{Mode: Cron, Cron: expression, Timezone: zone, Overlap: overlap}})
}

// follow returns the loops between two times, at most the given number. Like a replay, it asks for the next loop a
// few seconds ahead.
func follow(t testing.TB, p *Plan, from, to time.Time, most int, rng *rand.Rand) (all []Loop) {
	t.Helper()
	for l := p.Loop(time.Time{}, from); !l.Start.After(to) && len(all) < most; {
		all = append(all, l)
		now := l.Start.Add(p.length - time.Duration(rng.Int64N(int64(5*sec))))
		next, ok := p.Next(l, now)
		if !ok || !next.Start.Equal(l.Start.Add(p.Period(l))) {
			t.Fatalf("%q: after %v comes %v, %v later", p.o.Cron, l.Start, next.Start, p.Period(l))
		}
		l = next
	}
	return all
}

func utc(text string) time.Time {
	t, err := time.Parse("2006-01-02 15:04:05", text)
	if err != nil {
		panic(err)
	}
	return t
}

func TestRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	f := func(expression, zone string, overlap Overlap, length time.Duration, from string, want ...string) {
		t.Helper()
		p := cronPlan(t, expression, zone, overlap, length)
		start, end := utc(from), utc(want[len(want)-1])
		var got []string
		for _, l := range follow(t, p, start, end, len(want)+1, rng) {
			got = append(got, l.Start.Format("2006-01-02 15:04:05"))
			if n := l.Start.Unix() / 60; l.Number != n {
				t.Errorf("%q: loop %d from %v, want number %d", expression, l.Number, l.Start, n)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%q %s of %v from %v:\ngot  %q\nwant %q", expression, overlap, length, from, got, want)
		}
	}
	const berlin = "Europe/Berlin"
	// During a run, at its last row, just after it, between two runs.
	f("0 3 * * *", "", Skip, time.Hour, "2026-03-03 03:30:00", "2026-03-03 03:00:00", "2026-03-04 03:00:00", "2026-03-05 03:00:00")
	f("0 3 * * *", "", "", time.Hour, "2026-03-03 04:00:00", "2026-03-03 03:00:00", "2026-03-04 03:00:00")
	f("0 3 * * *", "", Queue, time.Hour, "2026-03-03 04:00:01", "2026-03-04 03:00:00", "2026-03-05 03:00:00")
	f("0 3 * * 1", "", Skip, time.Hour, "2026-03-03 03:30:00", "2026-03-09 03:00:00", "2026-03-16 03:00:00")
	f("0 3 29 2 *", "", Skip, time.Hour, "2026-03-03 03:30:00", "2028-02-29 03:00:00", "2032-02-29 03:00:00")
	f("* * * * *", "", Queue, 0, "2026-03-03 03:30:01", "2026-03-03 03:31:00", "2026-03-03 03:32:00")
	// Two activations during a run: Skip drops both, Queue keeps one.
	f("0,10 3 * * *", "", Skip, 25*time.Minute, "2026-03-03 03:00:00", "2026-03-03 03:00:00", "2026-03-04 03:00:00")
	f("0,10 3 * * *", "", Queue, 25*time.Minute, "2026-03-03 03:26:00", "2026-03-03 03:25:00", "2026-03-04 03:00:00", "2026-03-04 03:25:00")
	f("0,10,20 3 * * *", "", Queue, 25*time.Minute, "2026-03-03 03:26:00", "2026-03-03 03:25:00", "2026-03-04 03:00:00", "2026-03-04 03:25:00", "2026-03-05 03:00:00")
	f("0,10,30 3 * * *", "", Queue, 25*time.Minute, "2026-03-03 03:50:01", "2026-03-03 03:50:00", "2026-03-04 03:00:00", "2026-03-04 03:25:00", "2026-03-04 03:50:00", "2026-03-05 03:00:00")
	f("0,25 3 * * *", "", Skip, 25*time.Minute, "2026-03-03 03:00:00", "2026-03-03 03:00:00", "2026-03-03 03:25:00", "2026-03-04 03:00:00")
	// At the time of its last row, the earlier run is still the one to join.
	f("* * * * *", "", Queue, time.Minute, "2026-03-03 03:30:00", "2026-03-03 03:29:00", "2026-03-03 03:30:00")
	f("* * * * *", "", Skip, time.Minute, "2026-03-03 03:30:00", "2026-03-03 03:29:00", "2026-03-03 03:30:00", "2026-03-03 03:31:00")
	// The night in which 2:30 occurs twice, and the night in which it does not occur. The run of 25 October lasts
	// beyond the second 2:30.
	f("30 2 * * *", berlin, Queue, 90*time.Minute, "2026-10-24 12:00:00", "2026-10-25 00:30:00", "2026-10-26 01:30:00")
	f("30 2 * * *", berlin, Skip, 90*time.Minute, "2026-03-28 12:00:00", "2026-03-29 01:00:00", "2026-03-30 00:30:00")
	f("0 * * * *", berlin, Skip, 59*time.Minute, "2026-10-24 23:00:00", "2026-10-24 23:00:00", "2026-10-25 00:00:00", "2026-10-25 01:00:00", "2026-10-25 02:00:00")
	// A nightly run that is longer than the shortest day of the year.
	f("0 0 * * *", berlin, Queue, 23*time.Hour+30*time.Minute, "2026-03-28 12:00:00", "2026-03-27 23:00:00", "2026-03-28 23:00:00", "2026-03-29 22:30:00", "2026-03-30 22:00:00")
	f("0 0 * * *", berlin, Skip, 23*time.Hour+30*time.Minute, "2026-03-28 12:00:00", "2026-03-27 23:00:00", "2026-03-28 23:00:00", "2026-03-30 22:00:00")
	// Runs without a pause restart on Monday, 2 March: a week holds 403 runs of 25 minutes, and 5 minutes remain.
	f("*/10 * * * *", "", Queue, 25*time.Minute, "2026-03-01 23:20:00", "2026-03-01 23:05:00", "2026-03-01 23:30:00", "2026-03-02 00:00:00", "2026-03-02 00:25:00")
	f("*/10 * * * *", "", Skip, 25*time.Minute, "2026-03-01 23:00:00", "2026-03-01 23:00:00", "2026-03-01 23:30:00", "2026-03-02 00:00:00", "2026-03-02 00:30:00")
	f("5-55/10 * * * *", "", Skip, 25*time.Minute, "2026-03-01 23:00:00", "2026-03-01 22:35:00", "2026-03-01 23:05:00", "2026-03-01 23:35:00", "2026-03-02 00:05:00")
	f("0 0 * * *", "", Skip, 10*day, "2026-02-20 00:00:00", "2026-02-16 00:00:00", "2026-02-26 00:00:00", "2026-03-08 00:00:00", "2026-03-18 00:00:00", "2026-03-30 00:00:00", "2026-04-09 00:00:00") // 6 weeks hold 4 runs
	// A pause that is just long enough. The run after it lasts beyond the first activation of Monday.
	f("0 22,1 * * *", "", Skip, 21*time.Hour, "2026-02-28 23:00:00", "2026-02-28 22:00:00", "2026-03-01 22:00:00", "2026-03-02 22:00:00")
	f("0 22,1 * * *", "", Queue, 10*time.Hour+30*time.Minute, "2026-03-01 08:00:00", "2026-02-28 22:00:00", "2026-03-01 08:30:00", "2026-03-01 22:00:00", "2026-03-02 08:30:00")
	f("0 12 * * *", "", Skip, 30*time.Hour, "2026-02-27 00:00:00", "2026-02-27 12:00:00", "2026-03-02 12:00:00", "2026-03-04 12:00:00")
}

// A randomRuns is a random plan with its activations, which are computed without the code under test.
type randomRuns struct {
	fields
	plan     *Plan
	zone     string
	length   time.Duration
	from, to time.Time
	all      []time.Time // activations from at least three weeks before from to three weeks after to
}

func newRandomRuns(t *testing.T, rng *rand.Rand) *randomRuns {
	t.Helper()
	r := &randomRuns{fields: randomFields(rng), zone: someZones[rng.IntN(len(someZones)-1)]}
	if rng.IntN(3) == 0 {
		r.fields = fields{minute: [][]int{nil, {0, 10, 20, 30, 40, 50}, {0, 30}, {17}}[rng.IntN(4)]}
	}
	r.length = []time.Duration{
		0, 20 * sec, 59 * sec, time.Minute, 90 * sec, 7 * time.Minute, 10 * time.Minute, 25 * time.Minute, 59 * time.Minute,
		time.Hour, 5 * time.Hour, 13 * time.Hour, 24 * time.Hour, 25 * time.Hour,
		time.Duration(rng.Int64N(int64(3 * time.Hour))), time.Duration(rng.Int64N(int64(40 * time.Hour))),
	}[rng.IntN(16)]
	r.plan = cronPlan(t, r.String(), r.zone, []Overlap{Skip, Queue}[rng.IntN(2)], r.length)
	// The middle is a change of the clocks, if the zone has one.
	middle := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rng.Int64N(int64(365 * day))))
	if _, end := middle.In(r.plan.runs.calendar.zone).ZoneBounds(); !end.IsZero() {
		middle = end.UTC()
	}
	r.from = middle.Add(-time.Duration(rng.Int64N(int64(9 * day))))
	r.to = middle.Add(time.Duration(rng.Int64N(int64(9 * day))))
	r.all = r.activations(r.plan.runs.calendar.zone, r.from.Add(-3*week), r.to.Add(3*week))
	return r
}

// first returns the index of the first activation at or after t.
func (r *randomRuns) first(t time.Time) int {
	i, _ := slices.BinarySearchFunc(r.all, t, time.Time.Compare)
	return i
}

// follows reports whether the run at next follows the run at before, by the definition of Overlap alone.
func (r *randomRuns) follows(next, before time.Time) bool {
	over := before.Add(r.length)
	if r.plan.o.Overlap == Queue && r.first(over.Add(1)) > r.first(before.Add(1)) {
		return next.Equal(over) // an activation fell into the run before
	}
	return next.Equal(r.all[r.first(latest(over, before.Add(1)))])
}

// anew reports whether the runs restart at next, although another run could have started before it. Runs restart at
// the first activation of a week, unless some pause in the week before was certainly long enough for all runs to
// end.
func (r *randomRuns) anew(next, before time.Time) bool {
	monday := next.Truncate(day)
	for monday.Weekday() != time.Monday {
		monday = monday.Add(-day)
	}
	i := r.first(monday)
	if !r.all[i].Equal(next) || !before.Before(next) {
		return false
	}
	pause := r.length
	if r.plan.o.Overlap == Queue {
		pause *= 2
	}
	for ; i > 0 && !r.all[i].Before(monday.Add(-week)); i-- {
		if r.all[i].Sub(r.all[i-1]) >= pause {
			return false
		}
	}
	// The run that would otherwise be next lasts beyond next.
	between := before.Add(r.length)
	if r.plan.o.Overlap == Skip {
		between = r.all[r.first(latest(between, before.Add(1)))]
	}
	return between.Add(r.length).After(next)
}

func TestRunsASecondWay(t *testing.T) {
	plans, least := 100, 10_000
	if testing.Short() {
		plans, least = 20, 2_000
	}
	rng := rand.New(rand.NewPCG(11, 12))
	runs, anew := 0, 0
	for range plans {
		r := newRandomRuns(t, rng)
		p := r.plan
		name := func() string {
			return p.o.Cron + " in " + r.zone + " " + string(p.o.Overlap) + " of " + r.length.String()
		}
		all := follow(t, p, r.from, r.to, math.MaxInt, rng)
		runs += len(all)
		for i, l := range all {
			if l.Number != l.Start.Unix()/60 || i > 0 && l.Number <= all[i-1].Number {
				t.Fatalf("%s: run %d from %v has number %d", name(), i, l.Start, l.Number)
			}
			switch {
			case i == 0 || r.follows(l.Start, all[i-1].Start):
			case r.anew(l.Start, all[i-1].Start):
				anew++
			default:
				t.Fatalf("%s: after %v comes %v", name(), all[i-1].Start, l.Start)
			}
		}
		// A process that starts at any time joins the same runs: at a random time, at the start of a run, at a last
		// row.
		for range 20 {
			if len(all) == 0 { // a month without an activation
				break
			}
			at := r.from.Add(time.Duration(rng.Int64N(int64(r.to.Sub(r.from)))))
			if l := all[rng.IntN(len(all))]; rng.IntN(2) == 0 && l.Start.Before(r.to) && !l.Start.Before(r.from) {
				at = l.Start.Add(time.Duration(rng.IntN(2)) * r.length).Add(time.Duration(rng.IntN(3) - 1))
			}
			i := slices.IndexFunc(all, func(l Loop) bool { return !l.Start.Add(r.length).Before(at) })
			if i < 0 {
				continue
			}
			want := all[i:min(i+5, len(all))]
			if joined := follow(t, p, at, r.to, 5, rng); !slices.Equal(joined, want) {
				t.Fatalf("%s: from %v\n%v\nwant %v", name(), at, joined, want)
			}
		}
	}
	if runs < least || anew < plans/10 {
		t.Errorf("%d runs, %d times anew: too few to show anything", runs, anew)
	}
}

// All activations that fall into a run are left out, but for the one that waits. One at the last row falls into none.
func TestSkippedActivations(t *testing.T) {
	const friday = "2026-03-06 00:00:00"
	for _, c := range []struct {
		expression string
		overlap    Overlap
		length     time.Duration
		from       string
		want       int
	}{
		{"0 3 * * *", Skip, 12 * time.Hour, friday, 0},
		{"* * * * *", Skip, time.Minute - 1, friday, 0},
		{"* * * * *", Skip, time.Minute, friday, 0},
		{"* * * * *", Skip, 90 * sec, friday, 1},
		{"* * * * *", Queue, time.Minute, friday, 0},
		{"* * * * *", Queue, 90 * sec, friday, 0},                    // the one after a minute waits
		{"* * * * *", Queue, 90 * sec, "2026-03-06 00:01:30", 1},     // two: after 30 s, and at the last row
		{"*/10 3 * * *", Queue, 50 * time.Minute, friday, 4},         // 3:10 waits, and 3:20 to 3:50 do not
		{"0 * * * *", Skip, 25 * time.Hour, friday, 24},              // the 25th begins the next
		{"* * * * *", Skip, 7*day - time.Minute, friday, 7*1440 - 2}, // until the border on Monday in four weeks
		{"* * * * *", Skip, 100 * day, friday, mostSkipped},
		{"0 2 * * *", Skip, 3 * day, "2026-03-29 00:00:00", 2},
	} {
		p := cronPlan(t, c.expression, "Europe/Berlin", c.overlap, c.length)
		l := p.Loop(time.Time{}, utc(c.from).Add(1))
		if got := p.Skipped(l); got != c.want {
			t.Errorf("%q %s of %v in the run from %v: want %d, got %d", c.expression, c.overlap, c.length, l.Start, c.want, got)
		}
	}
	if n := plan(t, at(0, sec), Options{Repeat: Repeat{Mode: Loops, Align: WallClock}}).Skipped(Loop{}); n != 0 {
		t.Errorf("a plan without activations leaves %d out", n)
	}
}

func BenchmarkSkipped(b *testing.B) {
	p := cronPlan(b, "* * * * *", "Europe/Berlin", Skip, 100*day)
	l := p.Loop(time.Time{}, utc("2026-03-06 00:00:00"))
	for b.Loop() {
		p.Skipped(l)
	}
}
