package schedule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

func newTestCalendar(t testing.TB, expression, zone string) *calendar {
	t.Helper()
	c, errs := newCalendar(expression, zone)
	if errs != nil {
		t.Fatal(errs)
	}
	return &c
}

// The days in 2026 on which the clocks change: in Berlin at 1:00 UTC, in New York at 7:00 and at 6:00 UTC, on Lord
// Howe Island by half an hour, in Cairo at midnight.
func TestDaylightSaving(t *testing.T) {
	f := func(zone, expression, day string, want ...string) {
		t.Helper()
		c := newTestCalendar(t, expression, zone)
		from, err := time.ParseInLocation(time.DateOnly, day, c.zone)
		if err != nil {
			t.Fatal(err)
		}
		to := from.AddDate(0, 0, 1)
		var forth, back []string
		for at := c.from(from); at.Before(to); at = c.from(at.Add(1)) {
			forth = append(forth, at.Format("15:04"))
		}
		for at := c.last(to.Add(-1)); !at.Before(from); at = c.last(at.Add(-1)) {
			back = append(back, at.Format("15:04"))
		}
		slices.Reverse(back)
		if !slices.Equal(forth, want) || !slices.Equal(back, want) {
			t.Errorf("%q in %s on %s: %v UTC, backwards %v, want %v", expression, zone, day, forth, back, want)
		}
	}
	const berlin, york = "Europe/Berlin", "America/New_York"
	f(berlin, "30 2 * * *", "2026-03-28", "01:30")
	f(berlin, "30 2 * * *", "2026-03-29", "01:00") // there is no 2:30; the clocks change to 3:00 at 1:00 UTC
	f(berlin, "30 2 * * *", "2026-03-30", "00:30")
	f(berlin, "30 2 * * *", "2026-10-24", "00:30")
	f(berlin, "30 2 * * *", "2026-10-25", "00:30") // not again at 1:30 UTC, the second 2:30
	f(berlin, "30 2 * * *", "2026-10-26", "01:30")
	f(berlin, "0 3 * * *", "2026-03-29", "01:00")
	f(berlin, "0 3 * * *", "2026-10-25", "02:00")
	f(berlin, "0 2,3 * * *", "2026-03-29", "01:00") // both activations coincide
	f(berlin, "10,50 2 * * *", "2026-03-29", "01:00")
	f(berlin, "0 1-2 * * *", "2026-03-29", "00:00", "01:00")
	f(berlin, "*/30 1-3 * * *", "2026-03-29", "00:00", "00:30", "01:00", "01:30")
	f(berlin, "*/30 1-3 * * *", "2026-10-25", "23:00", "23:30", "00:00", "00:30", "02:00", "02:30")
	f(berlin, "30 1 29 3 *", "2026-03-29", "00:30")
	f(york, "30 2 * * *", "2026-03-08", "07:00")
	f(york, "30 2 * * *", "2026-11-01", "07:30") // 1:30 occurs twice on this day
	f(york, "30 1 * * *", "2026-11-01", "05:30")
	f(york, "0 0 * * *", "2026-03-08", "05:00")
	f(york, "0 0 * * *", "2026-11-01", "04:00")
	f("Australia/Lord_Howe", "15 2 * * *", "2026-10-04", "15:30")
	f("Australia/Lord_Howe", "0 2 * * *", "2026-10-04", "15:30")
	f("Australia/Lord_Howe", "45 1 * * *", "2026-04-05", "14:45")
	// This day has no midnight and starts at 1:00 local time. The 24 hours from then also include the next
	// midnight.
	f("Africa/Cairo", "0 0 * * *", "2026-04-24", "22:00", "21:00")
	f("UTC", "30 2 * * *", "2026-03-29", "02:30")

	// An expression that names every hour fires in every real hour: 23 in March, 25 in October.
	for day, hours := range map[string]int{"2026-03-29": 23, "2026-10-25": 25} {
		from, err := time.ParseInLocation(time.DateOnly, day, newTestCalendar(t, "0 0 * * *", berlin).zone)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for h := range hours {
			want = append(want, from.Add(time.Duration(h)*time.Hour+20*time.Minute).UTC().Format("15:04"))
		}
		f(berlin, "20 * * * *", day, want...)
		f(berlin, "20 0-23 * * *", day, want...)
	}
}

