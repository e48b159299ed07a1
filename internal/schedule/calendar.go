package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a scratch image has no zone files

	"replayd/internal/fault"

	"github.com/netresearch/go-cron"
)

// A calendar yields the activations of a cron expression: the instants at which it fires in a time zone.
//
// Where these clocks change it does what the manuals of ISC cron and of go-cron say. An expression that names hours fires
// once for all that is left out, as soon as the clocks have gone on, and for what comes twice at the first time: in
// Europe/Berlin 2:30 is 3:00 (1:00 UTC) on 29 March 2026, and on 25 October it is 2:30 of summer time (0:30 UTC). One for
// every hour, such as "*/10 * * * *", goes by the clocks as they are: through both hours that are called 2, and through
// none that is left out.
//
// go-cron v0.9.1 itself does otherwise: in March its Next finds 3:30 or, from 1:59:59 on, nothing, in October it finds
// 2:30 twice, and its Prev knows nothing of March. So it only ever sees clocks that do not change: local time as if it was
// UTC, one stretch between two changes after the other.
type calendar struct {
	spec  *cron.SpecSchedule
	zone  *time.Location
	named bool // the expression names hours
}

// newCalendar reads an expression and the name of its time zone, "" for UTC, and returns all that is wrong with them.
func newCalendar(expression, zone string) (c calendar, f fault.List) {
	spec, err := parseCron(expression)
	if err != nil {
		f.Add("repeat.cron", "%v", err)
	} else {
		const everyHour = 1<<24 - 1
		c.spec, c.named = spec, spec.Hour&everyHour != everyHour
	}
	if c.zone, err = parseZone(zone); err != nil {
		f.Add("repeat.timezone", "%v", err)
	}
	return c, f
}

func parseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" { // Local differs between machines
		return nil, fmt.Errorf("want a name of the IANA database such as Europe/Berlin, got %q", name)
	}
	return zone, nil
}

// from returns the first activation at or after an instant.
func (c *calendar) from(t time.Time) time.Time {
	for {
		s := c.stretch(t)
		if s.start.Equal(t) && c.leftOut(s) {
			return s.start
		}
		// Next looks second by second from within a minute.
		within := s.local(latest(t, c.opens(s))).Add(time.Minute - 1).Truncate(time.Minute)
		at := c.spec.Next(within.Add(-1)).Add(-s.offset)
		if s.end.IsZero() || at.Before(s.end) {
			return at
		}
		t = s.end
	}
}

// interval returns the least time between two of the next activations: of a year, but at least of two and at most of 400.
func (c *calendar) interval(t time.Time) time.Duration {
	at, least := c.from(t), Longest
	for n := 0; n < 400 && (n == 0 || at.Sub(t) < 53*week); n++ {
		next := c.from(at.Add(1))
		at, least = next, min(least, next.Sub(at))
	}
	return least
}

// last returns the last activation at or before an instant.
func (c *calendar) last(t time.Time) time.Time {
	for {
		s := c.stretch(t)
		// Prev leaves out the second that it is called in.
		at := c.spec.Prev(s.local(t).Truncate(time.Minute).Add(time.Second)).Add(-s.offset)
		if s.start.IsZero() || !at.Before(c.opens(s)) {
			return at
		}
		if c.leftOut(s) {
			return s.start
		}
		t = s.start.Add(-1)
	}
}

// A stretch is a time without a clock change in a zone: half a year, or a part of it that a new year cuts off. An end is zero
// if there is none.
type stretch struct {
	start, end     time.Time
	offset, before time.Duration // of local time from UTC: in it, and before it
}

func (c *calendar) stretch(t time.Time) stretch {
	in := t.In(c.zone)
	start, end := in.ZoneBounds()
	s := stretch{start: start.UTC(), end: end.UTC(), offset: offset(in)}
	// Beyond a zone's table of changes Go 1.26 lets every year end after 365 days (golang/go#81583): on the last day of a
	// leap year, before t.
	if !end.IsZero() && !end.After(t) {
		s.end = t.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
	}
	if !start.IsZero() {
		s.before = offset(start.Add(-1))
	}
	return s
}

func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// local returns the local time at an instant of the stretch, as if it was UTC.
func (s stretch) local(t time.Time) time.Time { return t.UTC().Add(s.offset) }

// leftOut reports whether an expression that names hours fires in the local time skipped before a stretch.
func (c *calendar) leftOut(s stretch) bool {
	if !c.named || s.start.IsZero() || s.offset <= s.before {
		return false
	}
	skipped := s.start.Add(s.before)
	return c.spec.Next(skipped.Add(-1)).Before(s.local(s.start))
}

// opens returns the instant of a stretch from which on no local time repeats an earlier one.
func (c *calendar) opens(s stretch) time.Time {
	if !c.named || s.start.IsZero() || s.offset >= s.before {
		return s.start
	}
	return s.start.Add(s.before - s.offset)
}

