package schedule

import (
	"fmt"
	"slices"
	"time"

	"replayd/internal/spelling"
)

// A Fault is an invalid value of one or several options. Errors of reading the source are no Faults.
type Fault struct{ Key, Want string }

func (f Fault) Error() string { return f.Key + ": " + f.Want }

// Faults are all invalid options.
type Faults []Fault

func faulty(key, format string, args ...any) Fault { return Fault{key, fmt.Sprintf(format, args...)} }

func (f *Faults) add(key, format string, args ...any) { *f = append(*f, faulty(key, format, args...)) }

func (f *Faults) oneOf(key, got string, want ...string) {
	if !slices.Contains(want, got) {
		f.add(key, "%s", spelling.Want(want, got))
	}
}

// Check checks the options alone. New checks them against the source, too.
func (o *Options) Check() Faults {
	return slices.Concat(o.checkArrival(), o.checkRate(), o.checkRepeat(), o.Shard.check())
}

func (o *Options) checkArrival() (f Faults) {
	f.oneOf("arrival", string(o.Arrival), "exact", "spread", "constant", "poisson", "gamma", "users", "concurrency", "sessions")
	switch {
	case !(o.Speed >= 0.001 && o.Speed <= 1000): // true for NaN, too
		f.add("speed", "want 0.001 to 1000, got %v", o.Speed)
	case len(f) == 0 && !o.timed() && o.Speed != 1:
		f.add("speed", "needs arrival exact or spread, got arrival %s", o.Arrival)
	}
	if d := o.TurnDelay; d != nil {
		if !(d.Scale >= 0 && d.Scale <= 1000) {
			f.add("turn_delay.scale", "want 0 to 1000, got %v", d.Scale)
		}
		if d.Max < 0 {
			f.add("turn_delay.max", "want a duration ≥ 0, got %v", d.Max)
		}
	}
	if o.From < 0 {
		f.add("from", "want a duration ≥ 0, got %v", o.From)
	}
	if o.To != 0 && o.To <= o.From {
		f.add("to", "want a duration > from (%v), or 0s for the end, got %v", o.From, o.To)
	}
	return f
}

func (o *Options) checkRepeat() (f Faults) {
	f.oneOf("mode", string(o.Mode), "once", "loop", "cron")
	if len(f) > 0 {
		return f
	}
	for _, k := range []struct {
		key  string
		mode Mode
		got  string
	}{
		{"align", Loops, string(o.Align)}, {"cron", Cron, o.Cron}, {"timezone", Cron, o.Timezone}, {"overlap", Cron, string(o.Overlap)},
	} {
		if k.got != "" && k.mode != o.Mode {
			f.add(k.key, "needs mode %q, got mode %q", k.mode, o.Mode)
		}
	}
	switch {
	case o.closed() && o.Mode == Cron:
		f.add("arrival", "want one with times for mode %q, got %q", o.Mode, o.Arrival)
		return f
	case o.closed(): // its loops follow each other
		f = append(f, o.checkNoLoops("another arrival", fmt.Sprintf("arrival %s", o.Arrival))...)
	case o.Mode != Loops:
		f = append(f, o.checkNoLoops(`mode "loop"`, fmt.Sprintf("mode %q", o.Mode))...)
	default:
		f = append(f, o.checkLoops()...)
	}
	if o.Mode == Cron {
		if o.Overlap != "" {
			f.oneOf("overlap", string(o.Overlap), "skip", "queue")
		}
		_, faults := newCalendar(o.Cron, o.Timezone)
		f = append(f, faults...)
	}
	return f
}

func (o *Options) checkLoops() (f Faults) {
	f.oneOf("align", string(o.Align), "wall_clock", "start")
	for _, k := range []struct {
		key string
		got time.Duration
	}{{"every", o.Every}, {"gap", o.Gap}} {
		if k.got < 0 || k.got > Longest {
			f.add(k.key, "want a duration of 0s to %v, got %v", Longest, k.got)
		}
	}
	switch {
	case o.Align == Start && o.Offset != 0:
		f.add("offset", "needs align %q, got align %q", WallClock, o.Align)
	case o.Every > 0 && (o.Offset >= o.Every || o.Offset <= -o.Every):
		f.add("offset", "want less than every (%v), either way, got %v", o.Every, o.Offset)
	}
	return f
}

// checkNoLoops refuses loop lengths of plans without loops.
func (o *Options) checkNoLoops(where, here string) (f Faults) {
	for _, k := range []struct {
		key string
		got time.Duration
	}{{"every", o.Every}, {"gap", o.Gap}, {"offset", o.Offset}} {
		if k.got != 0 {
			f.add(k.key, "needs %s, got %s", where, here)
		}
	}
	return f
}

func (s Shard) check() (f Faults) {
	switch {
	case s == Shard{}:
	case s.Of < 1:
		f.add("shard.of", "want an integer ≥ 1, got %d", s.Of)
	case s.Index < 0 || s.Index >= s.Of:
		f.add("shard.index", "want an index < %d, got %d", s.Of, s.Index)
	}
	return f
}

// checkSource checks the options against the source.
func (o *Options) checkSource(src Source) (f Faults) {
	span := src.Last - o.From
	switch {
	case o.timed() && !src.HasTimestamps:
		f.add("arrival", "want a trace with timestamps for %q, got one without", o.Arrival)
	case o.timed() && o.Speed >= 0.001 && float64(span+src.Tick)/o.Speed > float64(Longest):
		f.add("speed", "want one at which %v of trace last at most %v, got %v", span, Longest, o.Speed)
	}
	switch {
	case !o.timed() && !src.HasTimestamps && (o.From != 0 || o.To != 0):
		f.add("from, to", "want none for rows without timestamps, got %v to %v", o.From, o.To)
	case src.HasTimestamps && span < 0:
		f.add("from", "want 0s to the trace's last row at %v, got %v", src.Last, o.From)
	}
	if o.Rows < 0 || o.Rows > mostRows {
		f.add("rows", "want 0 to %d, got %d", mostRows, o.Rows)
	}
	if o.Duration < 0 || o.Duration > Longest {
		f.add("duration", "want 0s to %v, got %v", Longest, o.Duration)
	}
	if o.BySession() && src.Endless {
		f.add("rows", "want a number of rows to play them session by session, got rows without an end")
	}
	if src.Endless && o.Rows == 0 && o.Duration == 0 && o.Arrival != Concurrency {
		f.add("rows, duration", "want one of them for rows without an end with arrival %q, got neither", o.Arrival)
	}
	return f
}
