package schedule

import (
	"fmt"
	"slices"

	"replayd/internal/fault"
)

func faulty(key, format string, args ...any) fault.Fault {
	return fault.Fault{Key: key, Want: fmt.Sprintf(format, args...)}
}

// Check checks the options alone. New checks them against the source, too.
func (o *Options) Check() fault.List {
	return slices.Concat(o.checkArrival(), o.checkRate(), o.checkRepeat(), o.Shard.check())
}

func (o *Options) checkArrival() (f fault.List) {
	f.OneOf("arrival", string(o.Arrival), "exact", "spread", "constant", "poisson", "gamma", "users", "concurrency", "sessions")
	switch {
	case !(o.Speed >= 0.001 && o.Speed <= 1000): // true for NaN, too
		f.Add("speed", "want 0.001 to 1000, got %v", o.Speed)
	case len(f) == 0 && !o.Timed() && o.Speed != 1:
		f.Add("speed", "needs arrival exact or spread, got arrival %s", o.Arrival)
	}
	if d := o.TurnDelay; d != nil {
		f.If(!(d.Scale >= 0 && d.Scale <= 1000), "turn_delay.scale", "want 0 to 1000, got %v", d.Scale)
		f.NotNegative("turn_delay.max", d.Max)
	}
	f.NotNegative("trace.from", o.From)
	f.If(o.To != 0 && o.To <= o.From, "trace.to", "want a duration > from (%v), or 0s for the end, got %v", o.From, o.To)
	return f
}

func (o *Options) checkRepeat() (f fault.List) {
	f.OneOf("repeat.mode", string(o.Mode), "once", "loop", "cron")
	if len(f) > 0 {
		return f
	}
	only := func(mode Mode, key, got string) {
		f.If(got != "" && mode != o.Mode, key, "needs mode %q, got mode %q", mode, o.Mode)
	}
	only(Loops, "repeat.align", string(o.Align))
	only(Cron, "repeat.cron", o.Cron)
	only(Cron, "repeat.timezone", o.Timezone)
	only(Cron, "repeat.overlap", string(o.Overlap))
	switch {
	case o.Closed() && o.Mode == Cron:
		f.Add("arrival", "want one with times for mode %q, got %q", o.Mode, o.Arrival)
		return f
	case o.Closed(): // its loops follow each other
		f = append(f, o.checkNoLoops("another arrival", fmt.Sprintf("arrival %s", o.Arrival))...)
	case o.Mode != Loops:
		f = append(f, o.checkNoLoops(`mode "loop"`, fmt.Sprintf("mode %q", o.Mode))...)
	default:
		f = append(f, o.checkLoops()...)
	}
	if o.Mode == Cron {
		if o.Overlap != "" {
			f.OneOf("repeat.overlap", string(o.Overlap), "skip", "queue")
		}
		_, faults := newCalendar(o.Cron, o.Timezone)
		f = append(f, faults...)
	}
	return f
}

func (o *Options) checkLoops() (f fault.List) {
	f.OneOf("repeat.align", string(o.Align), "wall_clock", "start")
	f.If(o.Every < 0 || o.Every > Longest, "repeat.every", "want a duration of 0s to %v, got %v", Longest, o.Every)
	switch {
	case o.Align == Start && o.Offset != 0:
		f.Add("repeat.offset", "needs align %q, got align %q", WallClock, o.Align)
	case o.Every > 0 && (o.Offset >= o.Every || o.Offset <= -o.Every):
		f.Add("repeat.offset", "want less than every (%v), either way, got %v", o.Every, o.Offset)
	}
	return f
}

// checkNoLoops refuses loop lengths of plans without loops.
func (o *Options) checkNoLoops(where, here string) (f fault.List) {
	f.If(o.Every != 0, "repeat.every", "needs %s, got %s", where, here)
	f.If(o.Offset != 0, "repeat.offset", "needs %s, got %s", where, here)
	return f
}

func (s Shard) check() (f fault.List) {
	switch {
	case s == Shard{}:
	case s.Of < 1:
		f.Add("shard.of", "want an integer ≥ 1, got %d", s.Of)
	case s.Index < 0 || int(s.Index) >= s.Of:
		f.Add("shard.index", "want an index < %d, got %d", s.Of, s.Index)
	}
	return f
}

func (o *Options) checkSource(src Source) (f fault.List) {
	span := src.Last - o.From
	switch {
	case o.Timed() && !src.HasTimestamps:
		f.Add("arrival", "want a trace with timestamps for %q, got one without: constant, poisson, gamma and concurrency need none", o.Arrival)
	case o.Timed() && o.Speed >= 0.001 && float64(span+src.Tick)/o.Speed > float64(Longest):
		f.Add("speed", "want one at which %v of trace last at most %v, got %v", span, Longest, o.Speed)
	}
	switch {
	case !o.Timed() && !src.HasTimestamps && (o.From != 0 || o.To != 0):
		f.Add("trace.from", "want none for rows without timestamps, got %v to %v", o.From, o.To)
	case src.HasTimestamps && span < 0:
		f.Add("trace.from", "want 0s to the trace's last row at %v, got %v", src.Last, o.From)
	}
	f.If(o.Rows < 0 || o.Rows > maxRows, "rows", "want 0 to %d, got %d", maxRows, o.Rows)
	f.If(o.Duration < 0 || o.Duration > Longest, "duration", "want 0s to %v, got %v", Longest, o.Duration)
	f.If(o.BySession() && src.Endless,
		"rows", "want a number of rows to play them session by session, got rows without an end")
	f.If(src.Endless && o.Rows == 0 && o.Duration == 0 && o.Arrival != Concurrency,
		"synthetic.requests", "want one of them for rows without an end with arrival %q, got neither", o.Arrival)
	return f
}
