package schedule

import (
	"fmt"
	"time"
)

// Arrival says what makes rows due.
type Arrival string

// Arrivals.
const (
	Exact  Arrival = "exact"  // at the trace's own instants, bursts included
	Spread Arrival = "spread" // likewise, the rows of a tick evenly over it

	Constant    Arrival = "constant"    // at a rate, all gaps the same
	Poisson     Arrival = "poisson"     // at a rate, gaps from the exponential distribution
	Gamma       Arrival = "gamma"       // at a rate, gaps from the gamma distribution of shape Burstiness
	Users       Arrival = "users"       // at a rate, by so many users in turn; see Source.Turns
	Concurrency Arrival = "concurrency" // a closed loop: when a lane is free
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
	Speed    float64       // trace seconds per wall second, 0.001 to 1000; 1 where the trace's times are not those of its rows
	From, To time.Duration // window of the trace, [From, To); To 0: to the end
	Mode     Mode
	Phase    Phase         // for Loops, without Concurrency
	Every    time.Duration // loop length; 0: see Plan.Period
	Gap      time.Duration // least pause between the last row of a loop and the next loop
	Offset   time.Duration // shifts loop borders of phase wall, by less than Every
	Cron     string        // for mode Cron: minute, hour, day of month, month, day of week
	Timezone string        // of Cron, a name of the IANA database; "": UTC
	Overlap  Overlap       // for mode Cron; "": Skip
	Shard    Shard         // zero value: everything

	Rate       float64 // requests per second, for the arrivals that have a rate; with Stages what it is at first
	Stages     []Stage // for Constant, Poisson and Gamma: how the rate changes; nil: it does not
	Burstiness float64 // for Gamma: the shape of the distribution of gaps, 0.01 to 1000; 1 is Poisson, less is burstier
	Users      int     // for Users: how many
	Seed       uint64  // for Poisson and Gamma: other gaps for other seeds

	// Rows is how many rows a loop has; where the source has fewer they come round again, except with Exact and Spread, which
	// refuse that. 0: so many as are in its window.
	Rows int

	// Duration is how long after a loop's start no more rows are due; 0: there is no such time. With Constant, Poisson and
	// Gamma, whose first row comes after a gap, a row at that very instant still is. With Concurrency, where rows have no
	// instants, it is the caller's to hold to it.
	Duration time.Duration
}

// Longest bounds every duration of a plan, far below the 292 years that a time.Duration holds.
const Longest = 10 * 365 * 24 * time.Hour

// timed says whether the trace's own times are those of its rows.
func (o *Options) timed() bool { return o.Arrival == Exact || o.Arrival == Spread }

func (o *Options) checkTiming(src Source) (errs []error) {
	fault := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	timed := o.timed()
	switch o.Arrival {
	case Exact, Spread:
		if !src.HasTimestamps {
			fault("arrival: want a trace with timestamps for %q, got one without", o.Arrival)
		}
	case Constant, Poisson, Gamma, Users, Concurrency:
	default:
		timed = true
		fault("arrival: want %q, %q, %q, %q, %q, %q or %q, got %q", Exact, Spread, Constant, Poisson, Gamma, Users, Concurrency, o.Arrival)
	}
	span := src.Last - o.From
	switch {
	case !timed && o.Speed != 1:
		fault("speed: want 1 with arrival %q, got %v", o.Arrival, o.Speed)
	case !(o.Speed >= 0.001 && o.Speed <= 1000): // in this form NaN is refused too
		fault("speed: want 0.001 to 1000, got %v", o.Speed)
	case timed && float64(span+src.Tick)/o.Speed > float64(Longest):
		fault("speed: want one at which %v of trace last at most %v, got %v", span, Longest, o.Speed)
	}
	if !timed && !src.HasTimestamps {
		if o.From != 0 || o.To != 0 {
			fault("from, to: want none for rows without timestamps, got %v to %v", o.From, o.To)
		}
		return errs
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
		if d < 0 || d > Longest {
			fault("%s: want 0s to %v, got %v", key, Longest, d)
		}
	}
	switch {
	case o.Arrival == Concurrency && o.Mode == Cron:
		fault("mode: want %q or %q with arrival %q, got %q", Once, Loops, o.Arrival, o.Mode)
		return errs
	case o.Mode == Loops && o.Arrival != Concurrency:
		if o.Phase != Wall && o.Phase != Start {
			fault("phase: want %q or %q, got %q", Wall, Start, o.Phase)
		}
		if o.Phase == Start && o.Offset != 0 {
			fault("offset: want none with phase %q, got %v", Start, o.Offset)
		}
		length("every", o.Every)
		length("gap", o.Gap)
	case o.Mode == Once, o.Mode == Loops, o.Mode == Cron: // only the configuration knows whether a phase was given, or is its default
		what := fmt.Sprintf("mode %q", o.Mode)
		if o.Mode == Loops {
			what = fmt.Sprintf("arrival %q", o.Arrival)
		}
		for _, d := range []struct {
			key string
			got time.Duration
		}{{"every", o.Every}, {"gap", o.Gap}, {"offset", o.Offset}} {
			if d.got != 0 {
				fault("%s: want none with %s, got %v", d.key, what, d.got)
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