// fields are the fields of a cron expression as sets of numbers; nil stands for a star.
type fields struct{ minute, hour, dom, month, dow []int }

func (f fields) String() string {
	var b strings.Builder
	for _, set := range [][]int{f.minute, f.hour, f.dom, f.month, f.dow} {
		if set == nil {
			b.WriteString(" *")
			continue
		}
		b.WriteByte(' ')
		for i, n := range set {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprint(&b, n)
		}
	}
	return b.String()[1:]
}

func in(set []int, n int) bool { return set == nil || slices.Contains(set, n) }

// fires reports whether the expression matches a local minute.
func (f fields) fires(t time.Time) bool {
	dom, dow := in(f.dom, t.Day()), in(f.dow, int(t.Weekday()))
	day := dom && dow
	if f.dom != nil && f.dow != nil {
		day = dom || dow
	}
	return day && in(f.minute, t.Minute()) && in(f.hour, t.Hour()) && in(f.month, int(t.Month()))
}

// activations checks each minute between two times.
func (f fields) activations(zone *time.Location, from, to time.Time) (all []time.Time) {
	shown := map[time.Time]bool{}
	var before time.Time
	// Start two days earlier, to know the local minutes that have already occurred.
	for at := from.Add(-48 * time.Hour).Truncate(time.Minute); !at.After(to); at = at.Add(time.Minute) {
		in := at.In(zone)
		local := time.Date(in.Year(), in.Month(), in.Day(), in.Hour(), in.Minute(), 0, 0, time.UTC)
		fires := f.fires(local)
		if f.hour != nil {
			fires = fires && !shown[local]
			for skipped := before.Add(time.Minute); !before.IsZero() && skipped.Before(local); skipped = skipped.Add(time.Minute) {
				fires = fires || f.fires(skipped)
			}
		}
		shown[local], before = true, local
		if fires && !at.Before(from) {
			all = append(all, at)
		}
	}
	return all
}

// set returns random numbers of a range, at most the given number of them, or nil.
func set(rng *rand.Rand, from, to, most int) []int {
	if rng.IntN(2) == 0 {
		return nil
	}
	var s []int
	for range 1 + rng.IntN(most) {
		if n := from + rng.IntN(to-from+1); !slices.Contains(s, n) {
			s = append(s, n)
		}
	}
	return s
}

func randomFields(rng *rand.Rand) fields {
	f := fields{minute: set(rng, 0, 59, 4), hour: set(rng, 0, 23, 6)}
	if rng.IntN(2) == 0 {
		f.hour = set(rng, 0, 4, 3) // hours in which the clocks change
	}
	if rng.IntN(4) == 0 {
		f.dom, f.month, f.dow = set(rng, 1, 28, 5), set(rng, 1, 12, 9), set(rng, 0, 6, 3)
	}
	return f
}

var someZones = []string{
	"UTC", "Europe/Berlin", "America/New_York", "Europe/London", "Australia/Lord_Howe", "Africa/Cairo", "Antarctica/Troll",
	"America/Santiago", "Asia/Kathmandu", "Pacific/Apia",
}

func TestActivationsASecondWay(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		f, zone := randomFields(rng), someZones[rng.IntN(len(someZones))]
		c := newTestCalendar(t, f.String(), zone)
		from := time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rng.Int64N(int64(365 * day))))
		if rng.IntN(2) == 0 { // close to a change of the clocks, if there is one
			if _, end := from.In(c.zone).ZoneBounds(); !end.IsZero() {
				from = end.UTC().Add(-time.Duration(rng.Int64N(int64(30 * time.Hour))))
			}
		}
		if rng.IntN(8) == 0 { // computed from the zone's rules; the year has 366 days
			from = time.Date(2040, time.December, 30, rng.IntN(24), 0, 0, 0, time.UTC)
		}
		if zone == "Pacific/Apia" { // which skipped 30 December 2011
			from = time.Date(2011, time.December, 29, rng.IntN(24), 0, rng.IntN(60), 0, time.UTC)
		}
		to := from.Add(3 * day)
		want := f.activations(c.zone, from, to)
		var forth, back []time.Time
		for at := c.from(from); !at.After(to); at = c.from(at.Add(1)) {
			forth = append(forth, at)
		}
		for at := c.last(to); !at.Before(from); at = c.last(at.Add(-1)) {
			back = append(back, at)
		}
		slices.Reverse(back)
		if !slices.EqualFunc(forth, want, time.Time.Equal) || !slices.EqualFunc(back, want, time.Time.Equal) {
			t.Fatalf("%q in %s from %v: %v\nbackwards %v\nwant %v", f, zone, from, forth, back, want)
		}
		// Searches from any time in between give the same activations.
		for range 20 {
			at := from.Add(time.Duration(rng.Int64N(int64(3 * day))))
			if len(want) > 0 && rng.IntN(2) == 0 {
				at = want[rng.IntN(len(want))]
			}
			i, ok := slices.BinarySearchFunc(want, at, time.Time.Compare)
			if i < len(want) && !c.from(at).Equal(want[i]) {
				t.Fatalf("%q in %s: from %v the first is %v, want %v", f, zone, at, c.from(at), want[i])
			}
			if !ok {
				i--
			}
			if i >= 0 && !c.last(at).Equal(want[i]) {
				t.Fatalf("%q in %s: until %v the last is %v, want %v", f, zone, at, c.last(at), want[i])
			}
		}
	}
}

