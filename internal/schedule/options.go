package schedule

import (
	"fmt"
	"time"
)

// Arrival places rows that share a timestamp.
type Arrival string

// Arrivals.
const (
	Exact  Arrival = "exact"  // at the trace's own instants, bursts included
	Spread Arrival = "spread" // the rows of a tick evenly over it
)

// Mode says how often the trace is played.
type Mode string

// Modes.
const (
	Once  Mode = "once"
	Loops Mode = "loop"
	Cron  Mode = "cron" // one pass from each activation of an expression
)

// Phase says where loop borders lie.
type Phase string

// Phases.
const (
	Wall  Phase = "wall"  // at multiples of Every since the Unix epoch, plus Offset
	Start Phase = "start" // from the epoch that the replay was given
)

// Overlap says what becomes of an activation that falls into a run: one that comes before the run's last row is due.
type Overlap string

// Overlaps.
const (
	Skip  Overlap = "skip"  // it is skipped
	Queue Overlap = "queue" // its run begins when the other is over; more of them meanwhile make no second one
)

// Shard picks the rows of one of several replayers: by session, else by record number.
type Shard struct{ Index, Of int }

// Options of a plan; the zero value of a field is its default where the comment names one.
type Options struct {
	Arrival  Arrival
	Speed    float64       // trace seconds per wall second, 0.001 to 1000
	From, To time.Duration // window of the trace, [From, To); To 0: to the end
	Mode     Mode
	Phase    Phase         // for Loops
	Every    time.Duration // loop length; 0: the shortest of a fixed ladder that holds span / speed + gap
	Gap      time.Duration // least pause between the last row of a loop and the next loop
	Offset   time.Duration // shifts loop borders of phase wall, by less than Every
	Cron     string        // for mode Cron: minute, hour, day of month, month, day of week
	Timezone string        // of Cron, a name of the IANA database; "": UTC
	Overlap  Overlap       // for mode Cron; "": Skip
	Shard    Shard         // zero value: everything
}

// longest bounds every duration of a plan, far below the 292 years that a time.Duration holds.
const longest = 10 * 365 * 24 * time.Hour

func (o *Options) checkTiming(src Source) (errs []error) {
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case o.Arrival != Exact && o.Arrival != Spread:
		fault("arrival: want %q or %q, got %q", Exact, Spread, o.Arrival)
	case !src.HasTimestamps:
		fault("arrival: want a trace with timestamps for %q, got one without", o.Arrival)
	}
	span := src.Last - o.From
	switch {
	case !(o.Speed >= 0.001 && o.Speed <= 1000): // in this form NaN is refused too
		fault("speed: want 0.001 to 1000, got %v", o.Speed)
	case float64(span+src.Tick)/o.Speed > float64(longest):
		fault("speed: want one at which %v of trace last at most %v, got %v", span, longest, o.Speed)
	}
	if o.From < 0 || span < 0 {
		fault("from: want 0s to the trace's last row at %v, got %v", src.Last, o.From)
	}
	if o.To != 0 && o.To <= o.From {
		fault("to: want 0s for the end, or more than from (%v), got %v", o.From, o.To)
	}
	return errs
}

func (o *Options) checkRepeat() (errs []error) {
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	length := func(key string, d time.Duration) {
		if d < 0 || d > longest {
			fault("%s: want 0s to %v, got %v", key, longest, d)
		}
	}
	switch o.Mode {
	case Loops:
		if o.Phase != Wall && o.Phase != Start {
			fault("phase: want %q or %q, got %q", Wall, Start, o.Phase)
		}
		if o.Phase == Start && o.Offset != 0 {
			fault("offset: want none with phase %q, got %v", Start, o.Offset)
		}
		length("every", o.Every)
		length("gap", o.Gap)
	case Once, Cron: // only the configuration knows whether a phase was given, or is its default
		for _, d := range []struct {
			key string
			got time.Duration
		}{{"every", o.Every}, {"gap", o.Gap}, {"offset", o.Offset}} {
			if d.got != 0 {
				fault("%s: want none with mode %q, got %v", d.key, o.Mode, d.got)
			}
		}
	default:
		fault("mode: want %q, %q or %q, got %q", Once, Loops, Cron, o.Mode)
		return errs
	}
	if o.Mode == Cron {
		if o.Overlap != "" && o.Overlap != Skip && o.Overlap != Queue {
			fault("overlap: want %q or %q, got %q", Skip, Queue, o.Overlap)
		}
		return errs
	}
	for _, s := range []struct{ key, got string }{{"cron", o.Cron}, {"timezone", o.Timezone}, {"overlap", string(o.Overlap)}} {
		if s.got != "" {
			fault("%s: want none with mode %q, got %q", s.key, o.Mode, s.got)
		}
	}
	return errs
}

func (s Shard) check() []error {
	switch {
	case s == Shard{}:
		return nil
	case s.Of < 1:
		return []error{fmt.Errorf("shard.of: want an integer ≥ 1, got %d", s.Of)}
	case s.Index < 0 || s.Index >= s.Of:
		return []error{fmt.Errorf("shard.index: want 0 to %d, got %d", s.Of-1, s.Index)}
	}
	return nil
}

// ladder has divisors of a day, so that PromQL's offset by an hour or a day meets the same place of the trace.
var ladder = []time.Duration{
	1 * time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 20 * time.Minute, 30 * time.Minute,
	1 * time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour, 6 * time.Hour, 8 * time.Hour, 12 * time.Hour,
}

// fit settles the loop's length. The last row lies inside its loop: strictly before the border, where the next begins.
func (p *Plan) fit() (errs []error) {
	if p.o.Mode != Loops {
		p.every = p.length
		return nil
	}
	least := p.length + p.o.Gap
	want := fmt.Sprintf("at least %v, the length of the trace and the gap", least)
	if p.o.Gap == 0 {
		want = fmt.Sprintf("more than %v, the length of the trace", least)
		least++
	}
	switch p.every = p.o.Every; {
	case p.every == 0:
		p.every = shortest(least)
	case p.every < least:
		errs = append(errs, fmt.Errorf("every: want %s at speed %v, got %v", want, p.o.Speed, p.every))
	}
	if p.o.Offset <= -p.every || p.o.Offset >= p.every {
		errs = append(errs, fmt.Errorf("offset: want less than every (%v), either way, got %v", p.every, p.o.Offset))
	}
	return errs
}

// shortest is the first step of the ladder, else the fewest whole days, that is not below least.
func shortest(least time.Duration) time.Duration {
	for _, step := range ladder {
		if step >= least {
			return step
		}
	}
	const day = 24 * time.Hour
	return (least + day - 1) / day * day
}