func latest(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

const wantFields = `want five fields, minute, hour, day of month, month and day of week, such as "0 3 * * 1-5"`

// cronFields bounds the numbers in them, and has the names of those that have some, from the least number on.
var cronFields = [...]struct {
	name        string
	least, most int
	names       string
}{
	{"minute", 0, 59, ""},
	{"hour", 0, 23, ""},
	{"day of month", 1, 31, ""},
	{"month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"},
	{"day of week", 0, 7, "sun mon tue wed thu fri sat"},
}

// cronItem matches one of the items of a field, and its first and last number or name.
var cronItem = regexp.MustCompile(`^(?:[*?]|(\w+)(?:-(\w+))?)(?:/[1-9][0-9]*)?$`)

// checkCron refuses what crond, Kubernetes and go-cron do not read alike.
func checkCron(expression string, fields []string) error {
	for i, f := range cronFields {
		place := func(text string) int {
			n, err := strconv.Atoi(text)
			if name := slices.Index(strings.Fields(f.names), strings.ToLower(text)); name >= 0 {
				return name + f.least
			} else if err != nil && !errors.Is(err, strconv.ErrRange) {
				return -1
			}
			return n
		}
		for one := range strings.SplitSeq(fields[i], ",") {
			m := cronItem.FindStringSubmatch(one)
			if m == nil {
				m = []string{"", "?", ""}
			}
			switch {
			case m[1] != "" && place(m[1]) < 0 || m[2] != "" && place(m[2]) < 0:
				return fmt.Errorf("%s: want numbers, ranges such as 1-5 and steps such as */15, with commas between them, got %q in %q",
					f.name, fields[i], expression)
			case max(place(m[1]), place(m[2])) > f.most:
				return fmt.Errorf("%s: want at most %d, got %q in %q", f.name, f.most, fields[i], expression)
			case m[2] != "" && place(m[2]) < place(m[1]):
				return fmt.Errorf("%s: want a range that runs forward, such as %s-%d,%d-%s, got %q in %q", f.name,
					m[1], f.most, f.least, m[2], one, expression)
			}
		}
	}
	for _, days := range [][2]int{{2, 4}, {4, 2}} {
		f, other := cronFields[days[0]], cronFields[days[1]]
		step, starred := strings.CutPrefix(fields[days[0]], "*/")
		if starred && step != "1" && !strings.ContainsAny(fields[days[1]][:1], "*?") {
			return fmt.Errorf("want days that all programs read alike, got %q: crond takes days that fit %s and %s, Kubernetes those that fit "+
				"either. Write %s/%s for either; both at once cannot be written", expression, f.name, other.name,
				map[int]string{2: "1-31", 4: "0-6"}[days[0]], step)
		}
	}
	return nil
}

// cronNames are names for whole expressions, which are refused with what they stand for.
var cronNames = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0", "@daily": "0 0 * * *", "@midnight": "0 0 * * *",
	"@hourly": "0 * * * *",
}

// parseCron reads an expression as crontab(5) has it: five fields, of which the two for days mean either when both are
// restricted. A name such as @daily, a time zone in front and go-cron's extensions are refused. The result is to be
// asked in UTC.
func parseCron(expression string) (*cron.SpecSchedule, error) {
	fields := strings.Fields(expression)
	switch said := fmt.Sprintf("%s, got %q", wantFields, expression); {
	case cronNames[strings.ToLower(expression)] != "":
		return nil, fmt.Errorf("%s: write %q", said, cronNames[strings.ToLower(expression)])
	case strings.HasPrefix(expression, "@every"):
		return nil, fmt.Errorf("%s: for an interval take mode loop with every", said)
	case len(fields) == len(cronFields)+1:
		return nil, fmt.Errorf("%s: there are no seconds, so leave one out", said)
	case len(fields) != len(cronFields):
		return nil, errors.New(said)
	}
	if err := checkCron(expression, fields); err != nil {
		return nil, err
	}
	parser, err := cron.TryNewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow | cron.DowOrDom)
	if err != nil {
		return nil, err
	}
	// The longest wait is that from 29 February 2096 to the next one, in 2104.
	schedule, err := parser.WithMaxSearchYears(8).Parse(expression)
	if err != nil {
		return nil, fmt.Errorf("%s, got %q: %w", wantFields, expression, err)
	}
	spec, ok := schedule.(*cron.SpecSchedule)
	if !ok { // nothing but a name such as @every makes another
		return nil, errors.New(wantFields)
	}
	spec.Location = time.UTC
	if spec.Next(time.Unix(0, 0)).IsZero() {
		return nil, fmt.Errorf("want a day that there is, got %q, which never comes", expression)
	}
	return spec, nil
}