func TestRareActivations(t *testing.T) {
	c := newTestCalendar(t, "0 12 29 2 *", "America/New_York")
	at := time.Date(2095, time.July, 1, 0, 0, 0, 0, time.UTC)
	for _, year := range []int{2096, 2104, 2108} {
		at = c.from(at.Add(1))
		if want := time.Date(year, time.February, 29, 17, 0, 0, 0, time.UTC); !at.Equal(want) || !c.last(at.Add(sec)).Equal(want) {
			t.Errorf("got %v and %v, want %v", at, c.last(at.Add(sec)), want)
		}
	}
	if got, want := c.last(at.Add(-1)), time.Date(2104, time.February, 29, 17, 0, 0, 0, time.UTC); !got.Equal(want) {
		t.Errorf("before 2108: %v, want %v", got, want)
	}
}

func TestExpressions(t *testing.T) {
	f := func(expression, want string) {
		t.Helper()
		_, errs := newCalendar(expression, "")
		if len(errs) != 1 || errs[0].Error() != want {
			t.Errorf("got  %v\nwant %s", errs, want)
		}
	}
	const five = `repeat.cron: want five fields, minute, hour, day of month, month and day of week, such as "0 3 * * 1-5"`
	f("", five+`, got ""`)
	f("0 3 * *", five+`, got "0 3 * *"`)
	f("0 0 3 * * *", five+`, got "0 0 3 * * *": there are no seconds, so leave one out`)
	f("@daily", five+`, got "@daily": write "0 0 * * *"`)
	f("@Hourly", five+`, got "@Hourly": write "0 * * * *"`)
	f("@every 1h", five+`, got "@every 1h": for an interval take mode loop with every`)
	f("@reboot", five+`, got "@reboot"`)
	items := func(field, got, in string) {
		t.Helper()
		f(in, fmt.Sprintf(`repeat.cron: %s: want numbers, ranges such as 1-5 and steps such as */15, with commas between them, got %q in %q`, field, got, in))
	}
	items("minute", "@a", "@a b c d e")
	items("hour", "x", "0 x * * *")
	items("hour", "H", "0 H * * *")
	items("minute", ",", ", 3 * * *")
	items("minute", "1,,2", "1,,2 * * * *")
	items("minute", "+5", "+5 * * * *")
	items("minute", "*/0", "*/0 * * * *")
	items("minute", "5-", "5- * * * *")
	items("day of month", "L", "0 0 L * *")
	items("day of month", "15W", "0 0 15W * *")
	items("day of week", "5#2", "0 0 * * 5#2")
	items("day of week", "jan", "0 0 * * jan")
	f("CRON_TZ=UTC 0 3 * *", `repeat.cron: minute: want numbers, ranges such as 1-5 and steps such as */15, with commas between them, got "CRON_TZ=UTC" in "CRON_TZ=UTC 0 3 * *"`)
	f("60 3 * * *", `repeat.cron: minute: want at most 59, got "60" in "60 3 * * *"`)
	f("61-5 3 * * *", `repeat.cron: minute: want at most 59, got "61-5" in "61-5 3 * * *"`)
	f("0 24 * * *", `repeat.cron: hour: want at most 23, got "24" in "0 24 * * *"`)
	f("0 3 99999999999999999999 * *", `repeat.cron: day of month: want at most 31, got "99999999999999999999" in "0 3 99999999999999999999 * *"`)
	f("0 3 * 13 *", `repeat.cron: month: want at most 12, got "13" in "0 3 * 13 *"`)
	f("0 3 * * 8", `repeat.cron: day of week: want at most 7, got "8" in "0 3 * * 8"`)
	f("5-1 * * * *", `repeat.cron: minute: want a range that runs forward, such as 5-59,0-1, got "5-1" in "5-1 * * * *"`)
	f("0 22-2 * * *", `repeat.cron: hour: want a range that runs forward, such as 22-23,0-2, got "22-2" in "0 22-2 * * *"`)
	f("0 0 * * SAT-SUN", `repeat.cron: day of week: want a range that runs forward, such as SAT-7,0-SUN, got "SAT-SUN" in "0 0 * * SAT-SUN"`)
	either := func(in, fit, write string) {
		t.Helper()
		f(in, fmt.Sprintf("repeat.cron: want days that all programs read alike, got %q: crond takes days that fit %s, Kubernetes those that fit either. "+
			"Write %s for either; both at once cannot be written", in, fit, write))
	}
	either("0 0 */2 * 1", "day of month and day of week", "1-31/2")
	either("0 0 1,15 * */2", "day of week and day of month", "0-6/2")
	f("0 3 30 2 *", `repeat.cron: want a day that there is, got "0 3 30 2 *", which never comes`)
	f("0 3 31 4,6,9,11 *", `repeat.cron: want a day that there is, got "0 3 31 4,6,9,11 *", which never comes`)

	for _, zone := range []string{"Local", "Europe/Bonn", "../etc/passwd"} {
		_, errs := newCalendar("x", zone)
		want := fmt.Sprintf("repeat.timezone: want a name of the IANA database such as Europe/Berlin, got %q", zone)
		if len(errs) != 2 || errs[1].Error() != want {
			t.Errorf("%s: got %v, want two faults, the second %s", zone, errs, want)
		}
	}

	// If both day fields are restricted, either may match, as in crontab(5). All its notation is supported; 7 is
	// Sunday.
	c := newTestCalendar(t, "0 0 13 * FRI", "")
	at := time.Date(2026, time.February, 1, 0, 0, 0, 0, time.UTC)
	for _, want := range []int{6, 13, 20, 27} {
		if at = c.from(at.Add(1)); at.Day() != want {
			t.Errorf("got %v, want February %d", at, want)
		}
	}
	for a, b := range map[string]string{
		"0 0 * * 7": "0 0 * * 0", "*/15 * * * *": "0,15,30,45 * * * *", "0 22-23,0-2 * jan-mar mon-fri": "0 22,23,0,1,2 * 1,2,3 1,2,3,4,5",
		"0 0 1-31/2 * 1": "0 0 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31 * 1", "0 0 */2 * *": "0 0 1-31/2 * *", "0 0 */1 * 1": "0 0 * * 1",
		"5/20 * ? * *": "5,25,45 * * * *", "0 0 1 */6 *": "0 0 1 1,7 *",
	} {
		x, y, at := newTestCalendar(t, a, ""), newTestCalendar(t, b, ""), epoch
		for range 100 {
			if got, want := x.from(at), y.from(at); !got.Equal(want) {
				t.Fatalf("after %v: %q %v, %q %v", at, a, got, b, want)
			}
			at = x.from(at).Add(1)
		}
	}
}

func FuzzCron(f *testing.F) {
	for _, s := range []string{"0 3 * * *", "*/10 22-2 1,15 jan mon-fri", "5/2 ? L 2#1 H", "TZ=UTC 0 3 * *", "0,70-5 , - / *"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		c, errs := newCalendar(expression, "Europe/Berlin")
		if errs != nil {
			return
		}
		// An expression that is accepted fires, and a backward search finds the same time.
		at := c.from(epoch)
		next := c.from(at.Add(1))
		if at.Before(epoch) || at.Year() > 2034 || !next.After(at) || !c.last(next.Add(-1)).Equal(at) {
			t.Errorf("%q: %v, then %v, before that %v", expression, at, next, c.last(next.Add(-1)))
		}
	})
}
